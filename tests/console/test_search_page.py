"""The search page in a real Chromium: by a login, with what each person may read, by keyboard, and more."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from pydantic import SecretStr

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.runtime.api_process import create_app
from engram.services.auth.access_key_service import AccessKeyRequest
from engram.services.auth.scope import LOCAL
from engram_client import Engram
from tests.conftest import Heavy
from tests.console.conftest import Opened
from tests.console.console_page import reach, violations
from tests.support.identity_provider import IdentityProvider
from tests.support.live_server import LiveServer

pytestmark = pytest.mark.browser

QUESTION = "What does Marie Curie earn?"
WAGE = "Marie Curie earns 7,000 crowns."
PASSAGES = [
    {"id": "pay.pdf#1", "text": "All wages are paid in crowns, on the last day.", "metadata": {"topic": "pay"},
     "document": "pay.pdf"},
    {"id": "pay.pdf#2", "text": f"Wages of the laboratory.\n{WAGE} She has it in gold.", "title": "Wages",
     "metadata": {"topic": "pay", "page": 3}, "document": "pay.pdf", "readers": ["group:hr"]},
    {"id": "hours", "text": "The office in Warsaw opens at eight.", "metadata": {"topic": "hours",
     "valid_from": "2026-01-01", "valid_until": "2026-06-30"}, "document": "hours.md"},
    {"id": "doors", "text": "The office in Paris opens at nine.", "metadata": {"topic": "hours"}},
]  # fmt: skip
RULES = [f"Rule {number} is kept by all." for number in range(90)]
TRAVEL = [
    " ".join([*RULES[:40], "A taxi is never paid."]),
    " ".join(["A taxi is never paid.", *RULES[40:45], "The hotel in Prague costs 90 euros.", *RULES[45:60]]),
    " ".join(RULES[59:]),
]
"""Passages as an import cuts them: below one heading, each with the last sentence of the one before it."""
STEPS = """Lockers
Each locker of the hall has a key that lies at the desk of the guard. It is red. Nobody else keeps another.
1. Ask the guard for the key of your locker, who writes down your name, and say for how long you will need it today.
2. Open the locker and leave the wet umbrella outside of it, where a stand is for the umbrellas of all visitors.
3. Bring the key back in the evening.
    lockers open --hall north --all
      # all of them
The hall closes at eight, and the guard walks through it once before. Who forgot a thing rings at the side door.
A parcel of more than ten kilograms is kept by the porter, who sits in the yard behind it, for a week at most."""
"""As an import writes steps and code; longer than what is shown at first."""


@pytest.fixture(scope="module")
def provider() -> Iterator[IdentityProvider]:
    with IdentityProvider.serve({"wages": ["query", "read", "judge"]}) as served:
        yield served


@pytest.fixture(scope="module")
def guarded(settings: Settings, own: Servers, heavy: Heavy, provider: IdentityProvider) -> Iterator[str]:
    """The address of a service that people log in to, with wages that some may read."""
    given = {"access": "keys", "jwt_issuer": provider.url, "login_client": SecretStr("pages")}
    services = Application(settings.model_copy(update=given), own, consumer="search")
    services.models.embedder, services.models.language = heavy
    with LiveServer(create_app(services)) as served:
        assert services.models.provider_keys is not None
        assert services.models.provider_keys.wait(30)
        key = services.auth.access_keys.make(LOCAL, AccessKeyRequest(name="boss", scopes={"*": ["admin"]})).key
        with Engram(served.url, collection="wages", key=key) as boss:
            boss.ingest(PASSAGES)
            boss.ingest(
                [
                    {"id": f"travel.md#{at}", "document": "travel.md", "text": f"Travel\n{text}"}
                    for at, text in enumerate(TRAVEL)
                ],
                collection="rules",
            )
            boss.ingest([{"id": "lockers", "title": "Lockers", "text": STEPS}], collection="lockers")
        services.jobs.runner.run_ready()
        yield served.url
    services.close()


Visit = Callable[..., Any]


@pytest.fixture
def visit(opened: Opened, guarded: str, provider: IdentityProvider) -> Visit:
    """Opens the answer to a question as a person of some groups."""

    def open_as(person: str, *groups: str, question: str = QUESTION, theme: str = "light") -> Any:
        provider.person, provider.groups = person, [*groups]
        return opened(guarded, f"search?q={quote(question)}", theme, login=provider.url)

    return open_as


def test_people_log_in_and_find_what_they_may_read(visit: Visit, provider: IdentityProvider) -> None:
    page = visit("ana", "hr")
    result = page.locator("article", has=page.locator("mark", has_text=WAGE))
    result.wait_for()
    assert "pay.pdf, Page 3" in result.inner_text()
    topics = page.get_by_role("group", name="topic")
    topics.get_by_role("button", name="pay (2)").wait_for()
    assert parse_qs(urlsplit(page.url).query) == {"q": [QUESTION], "c": ["wages"]}, "the address of the answer"
    page.get_by_role("button", name="Log out").click()
    result.wait_for(state="detached")
    provider.person, provider.groups = "bo", []
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("You are bo.").wait_for()
    topics.get_by_role("button", name="pay (1)").wait_for()
    assert WAGE not in page.locator("body").inner_text()


def test_a_login_that_ended_leads_back_to_the_same_answer(visit: Visit) -> None:
    page = visit("ana", "hr")
    page.locator("mark", has_text=WAGE).wait_for()
    page.context.clear_cookies()
    page.get_by_label("Question").fill("When does the office open?")
    page.keyboard.press("Enter")
    page.locator("mark", has_text="opens at").first.wait_for()
    assert parse_qs(urlsplit(page.url).query)["q"] == ["When does the office open?"]


def rate_wage(page: Any) -> tuple[Any, Any]:
    """Say that the result about the wage helped; return that result and its button."""
    result = page.locator("article", has=page.locator("mark", has_text=WAGE))
    up = result.get_by_role("button", name="Helped", exact=True)
    up.click()
    result.get_by_text("Thank you.").wait_for()
    return result, up


def test_thumbs_say_what_they_did(visit: Visit) -> None:
    page = visit("ana", "hr")
    result = page.locator("article", has=page.locator("mark", has_text=WAGE))
    up, down = (result.get_by_role("button", name=name, exact=True) for name in ("Helped", "Did not help"))
    up.click()
    result.get_by_text("From the next search on, this passage goes up").wait_for()
    assert up.get_attribute("aria-pressed") == "true"
    down.click()
    result.get_by_text("this passage goes down").wait_for()
    assert up.get_attribute("aria-pressed") == "false"
    down.click()
    result.get_by_text("taken back").wait_for()
    assert down.get_attribute("aria-pressed") == "false"


def test_thumbs_are_shown_again_and_taken_back(visit: Visit, provider: IdentityProvider) -> None:
    page = visit("ana", "hr")
    result, up = rate_wage(page)
    page.reload()
    up.wait_for()
    assert up.get_attribute("aria-pressed") == "true", "it is forgotten"
    with page.expect_request(lambda sent: sent.method == "DELETE") as revoked:
        up.click()
    result.get_by_text("taken back").wait_for()
    assert revoked.value.response().json()["status"] == "revoked"
    page.get_by_role("button", name="Search").click()
    page.get_by_text("Searching …").wait_for(state="detached")
    up.wait_for()
    assert up.get_attribute("aria-pressed") == "false"


@pytest.mark.parametrize("status", [404, 409])
def test_a_rating_that_is_gone_is_not_said_to_be_taken_back(visit: Visit, status: int) -> None:
    page = visit("ana", "hr")
    result, up = rate_wage(page)
    page.reload()
    page.route("**/feedback/*", lambda route: route.fulfill(status=status, json={"title": "Gone"}))
    up.click()
    result.get_by_text("This earlier rating is gone").wait_for()
    assert up.get_attribute("aria-pressed") == "false"


def test_thumbs_are_forgotten_with_the_login(visit: Visit, provider: IdentityProvider) -> None:
    page = visit("ana", "hr")
    _, up = rate_wage(page)
    page.get_by_role("button", name="Log out").click()
    provider.person = "bo"
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("You are bo.").wait_for()
    up.wait_for()
    assert up.get_attribute("aria-pressed") == "false"


def test_a_value_narrows_the_search_and_stands_in_the_address(visit: Visit) -> None:
    page = visit("ana", "hr", question="When does the office open?")
    wage, office = page.locator("article", has_text=WAGE), page.locator("article", has_text="Warsaw")
    wage.wait_for()
    page.get_by_role("button", name="hours (2)").click()
    wage.wait_for(state="detached")
    office.wait_for()
    assert parse_qs(urlsplit(page.url).query)["filter"] == ['{"topic":"hours"}']
    page.reload()
    office.wait_for()
    assert wage.count() == 0
    chosen = page.get_by_role("button", name="hours (2)", pressed=True)
    chosen.click()
    wage.wait_for()
    page.go_back()
    wage.wait_for(state="detached")


def test_a_result_says_when_its_document_holds(visit: Visit) -> None:
    page = visit("ana", "hr", question="When does the office in Warsaw open?")
    page.locator("article", has_text="Warsaw").get_by_text("Jan 1, 2026 – Jun 30, 2026").wait_for()
    assert page.get_by_role("group", name="valid").count() == 0


def test_who_lists_no_collection_names_one(
    visit: Visit, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "scopes", {"*": ["query"]})
    page = visit("cy", "hr", question="")
    page.get_by_label("Search in").fill("wages")
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    page.locator("mark", has_text=WAGE).wait_for()


def test_what_stands_around_is_shown_on_demand(visit: Visit) -> None:
    page = visit("ana", "hr")
    result = page.locator("article", has=page.locator("mark", has_text=WAGE))
    result.wait_for()
    assert "on the last day" not in result.inner_text()
    result.get_by_role("button", name="Show what stands around it").click()
    result.get_by_text("on the last day").wait_for()


def test_the_sentence_stays_where_it_is_and_nothing_stands_twice(
    visit: Visit, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "scopes", {"rules": ["query"]})
    page = visit("ana", question="What does the hotel in Prague cost?")
    page.set_viewport_size({"width": 390, "height": 500})
    result = page.locator("article", has=page.locator("mark", has_text="Prague"))
    mark = result.locator("mark")
    for name in ("Show what stands around it", "Show less"):
        mark.wait_for()
        before = mark.evaluate("mark => (mark.scrollIntoView({block: 'center'}), mark.getBoundingClientRect().top)")
        # A click through the mouse would scroll to the button.
        result.get_by_role("button", name=name).evaluate("button => button.click()")
        page.wait_for_function(
            "() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(true))))"
        )
        assert abs(mark.evaluate("mark => mark.getBoundingClientRect().top") - before) < 2, name
        if name == "Show less":
            continue
        text = result.inner_text()
        assert [text.count(one) for one in ("Travel\n", "A taxi", "Rule 0 ", "Rule 59 ", "Rule 89 ")] == [1] * 5


@pytest.mark.parametrize(
    ("sufficiency", "said"),
    [
        (0.1, "No clear answer was found. These passages are the nearest; other words may find better ones."),
        (0.5, "These passages fit best."),
        (0.75, "The answer is likely here."),
        (0.95, "The answer is very likely here."),
    ],
)
def test_the_page_says_how_probably_the_answer_is_there(visit: Visit, sufficiency: float, said: str) -> None:
    page = visit("ana", "hr", question="")

    def answer(route: Any) -> None:
        level = {"value": 0.3, "source": "prior", "confirmed": 0}
        changed = {"sufficiency": sufficiency, "sufficiency_level": level}
        route.fulfill(json=route.fetch().json() | changed)

    page.route("**/query", answer)
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    page.get_by_text(said, exact=True).wait_for()
    page.get_by_text(WAGE).wait_for()
    assert page.locator("mark").count() > 0 or sufficiency < 0.3
    assert page.get_by_role("button", name="Yes, it is missing").count() == (sufficiency < 0.7)


def test_an_answer_is_said_to_be_missing_and_is_not(visit: Visit) -> None:
    page = visit("ana", "hr", question="Which train leads to the moon?")
    page.route("**/feedback", lambda route: route.continue_())  # or else its body is not seen
    missing = page.get_by_role("button", name="Yes, it is missing")
    with page.expect_request("**/feedback") as judged:
        missing.click()
    page.get_by_text("noted as missing; no passage moves").wait_for()
    assert {"rating": "down", "reason": "missing"}.items() <= judged.value.post_data_json.items()
    page.reload()
    missing.click()
    page.get_by_text("Your rating is taken back.").wait_for()
    assert missing.get_attribute("aria-pressed") == "false"


def test_a_key_leads_back_to_the_question(visit: Visit) -> None:
    page = visit("ana", "hr")
    page.locator("article").first.wait_for()
    page.set_viewport_size({"width": 390, "height": 200})
    page.get_by_role("button", name="Helped", exact=True).last.focus()
    box = page.get_by_label("Question")
    above = "box => box.getBoundingClientRect().top < 0"
    assert box.evaluate(above)
    page.keyboard.press("/")
    assert not box.evaluate(above)
    page.keyboard.type("When?/")
    assert page.get_by_label("Question").input_value() == "When?/"


def test_one_of_several_collections_is_chosen(
    visit: Visit, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "scopes", {"wages": ["query"], "rules": ["query"]})
    page = visit("ana", "hr", question="")
    page.get_by_label("Search in").select_option("wages")
    page.get_by_role("heading", name="Search in wages").wait_for()
    page.get_by_label("Question").fill(QUESTION)
    page.keyboard.press("Enter")
    page.locator("mark", has_text=WAGE).wait_for()
    assert page.title() == f"{QUESTION} – Search in wages"


def test_a_collection_that_is_not_there_leads_to_one_that_is(visit: Visit) -> None:
    page = visit("ana", "hr")
    page.locator("mark", has_text=WAGE).wait_for()
    page.goto(page.url.replace("c=wages", "c=wagse"))
    refused = page.get_by_role("alert")
    refused.get_by_role("button", name="wages", exact=True).wait_for()
    assert refused.get_by_role("button", name="Try again").count() == 0
    refused.get_by_role("button", name="wages", exact=True).click()
    page.locator("mark", has_text=WAGE).wait_for()
    assert parse_qs(urlsplit(page.url).query)["c"] == ["wages"]
    assert page.evaluate("document.activeElement.role") == "status"


def test_steps_and_commands_are_shown_as_such(
    visit: Visit, provider: IdentityProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "scopes", {"lockers": ["query"]})
    page = visit("ana", question="Where do I leave my wet umbrella?")
    page.set_viewport_size({"width": 390, "height": 844})
    result = page.locator("article")
    result.locator("mark", has_text="leave the wet umbrella outside").wait_for()

    def prefer_another(route: Any) -> None:
        found = route.fetch().json()
        for one in found["passages"][0]["sentences"]:
            one["score"] = 1.0 if "rings at the side door" in one["text"] else None
        route.fulfill(json=found)

    page.route("**/query", prefer_another)
    page.reload()
    result.locator("mark", has_text="leave the wet umbrella outside").wait_for()
    page.unroute("**/query")
    assert "2. Open the locker" in result.inner_text()
    assert [code.strip() for code in result.locator("code").all_inner_texts()] == [
        "lockers open --hall north --all",
        "# all of them",
    ]
    assert all(
        box == 1
        for box in result.locator(".option").evaluate_all("all => all.map(one => one.getClientRects().length)")
    )
    shown = result.locator("p").last.inner_text()
    assert shown.startswith("… ") is not shown.startswith("Lockers")
    assert shown.removeprefix("… ").startswith(("Lockers", "Each locker", "It is red.", "Nobody", "1. Ask"))
    assert shown.removesuffix(" …").endswith((".", "# all of them")), "an excerpt ends with a sentence"


def test_results_have_names_of_their_own_and_unfolding_keeps_the_focus_in_sight(visit: Visit) -> None:
    page = visit("ana", "hr")
    page.set_viewport_size({"width": 390, "height": 500})
    page.locator("mark", has_text=WAGE).wait_for()
    names = page.get_by_role("group").evaluate_all("all => all.map(one => one.ariaLabel).filter(Boolean)")
    assert len(names) == len(set(names)) > 2
    page.get_by_role("button", name="Show what stands around it").first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Show less").wait_for()
    top, height = page.evaluate(
        "(() => { const at = document.activeElement.getBoundingClientRect(); return [at.top, innerHeight]; })()"
    )
    assert page.evaluate("document.activeElement.tagName") == "MARK"
    assert 0 <= top < height


def test_a_long_question_is_seen_whole_on_a_phone(visit: Visit) -> None:
    question = "What does the discoverer of radium, who was born in Warsaw, earn for her work in the laboratory?"
    page = visit("ana", "hr", question=question)
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("article").first.wait_for()
    box = page.get_by_label("Question")
    assert box.evaluate("box => box.scrollHeight <= box.clientHeight && box.clientHeight > 60")
    box.fill("Who?")
    assert box.evaluate("box => box.clientHeight < 60")


def test_an_empty_question_and_old_results(visit: Visit) -> None:
    page = visit("ana", "hr")
    page.locator("mark", has_text=WAGE).wait_for()
    page.route("**/query", lambda _: None)
    page.get_by_label("Question").fill("When does the office open?")
    page.keyboard.press("Enter")
    page.get_by_text("Searching …").wait_for()
    assert page.locator("article").count() == 0, "results of the question before"
    page.get_by_label("Question").fill(" ")
    page.keyboard.press("Enter")
    page.get_by_text("A question is needed.").wait_for()


def test_german_says_what_its_button_does(browser: Any, guarded: str) -> None:
    context = browser.new_context(locale="de-DE")
    page = context.new_page()
    page.goto(f"{guarded}/search?q=")
    page.get_by_role("button", name="Suchen", exact=True).wait_for()
    context.close()


def test_a_slow_and_a_failing_service(visit: Visit) -> None:
    page = visit("ana", "hr")
    page.locator("mark", has_text=WAGE).wait_for()
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.clock.install()
    page.route("**/query", hold)
    page.reload()
    page.get_by_text("Searching …").wait_for()
    page.clock.fast_forward(5_000)
    page.get_by_text("The service is slow just now").wait_for()
    page.route("**/query", lambda route: route.fulfill(status=500, json={"title": "Internal error"}))
    held[0].fulfill(status=500, json={"title": "Internal error"})
    page.get_by_role("alert").get_by_text("The service cannot answer just now.").wait_for()
    page.unroute("**/query")
    page.get_by_role("button", name="Try again").click()
    page.locator("mark", has_text=WAGE).wait_for()


def test_a_question_by_keyboard_alone(visit: Visit) -> None:
    page = visit("ana", "hr", question="")
    page.get_by_text("You are ana.").wait_for()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Enter")
    page.locator("mark", has_text=WAGE).wait_for()
    reach(page, "Helped")
    page.keyboard.press("Space")
    page.get_by_text("Thank you.").first.wait_for()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_shows_all_and_axe_objects_to_nothing(visit: Visit, theme: str) -> None:
    page = visit("ana", "hr", theme=theme)
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("mark", has_text=WAGE).wait_for()
    page.get_by_role("button", name="Helped", exact=True).first.click()
    page.get_by_text("Thank you.").first.wait_for()
    assert violations(page) == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Log in").wait_for()
    assert violations(page) == {}


def test_the_field_needs_no_script(browser: Any, guarded: str) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{guarded}/search")
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_role("button", name="Search").click()
    page.wait_for_url("**/search?q=What*")
    context.close()
