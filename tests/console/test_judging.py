"""Judging in a real Chromium: addresses of answers, thumbs, keys, errors, options, lists, and the phone."""

import re
import shutil
import subprocess
import uuid
from typing import Any

import pytest

from engram_client import Engram
from tests.console.conftest import Opened
from tests.console.console_page import BORN, QUESTION, ask, place, violations

pytestmark = pytest.mark.browser

OTHER_QUESTION = "Into which sea does the Vistula flow?"
NARROWEST_COLUMN = """Math.min(1000, ...[...document.querySelectorAll("tbody td, tbody th")]
  .filter((cell) => cell.innerText.trim().length > 8).map((cell) => cell.clientWidth))"""
LEAST_COLUMN = 60
PHONE = {"width": 390, "height": 844}
PAGES = ("ask", "why", "learned", "learned/verdicts", "learned/judges", "learned/keys", "learned/lift",
         "sessions", "facts", "collections", "health", "keys")  # fmt: skip


def titles(page: Any) -> list[str]:
    return page.locator(".passage h3").all_inner_texts()


def answer_id(page: Any) -> str:
    page.wait_for_url(re.compile(r"#/ask/[0-9a-f-]{36}"))
    (found,) = re.findall(r"#/ask/([0-9a-f-]{36})", page.url)
    return found


def verdicts(page: Any, service: str, collection: str) -> list[dict[str, Any]]:
    """The verdicts on the answer that the page shows, oldest first."""
    address = f"{service}/feedback?collection={collection}&query_id={answer_id(page)}"
    listed: list[dict[str, Any]] = page.request.get(address).json()["feedback"]
    return listed


def thumb(page: Any, up: bool, name: str) -> Any:
    return page.get_by_label(f"Thumb {'up' if up else 'down'}: {name}", exact=True)


def wait_until_stored(page: Any) -> None:
    page.get_by_text("Stored as verdict").wait_for()


