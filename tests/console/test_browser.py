"""The console in a real Chromium: ask, judge and ask again; by keyboard alone; what a key may; accessibility."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram_client import Engram
from tests.console.conftest import Opened
from tests.console.console_page import BORN, QUESTION, ask, place, reach, violations
from tests.support.constants import ACCESS_CACHE, set_constants
from tests.support.live_server import LiveServer
from tests.support.modelled import ModelApplications
from tests.support.openai_server import Reply, keyword_handler

pytestmark = pytest.mark.browser

PAGES = ("ask", "why", "learned", "learned/verdicts", "learned/gaps", "learned/judges", "learned/keys",
         "learned/lift", "learned/tuning", "sessions", "facts", "collections", "health", "keys")  # fmt: skip

DOCUMENTS = Path(__file__).resolve().parents[1] / "wings/importing/files"


@pytest.fixture
def taught(service: str, curie: str) -> str:
    """A collection that a verdict taught something."""
    with Engram(service, collection=curie) as engram:
        found = engram.query(QUESTION)
        engram.feedback(found.query_id, supporting=[{"passage_id": "curie", "text": BORN}], wait=True)
    return curie


@pytest.fixture
def guarded(
    application: Application, addresses: Servers, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Application]]:
    """A service that asks for keys."""
    set_constants(monkeypatch, {ACCESS_CACHE: 0.0})
    locked = Application(settings.model_copy(update={"access": "keys"}), addresses)
    locked.models.embedder, locked.models.language = application.models.embedder, application.models.language
    with LiveServer(create_app(locked)) as server:
        yield server.url, locked
    locked.close()


def test_ask_judge_and_ask_again(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    ask(page)
    assert page.locator(".passage h3").first.inner_text() == "Marie Curie"
    assert page.locator("mark", has_text=BORN).count() == 1
    assert "%" in page.locator(".gauge").get_attribute("aria-label")
    page.get_by_label(f"Helped: {BORN}").click()
    page.get_by_label("Did not help: Marie Curie discovered").click()
    page.get_by_text("Evidence is missing").click()
    page.get_by_label("Search for missing evidence").fill("Baltic Sea")
    page.get_by_role("button", name="Search", exact=True).click()
    page.locator(".pick", has_text="The Vistula flows into the Baltic Sea.").click()
    page.get_by_text("1 sentence helped, 1 sentence did not, 1 sentence missing.").wait_for()
    page.get_by_role("button", name="Judge", exact=True).click()
    changed = page.locator("#changed")
    changed.wait_for()
    said = changed.inner_text()
    assert "By verdict" in said
    assert "1 sentence helped, 1 sentence did not, 1 sentence missing" in said
    risen = changed.locator(".slopes ol").nth(1).locator("li", has_text="Vistula")
    assert "▲" in risen.inner_text()
    assert page.evaluate("document.activeElement.id") == "changed"
    page.get_by_role("button", name="Ask again").click()
    page.locator(".passage", has_text="Vistula").locator(".badge", has_text="▲").wait_for()
    page.get_by_role("link", name="Why this order?").click()
    page.locator(".order button", has_text="Vistula").click()
    page.get_by_text("of anonymous on").first.wait_for()
    page.locator("label", has_text="Without").click()
    page.get_by_text("Order without memory").wait_for()
    page.get_by_role("link", name="Ask", exact=True).click()
    page.get_by_role("button", name="Take it back").click()
    page.get_by_text("Without verdict").wait_for()


def test_an_answer_in_words_leads_to_the_sentences_it_rests_on(
    opened: Opened, modelled: ModelApplications, service: str, curie: str
) -> None:
    page = opened(service, place("ask", curie))
    page.get_by_label("Question", exact=True).wait_for()
    assert page.get_by_text("In words").count() == 0, "there is no model"
    with LiveServer(create_app(modelled.application(keyword_handler))) as worded:
        page = opened(worded.url, place("ask", curie))
        page.locator("label", has_text="In words").click()
        ask(page)
        page.locator(".lead", has_text="Warsaw").wait_for()
        source = page.get_by_label("Sources").get_by_role("button", name=BORN)
        source.focus()
        page.keyboard.press("Enter")
        led = page.locator(".sentences li:focus")
        assert BORN in led.inner_text()
        assert led.get_by_role("img").get_attribute("aria-label").startswith("Source ")
        assert violations(page) == {}
        modelled.server.queue(Reply("overloaded", status=500))
        page.get_by_role("button", name="Ask again").click()
        page.get_by_text("The evidence gives no answer.").wait_for()
        assert page.locator(".passage").count() > 0, "what was found stays"


def test_console_reports_failures_and_retries(opened: Opened, service: str, taught: str) -> None:
    page = opened(service, place("health", taught))
    page.get_by_text("Quotas").first.wait_for()
    page.route("**/learned?*", lambda route: route.abort())
    page.goto(f"{service}/{place('learned', taught)}")
    page.get_by_text("The service cannot be reached.").wait_for()
    page.unroute("**/learned?*")
    page.get_by_role("button", name="Try again").click()
    page.locator("svg.line").first.wait_for()


def test_a_key_that_counts_no_more_is_asked_for_anew(
    opened: Opened, guarded: tuple[str, Application], curie: str
) -> None:
    url, locked = guarded
    reader = locked.auth.access_keys.make(
        LOCAL, AccessKeyRequest(name="reader", scopes={curie: ["query"]}), "local"
    )
    page = opened(url)
    page.get_by_label("Access key").fill(reader.key)
    page.get_by_role("button", name="Open").click()
    page.get_by_label("Question", exact=True).fill(QUESTION)
    locked.auth.access_keys.revoke(LOCAL, reader.stored.id, "local")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_label("Access key").wait_for()
    page.get_by_role("alert").wait_for()


def test_why_shows_factors_that_add_up_and_a_graph_that_grows(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    ask(page)
    page.get_by_role("link", name="Why this order?").click()
    page.locator(".graph canvas").first.wait_for()
    page.locator("summary", has_text="smaller factor").first.click()
    rows = [row for at in (0, 1) for row in page.locator(".factors").nth(at).locator("tbody tr").all()]
    adds = [row.locator("td.number").first.inner_text() for row in rows]
    score = float(page.locator(".why .panel header strong").first.inner_text())
    assert sum(float(one.replace("−", "-")) for one in adds) == pytest.approx(score, abs=0.01 * len(adds))
    page.get_by_label("Hops shown").fill("0")
    page.get_by_text("The question", exact=True).wait_for()
    page.get_by_role("button", name="Grow by hops").click()
    page.get_by_text("All hops and the passages").wait_for()


def test_why_says_what_an_answer_was_kept_without(opened: Opened, service: str, curie: str) -> None:
    body = {"collection": curie, "query": QUESTION}
    query = httpx.post(f"{service}/query", json=body, timeout=60).json()["query_id"]
    page = opened(service, f"#/why/{query}?c={curie}")
    page.get_by_text("This answer was kept without the verdicts behind it.").first.wait_for()
    assert page.get_by_text("without not ranked").count() == 0
    page.get_by_role("link", name="Ask again").click()
    page.locator(".passage").first.wait_for()
    page.get_by_role("link", name="Why this order?").click()
    page.locator(".factors").first.wait_for()


def test_what_was_not_answered_is_listed(opened: Opened, service: str, curie: str) -> None:
    question = "Which train goes to Lisbon?"
    page = opened(service, place("ask", curie))
    ask(page, question)
    whole = page.get_by_role("group", name="The answer as a whole")
    whole.get_by_role("button", name="Thumb down").click()
    whole.get_by_role("button", name="Thumb down", pressed=True).wait_for()
    page.goto(f"{service}/{place('learned/gaps', curie)}")
    row = page.get_by_role("row").filter(has=page.get_by_role("link", name=question))
    row.get_by_text("1 verdict against its answers").wait_for()
    row.get_by_text("not answered yet").wait_for()


def test_the_story_by_keyboard_alone(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    page.get_by_label("Question", exact=True).wait_for()
    reach(page, "Skip to the page")
    page.keyboard.press("Enter")
    reach(page, "Question")
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.wait_for_selector(".passage")
    reach(page, f"Helped: {BORN}")
    page.keyboard.press("Space")
    assert page.get_by_label(f"Helped: {BORN}").get_attribute("aria-pressed") == "true"
    reach(page, "Judge")
    page.keyboard.press("Enter")
    page.locator("#changed").wait_for()
    reach(page, "What it learned")
    page.keyboard.press("Enter")
    page.locator("svg.line").first.wait_for()
    reach(page, BORN)
    page.keyboard.press("Enter")
    page.locator("dialog[open] table").first.wait_for()
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0


def test_a_page_that_the_key_does_not_allow_is_not_there(
    opened: Opened, guarded: tuple[str, Application], curie: str
) -> None:
    url, locked = guarded
    reader = locked.auth.access_keys.make(
        LOCAL, AccessKeyRequest(name="reader", scopes={curie: ["query"]}), "local"
    )
    page = opened(url)
    page.get_by_label("Access key").fill("engram_no")
    page.get_by_role("button", name="Open").click()
    page.get_by_role("alert").wait_for()
    page.get_by_label("Access key").fill(reader.key)
    page.get_by_role("button", name="Open").click()
    page.get_by_label("Question", exact=True).wait_for()
    shown = [link.inner_text().strip() for link in page.locator(".side nav a").all()]
    assert shown == ["Ask", "Why", "Sessions", "Facts", "Health"]
    ask(page)
    assert page.get_by_role("button", name=re.compile("elp")).count() == 0, "it may not judge"
    assert page.evaluate("sessionStorage.getItem('engram.key')") == reader.key
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Forget key").click()
    page.get_by_label("Access key").wait_for()
    assert page.evaluate("sessionStorage.getItem('engram.key')") is None


def test_a_revocation_is_looked_at_and_then_done(opened: Opened, service: str, taught: str) -> None:
    page = opened(service, place("learned/verdicts", taught))
    page.locator("td a", has_text="Verdict").first.click()
    page.get_by_text("If it were revoked").wait_for()
    assert page.locator("dialog tr", has_text=BORN).count() >= 1
    page.locator("dialog").get_by_role("button", name="Revoke verdict").click()
    page.get_by_text("It counts for nothing any more.").wait_for()


def test_a_file_becomes_passages(
    opened: Opened, service: str, collection: str, curie: str, working: None, tmp_path: Path
) -> None:
    page = opened(service, place("collections", curie))
    page.get_by_label("Into collection").fill(f"{collection}-new")
    lines = [{"id": "titan", "title": "Titan", "text": "Titan has lakes of liquid methane."}, {"id": "no text"}]
    (tmp_path / "moons.jsonl").write_text("\n".join(map(json.dumps, lines)))
    page.get_by_label("Files to send").set_input_files(tmp_path / "moons.jsonl")
    page.locator(".badge", has_text="succeeded").wait_for()
    page.get_by_text("1 new, 1 rejected").wait_for()
    page.get_by_role("button", name="Rejected lines").click()
    page.get_by_text("Line 2").wait_for()


def test_a_document_is_converted_by_the_service(
    opened: Opened, service: str, collection: str, curie: str, working: None, tmp_path: Path
) -> None:
    page = opened(service, place("collections", curie))
    page.get_by_label("Into collection").fill(f"{collection}-new")
    (tmp_path / "note.txt").write_bytes("Café Zürich opens at nine.".encode("latin-1"))
    (tmp_path / "scan.pdf").write_bytes(b"%PDF-1.7 and nothing else")
    page.get_by_label("Files to send").set_input_files(
        [DOCUMENTS / "handbook.pdf", tmp_path / "note.txt", tmp_path / "scan.pdf"]
    )
    page.get_by_text("handbook.pdf: 4 passages; its job is below.").wait_for()
    page.get_by_text("note.txt: read as Windows-1252").first.wait_for()  # also among the notes of its job
    page.get_by_text("scan.pdf was not taken.").wait_for()
    page.get_by_text("is no PDF that can be read").wait_for()
    page.get_by_text("4 new").wait_for()
    shown = page.request.get(f"{service}/passages/handbook.pdf%233?collection={collection}-new").json()
    assert (shown["metadata"]["page"], shown["metadata"]["heading"]) == (2, ["Travel", "Abroad"])


def test_a_document_is_deleted(opened: Opened, service: str, curie: str, working: None, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("The Café Zürich opens at nine.")
    page = opened(service, place("collections", curie))
    page.get_by_label("Into collection").fill(curie)
    page.get_by_label("Files to send").set_input_files(tmp_path / "note.txt")
    page.get_by_text("1 new").wait_for()
    page.reload()
    page.get_by_label("Names that begin with").fill("other")
    page.get_by_role("button", name="Find").click()
    page.get_by_text("No document has such a name.").wait_for()
    page.get_by_label("Names that begin with").fill("note")
    page.get_by_role("button", name="Find").click()
    page.get_by_role("button", name="note.txt", exact=True).click()
    page.get_by_role("dialog").get_by_text("The Café Zürich opens at nine.").wait_for()
    page.get_by_role("button", name="Close").click()
    page.get_by_role("button", name="Delete note.txt").click()
    page.get_by_text("This deletes its 1 passage.").wait_for()
    page.get_by_role("button", name="Delete document").click()
    page.get_by_role("button", name="Delete note.txt").wait_for(state="detached")
    with Engram(service, collection=curie) as engram:
        assert "note.txt" not in {passage.passage_id.partition("#")[0] for passage in engram.query("Café").passages}


def test_who_reads_each_passage_is_shown(opened: Opened, service: str, curie: str) -> None:
    changed = httpx.patch(
        f"{service}/passages/warsaw", params={"collection": curie}, json={"readers": ["group:hr"]}, timeout=60
    )
    changed.raise_for_status()
    page = opened(service, place("collections", curie))
    passages = page.locator(".panel", has=page.get_by_role("heading", name="Passages", exact=True))
    passages.locator("tr").last.wait_for()
    shown = [row.locator("td").all_inner_texts() for row in passages.locator("tbody tr").all()]
    assert {cells[0]: cells[-1] for cells in shown} == {
        "curie": "everyone",
        "polonium": "everyone",
        "tokyo": "everyone",
        "vistula": "everyone",
        "warsaw": "group:hr",
    }


def test_rounds_come_as_they_are_done(opened: Opened, service: str, curie: str, working: None) -> None:
    page = opened(service, place("sessions", curie))
    page.get_by_label("Question of the session").fill("Into which sea flows the river of Marie Curie's birthplace?")
    page.get_by_role("button", name="Start").click()
    page.locator(".rounds li").first.wait_for()
    page.get_by_text("stopped:").wait_for()
    assert page.get_by_text("Pool of evidence").count() == 1
    text = page.locator("main").inner_text()
    assert re.search(r"\bcovered\b", text) is None, "the gauge alone says whether it is enough"
    page.get_by_role("link", name="Sessions", exact=True).click()
    page.locator("tr", has_text="Marie Curie's birthplace").get_by_text("stopped").wait_for()


def test_a_session_that_knows_no_further_question_says_whether_its_evidence_is_enough(
    opened: Opened, service: str, curie: str, working: None
) -> None:
    with Engram(service, collection=curie) as engram:
        engram.start_session(QUESTION)
    page = opened(service, place("ask", curie))

    def answer_as_without_a_gap(sufficiency: float) -> None:
        def change(route: Any) -> None:
            listed = route.fetch().json()
            for one in listed["sessions"]:
                one |= {"status": "stopped", "stop_reason": "no_gap", "sufficiency": sufficiency}
            route.fulfill(json=listed)

        page.unroute("**/sessions?*")
        page.route("**/sessions?*", change)
        page.get_by_role("link", name="Ask", exact=True).click()
        page.get_by_role("link", name="Sessions", exact=True).click()

    answer_as_without_a_gap(0.9)
    page.locator("tr", has_text=QUESTION).get_by_text("its evidence is probably enough").wait_for()
    answer_as_without_a_gap(0.1)
    page.locator("tr", has_text=QUESTION).get_by_text("it knows no further question").wait_for()


def test_an_empty_page_offers_what_its_own_collection_holds(opened: Opened, service: str, curie: str) -> None:
    for name in ("ask", "sessions"):
        page = opened(service, place(name, curie))
        page.get_by_role("link", name="Marie Curie", exact=True).wait_for()
        assert page.get_by_text("sample collection").count() == 0


def test_a_collection_of_another_encoder_offers_no_question(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("health", curie))
    page.route(
        "**/readyz",
        lambda route: route.fulfill(json=page.request.get(route.request.url).json() | {"encoder": "other"}),
    )
    page.goto(f"{service}/{place('ask', curie)}")
    page.reload()
    page.get_by_text("this service runs other: it answers no question").wait_for()
    assert page.locator(".samples").count() == 0


def state_facts(page: Any, service: str, collection: str) -> None:
    for source, chair, since in (("gazette", "Ana Diaz", "2001-01-01"), ("rumour", "Bo Lind", "2002-01-01")):
        fact = {"subject": "Acme", "predicate": "chair", "object": chair, "valid_from": since}
        fact |= {"valid_to": "2009-01-01"}
        page.request.post(f"{service}/facts", data={"collection": collection, "source": source, "facts": [fact]})
    page.request.put(
        f"{service}/predicates", data={"collection": collection, "predicate": "chair", "functional": True}
    )


def test_facts_show_neighbours_conflicts_and_times(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("facts", curie))
    state_facts(page, service, curie)
    page.reload()
    page.get_by_label("Name or question").fill("Acme")
    page.get_by_role("button", name="Look").click()
    page.locator(".factlist li").nth(1).wait_for()
    assert page.locator(".badge", has_text="in conflict").count() == 2
    page.get_by_text("At a time").click()
    page.get_by_label("Year").fill("2001")
    page.locator(".factlist li").nth(1).wait_for(state="detached")
    assert "Ana Diaz" in page.locator(".factlist").inner_text()
    page.locator(".factlist button").first.click()
    page.get_by_role("button", name="Confirm").click()
    page.locator("dialog .badge", has_text="confirm").wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_has_what_axe_objects_to(opened: Opened, service: str, taught: str, theme: str) -> None:
    page = opened(service, place("ask", taught), theme)
    state_facts(page, service, taught)
    found = {}
    for name in PAGES:
        page.goto(f"{service}/{place(name, taught)}")
        page.wait_for_selector("main h1")
        if name == "ask":
            ask(page)
            page.get_by_label(f"Helped: {BORN}").click()
            page.get_by_role("button", name="Judge", exact=True).click()
            page.locator("#changed").wait_for()
        if name == "facts":
            page.get_by_label("Name or question").fill("Acme")
            page.get_by_role("button", name="Look").click()
            page.locator(".factlist li").first.wait_for()
        page.locator(".spin").first.wait_for(state="detached")
        found |= {f"{name}: {one}": where for one, where in violations(page).items()}
    assert found == {}


def test_chosen_theme_persists(opened: Opened, service: str, curie: str) -> None:
    page = opened(service, place("ask", curie))
    page.get_by_label("Question", exact=True).wait_for()
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator(".foot label", has_text="Dark").click()
    page.locator('html[data-theme="dark"]').wait_for()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark
    page.reload()
    page.get_by_label("Question", exact=True).wait_for()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark
