"""The console's page of the tuned question encoder in a real Chromium."""

from dataclasses import replace

import pytest

from engram.composition.container import Application
from engram.wings.tuning.parts import tuning_of
from tests.console.conftest import Opened
from tests.console.console_page import place, violations
from tests.support.tuned import PERMISSIVE, finish_jobs, judge_questions

pytestmark = [pytest.mark.browser, pytest.mark.wing("tuning")]


def test_generations_are_shown_served_and_withdrawn(
    opened: Opened, application: Application, service: str, curie: str, working: None
) -> None:
    judge_questions(application, curie)
    scope = application.auth.access.scope(curie)
    tuning = tuning_of(application).tuning
    tuning.request(scope)
    finish_jobs(application, replace(PERMISSIVE, z=1e9))
    judge_questions(application, curie, [("What is radioactive?", "polonium")])
    tuning.request(scope)
    finish_jobs(application)

    page = opened(service, place("learned/tuning", curie))
    page.get_by_role("heading", name="Generation 2 serves").wait_for()
    assert page.get_by_text("7 judged questions. The next attempt comes at 40.").is_visible()
    used, refused = (page.locator("tbody tr").nth(row) for row in (0, 1))
    assert used.get_by_text("Used: held-out questions").is_visible()
    assert refused.get_by_text("Not used: held-out questions").is_visible()
    assert refused.get_by_text("±").count() > 0
    assert "6 questions" in page.get_by_role("img").get_attribute("aria-label")
    assert violations(page) == {}

    page.get_by_role("button", name="Back to the encoder as it is").click()
    page.get_by_text("The encoder serves as it is.", exact=True).wait_for()
    page.get_by_role("button", name="Serve generation 2").click()
    page.get_by_text("Generation 2 serves.", exact=True).wait_for()
    page.get_by_role("button", name="Learn now").click()
    page.get_by_text("Not learned: verdicts on 5 needs, of 20 at least").first.wait_for()

    phone = opened(service, place("learned/tuning", curie), "dark")
    phone.set_viewport_size({"width": 390, "height": 844})
    phone.get_by_role("button", name="Withdraw generation 2").click()
    assert violations(phone) == {}
    phone.locator("dialog").get_by_role("button", name="Withdraw generation 2").click()
    phone.get_by_text("Generation 2 is withdrawn.").wait_for()
    phone.get_by_role("heading", name="The encoder serves as it is").wait_for()
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(phone) == {}
    phone.locator("label", has_text="Off").first.click()
    phone.get_by_text("Tuning is off: the encoder serves as it is.").wait_for()
    phone.get_by_role("button", name="Learn now", disabled=True).wait_for()