def test_what_is_typed_while_an_answer_comes_stays(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route("**/query", hold)
    box = page.get_by_label("Question", exact=True)
    box.fill(QUESTION)
    with page.expect_request("**/query"):
        page.get_by_role("button", name="Ask", exact=True).click()
    box.fill(OTHER_QUESTION)
    held[0].continue_()
    answer_id(page)
    page.wait_for_selector(".passage")
    assert box.input_value() == OTHER_QUESTION
    page.unroute("**/query")
    first = answer_id(page)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_function("before => !location.hash.includes(before)", arg=first)
    answer_id(page)
    page.go_back()
    page.wait_for_function("before => location.hash.includes(before)", arg=first)
    page.wait_for_selector(".passage")
    assert box.input_value() == QUESTION, "an answer that is opened shows its own question"


def test_an_answer_is_reached_by_its_address(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    ask(page)
    first, order = answer_id(page), titles(page)
    ask(page, OTHER_QUESTION)
    page.wait_for_function("id => !location.hash.includes(id)", arg=first)
    assert answer_id(page) != first
    page.go_back()
    page.wait_for_function("id => location.hash.includes(id)", arg=first)
    assert page.get_by_label("Question", exact=True).input_value() == QUESTION
    assert titles(page) == order
    asked: list[str] = []
    page.on("request", lambda sent: sent.method == "POST" and asked.append(sent.url))
    page.reload()
    page.wait_for_selector(".passage")
    assert (answer_id(page), titles(page)) == (first, order)
    assert asked == [], "a stored answer is read, not asked for again"
    shared = opened(service, page.url.removeprefix(f"{service}/"))
    shared.wait_for_selector(".passage")
    assert (answer_id(shared), titles(shared)) == (first, order)


def test_an_answer_that_is_not_stored_is_asked_for_anew(opened: Opened, service: str, curie: str) -> None:
    gone = str(uuid.uuid4())
    page = opened(service, f"#/ask/{gone}?c={curie}&q={QUESTION.replace(' ', '+')}")
    page.get_by_text("This is a new answer to its question.").wait_for()
    page.wait_for_function("id => !location.hash.includes(id)", arg=gone)
    assert titles(page)[0] == "Marie Curie"
    assert page.get_by_label("Question", exact=True).input_value() == QUESTION


def test_thumbs_are_stored_as_they_are_pressed(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    ask(page)
    thumb(page, True, "the answer").click()
    wait_until_stored(page)
    page.get_by_text("up for this question").wait_for()
    page.reload()
    page.locator('[aria-pressed="true"]').wait_for()
    assert thumb(page, True, "the answer").get_attribute("aria-pressed") == "true", "it is read from the service"
    assert [one["rating"] for one in verdicts(page, service, curie)] == ["up"]
    thumb(page, False, "the answer").click()
    page.get_by_role("button", name="Evidence is missing").click()
    page.locator('.reasons [aria-pressed="true"]').wait_for()
    latest = verdicts(page, service, curie)[-1]
    assert (latest["rating"], latest["reason"]) == ("down", "missing")
    thumb(page, False, "the answer").click()
    page.get_by_text("is taken back").wait_for()
    assert verdicts(page, service, curie)[-1]["rating"] == "withdrawn"
    assert page.locator('.answer-thumbs [aria-pressed="true"]').count() == 0


def test_each_passage_has_thumbs(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    ask(page)
    thumb(page, True, "Marie Curie").click()
    wait_until_stored(page)
    thumb(page, False, "Marie Curie").click()
    page.locator('.thumb.rejected[aria-pressed="true"]').wait_for()
    up, down = verdicts(page, service, curie)
    assert up["supporting_passages"] == ["curie"]
    assert up["status"] == "revoked"
    assert {one["role"] for one in down["sentences"]} == {"rejected"}
    page.reload()
    page.locator('.thumb.rejected[aria-pressed="true"]').wait_for()
    assert thumb(page, True, "Marie Curie").get_attribute("aria-pressed") == "false"
    assert thumb(page, False, "Marie Curie").get_attribute("aria-pressed") == "true"


def test_keys_move_between_passages_and_press_thumbs(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    ask(page)
    names, before = titles(page), answer_id(page)
    page.get_by_label("Question", exact=True).press("Enter")
    page.keyboard.press("d")
    assert page.get_by_label("Question", exact=True).input_value() == QUESTION
    page.wait_for_url(lambda url: before not in url)
    page.wait_for_selector('[aria-busy="false"] .passage')
    page.get_by_label("Question", exact=True).press_sequentially("jud")
    assert page.get_by_label("Question", exact=True).input_value() == f"jud{QUESTION}"
    assert page.locator('[aria-pressed="true"]').count() == 0
    page.locator("h1").click()
    page.keyboard.press("d")  # meant for a field
    assert page.locator('[aria-pressed="true"]').count() == 0
    for key in "jjj":
        page.keyboard.press(key)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == f"Passage 2: {names[1]}"
    page.keyboard.press("k")
    page.keyboard.press("u")
    wait_until_stored(page)
    assert thumb(page, True, names[0]).get_attribute("aria-pressed") == "true"
    page.keyboard.press("d")
    page.locator('.passage .thumb.rejected[aria-pressed="true"]').wait_for()
    assert thumb(page, True, names[0]).get_attribute("aria-pressed") == "false"


def test_after_an_error_the_old_answer_is_gone_and_can_be_tried_again(
    opened: Opened, service: str, curie: str
) -> None:
    page = opened(service, place("ask", curie))
    ask(page)
    page.route("**/query", lambda route: route.abort())
    page.get_by_label("Question", exact=True).fill(OTHER_QUESTION)
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("alert").get_by_text("The service cannot be reached.").wait_for()
    assert page.locator(".passage").count() == 0
    page.unroute("**/query")
    page.get_by_role("button", name="Try again").click()
    page.wait_for_selector(".passage")
    assert page.get_by_role("alert").count() == 0
    assert page.get_by_label("Question", exact=True).input_value() == OTHER_QUESTION
    assert answer_id(page)


def test_options_limit_the_answer_and_are_in_its_address(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    page.get_by_text("More options").click()
    page.get_by_label("Passages (1 to 100)").fill("2")
    ask(page)
    assert page.locator(".passage").count() == 2
    assert "k=2" in page.url
    metadata = page.get_by_label("Metadata that each passage must contain")
    metadata.fill("[1]")
    page.get_by_text("The filter must be a JSON object").wait_for()
    assert page.get_by_role("button", name="Ask again").is_disabled()
    metadata.fill('{"topic": "no such topic"}')
    page.get_by_role("button", name="Ask again").click()
    page.get_by_text("Nothing was found").wait_for()
    assert "no+such+topic" in page.url


def test_the_copied_command_asks_the_same(opened: Opened, service: str, curie: str) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl")
    page = opened(service, place("ask", curie))
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ask(page, "What is Marie Curie's birthplace?")
    page.locator(".tools").get_by_role("button", name="Copy as curl").click()
    page.get_by_text("Copied").wait_for()
    command = page.evaluate("navigator.clipboard.readText()")
    printed = subprocess.run(["bash", "-c", command], capture_output=True, check=True, text=True).stdout
    assert '"What is Marie Curie\'s birthplace?"' in printed
    assert '"passage_id":"curie"' in printed
    page.get_by_role("button", name="Copy query id").click()
    page.wait_for_function("id => navigator.clipboard.readText().then((text) => text === id)", arg=answer_id(page))


def test_verdicts_are_listed_with_question_and_sentences(opened: Opened, service: str, curie: str) -> None:
    with Engram(service, collection=curie) as engram:
        answer = engram.query(QUESTION)
        verdict = engram.feedback(answer.query_id, supporting=[{"passage_id": "curie", "text": BORN}], wait=True)
    page = opened(service, place("learned/verdicts", curie))
    row = page.locator("tbody tr")
    row.get_by_role("link", name=QUESTION).wait_for()
    assert BORN in row.inner_text()
    page.locator("label", has_text="Revoked").click()
    page.get_by_text("No verdict matches").wait_for()
    assert "status=revoked" in page.url
    page.go_back()
    page.get_by_role("link", name=f"Verdict {verdict.feedback_id}").click()
    page.locator("dialog .statement", has_text=BORN).wait_for()
    page.locator("dialog").get_by_role("link", name=QUESTION).click()
    page.wait_for_selector(".passage")
    assert answer_id(page) == str(answer.query_id)


def test_why_begins_with_the_reason_of_the_rank(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    ask(page)
    names = titles(page)
    page.get_by_role("link", name="Why this order?").click()
    reason = page.locator(".reason .lead")
    reason.wait_for()
    assert re.match(r"Ranked first because of .+ \(\+\d+\.\d\d\).*, compared with “", reason.inner_text())
    assert f"“{names[1]}”, which is second." in reason.inner_text()
    page.locator(".order button").nth(1).click()
    assert re.match(r"Ranked second because of .+ \(−\d+\.\d\d\)", reason.inner_text())
    assert f"“{names[0]}”, which is first." in reason.inner_text()
    explanation = page.get_by_text("The weighted sum of the passage").first
    assert explanation.is_hidden()
    page.locator(".word", has_text="score").first.hover()
    explanation.wait_for()


def test_an_empty_page_offers_what_to_ask(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    page.get_by_text("No question yet").wait_for()
    page.locator(".samples").get_by_role("link", name="Marie Curie").click()
    page.wait_for_selector(".passage")
    assert page.get_by_label("Question", exact=True).input_value() == "Marie Curie"
    page.get_by_role("link", name="New question").click()
    page.get_by_text("No question yet").wait_for()
    assert page.get_by_label("Question", exact=True).input_value() == ""


def test_navigation_folds_away_on_a_phone(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    page.set_viewport_size(PHONE)
    links = page.get_by_role("navigation", name="Pages")
    menu = page.get_by_role("button", name="Menu")
    menu.wait_for()
    assert links.is_hidden()
    menu.click()
    assert menu.get_attribute("aria-expanded") == "true"
    links.get_by_role("link", name="Sessions").click()
    page.get_by_label("Question of the session").wait_for()
    links.wait_for(state="hidden")
    assert menu.get_attribute("aria-expanded") == "false"
    page.goto(f"{service}/{place('ask', curie)}")
    ask(page)
    wide, narrow = {}, {}
    for name in PAGES:
        page.goto(f"{service}/{place(name, curie)}")
        page.wait_for_selector("main h1")
        page.locator(".spin").first.wait_for(state="detached")
        if (width := page.evaluate("document.documentElement.scrollWidth")) > PHONE["width"]:
            wide[name] = width
        if (width := page.evaluate(NARROWEST_COLUMN)) < LEAST_COLUMN:
            narrow[name] = width
        assert violations(page) == {}, name
    assert wide == {}, "no page scrolls sideways"
    assert narrow == {}, "each column of words can be read"
