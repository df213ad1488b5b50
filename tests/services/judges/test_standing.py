"""New judges: what they may move, how their weight grows, and that all of it follows from the log."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from engram.composition.container import Application
from engram.core.auth.access_keys import ALL_GRANTS
from engram.core.learning.judge_standing import ESTABLISHED, JudgeStanding
from engram.core.learning.logged_verdict import Expansion
from engram.services.auth.scope import LOCAL, Principal
from engram.services.verdict.verdict import NamedSentence, Verdict
from tests.support import state, undo

QUESTION = "Where was Marie Curie born?"
BEFORE, TODAY = "2026-05-01", "2026-05-02"


def principal(name: str, *, trusted: bool = False) -> Principal:
    return Principal(name, LOCAL.tenant, ALL_GRANTS, judges_as=name, trusted=trusted)


def say(
    application: Application,
    collection: str,
    by: str | Principal,
    supporting: Sequence[int] = (),
    rejected: Sequence[int] = (),
    *,
    question: str = QUESTION,
    day: str = TODAY,
    **more: Any,
) -> Any:
    """One principal's verdict on an answer of its own, applied: its detail."""
    who = principal(by) if isinstance(by, str) else by
    scope = replace(application.auth.access.scope(collection), principal=who)
    query_id: UUID = state.add_episode(application, collection, question, [])
    verdict = Verdict(
        query_id=query_id,
        scope=scope,
        supporting=[NamedSentence(sentence) for sentence in supporting],
        rejected=[NamedSentence(sentence) for sentence in rejected],
        partial=True,
        **more,
    )
    event = application.learning.verdicts.accept(verdict, str(uuid4())).event.id
    state.on_day(application, collection, event, day)
    undo.apply(application, collection, [event])
    return application.learning.verdicts.read(application.auth.access.scope(collection), event)


def gains(detail: Any) -> dict[str, float]:
    return {row.channel: row.gain for row in detail.changes}


def task(application: Application, collection: str, sentence: int) -> dict[str, Any]:
    rows = state.rows(application, collection, "sentence_memory", undo.INCIDENTAL)
    (row,) = [row for row in rows if row["sentence_id"] == sentence]
    return row


@pytest.fixture
def said(application: Application, curie: str) -> list[int]:
    """The sentences, of which a trusted judge supported the first."""
    found = state.list_sentence_ids(application, curie)
    say(application, curie, LOCAL, [found[0]], judge="honest", day=BEFORE)
    return found


class TestCaps:
    @pytest.mark.wing("published")
    def test_all_new_judges_together_move_a_memory_only_so_far_a_day(
        self, application: Application, curie: str, said: list[int]
    ) -> None:
        most = application.models.noise.newcomers
        left = 1.0
        for n in range(12):
            left *= 1.0 - gains(say(application, curie, f"new-{n}", [said[3]]))["task"]
        assert 1.0 - left == pytest.approx(most)
        undo.assert_verified(application, curie)

    @pytest.mark.wing("published")
    def test_many_new_names_do_not_undo_a_trusted_word(
        self, application: Application, curie: str, said: list[int]
    ) -> None:
        before = task(application, curie, said[0])
        left = 1.0
        for n in range(20):
            left *= 1.0 - gains(say(application, curie, f"new-{n}", rejected=[said[0]]))["recall"]
        assert 1.0 - left <= application.models.noise.contested + 1e-9
        assert task(application, curie, said[0])["gain_budgets"] != before["gain_budgets"]
        (row,) = [
            row for row in state.rows(application, curie, "question_support") if row["sentence_id"] == said[0]
        ]
        assert row["judge_statements"] == [[["honest", 1]]], "words of new judges outvote nobody"
        again = gains(say(application, curie, LOCAL, [said[0]], judge="honest"))
        assert again["task"] > 0.2, "and take nothing from those who are trusted"
        undo.assert_verified(application, curie)

    def test_they_teach_neither_the_ranking_nor_keys(
        self, application: Application, curie: str, said: list[int]
    ) -> None:
        say(application, curie, "new", [said[3]], expansions=[Expansion("prf", "radium")], retrieval_success=True)
        assert state.rows(application, curie, "key_evidence") == []
        assert state.rows(application, curie, "learned_weights") == []
        undo.assert_verified(application, curie)

    @pytest.mark.wing("published")
    def test_other_words_for_the_question_do_not_escape(
        self, application: Application, curie: str, said: list[int]
    ) -> None:
        most = application.models.noise.contested
        for asked in (f"{QUESTION}?", "where was  marie curie born", "Where was Marie Curie born, please?"):
            detail = say(application, curie, f"new {asked[-7:].strip('?.')}", rejected=[said[0]], question=asked)
            assert gains(detail)["task"] <= most
        events = state.rows(application, curie, "feedback_event")
        assert {row["daily_share"] for row in events if row["judge"] == "new please"} == {most}, (
            "asked in other words"
        )
        assert len(state.rows(application, curie, "question")) == 2
        undo.assert_verified(application, curie)


class TestStanding:
    def test_the_weight_is_the_mean_of_a_beta_belief(self) -> None:
        assert JudgeStanding().mean == 1 / 5
        assert JudgeStanding(agreed=3).weight == 4 / 8
        assert JudgeStanding(agreed=10).mean == 11 / 15 < ESTABLISHED
        assert JudgeStanding(agreed=11).weight == 1.0
        assert JudgeStanding(agreed=11, disagreed=1).weight == 12 / 17

    def test_it_grows_with_agreement_from_the_next_day_on(
        self, application: Application, curie: str, said: list[int]
    ) -> None:
        for n, sentence in enumerate(said[1:]):
            question = f"What about {n}?"
            say(application, curie, LOCAL, [sentence], judge="honest", question=question, day=BEFORE)
            say(application, curie, "eager", [sentence], question=question, day=BEFORE)
        wrong = said[1]
        say(application, curie, LOCAL, rejected=[wrong], judge="honest", question="Wrong?", day=BEFORE)
        say(application, curie, "liar", [wrong], question="Wrong?", day=BEFORE)

        (first,) = {
            row["standing"] for row in state.rows(application, curie, "feedback_event") if row["judge"] == "eager"
        }
        assert first == 0.2
        agreed = len(said) - 1
        say(application, curie, "eager", [said[0]], question="Another?")
        say(application, curie, "liar", [said[0]], question="Another?")
        standing = {
            row["judge"]: row["standing"]
            for row in state.rows(application, curie, "feedback_event")
            if row["received_at"].startswith(TODAY)
        }
        assert standing["eager"] == JudgeStanding(agreed=agreed).weight
        assert standing["liar"] == JudgeStanding(disagreed=1).weight

        views = application.learning.judges.page(application.auth.access.scope(curie), "", 10)
        shown = {view.judge.name: view.standing for view in views}
        assert shown["eager"].agreed == agreed
        assert shown["liar"] == JudgeStanding(0, 1)
        undo.assert_verified(application, curie)

        application.learning.revocation.request(application.auth.access.scope(curie), judge="eager")
        application.jobs.runner.run_ready()
        views = application.learning.judges.page(application.auth.access.scope(curie), "", 10)
        assert {view.judge.name: view.standing for view in views}["eager"] == JudgeStanding()
        undo.assert_verified(application, curie)

    @pytest.mark.wing("published")
    def test_a_judge_can_be_trusted_by_its_name_or_its_key(
        self, application: Application, curie: str, said: list[int]
    ) -> None:
        new = gains(say(application, curie, "new", [said[2]]))
        application.learning.judges.set(application.auth.access.scope(curie), "editor", trusted=True)
        by_name = gains(say(application, curie, "editor", [said[3]]))
        by_key = gains(say(application, curie, principal("chief", trusted=True), [said[4]]))
        assert by_name == by_key
        assert by_key["task"] == pytest.approx(2 / 3)
        assert new["task"] == pytest.approx(application.models.noise.newcomers)


class TestRevokedStandings:
    def test_revocation_of_new_judges_restores_state_exactly(
        self, application: Application, curie: str, said: list[int]
    ) -> None:
        before = state.list_learned(application, curie)
        for n in range(3):
            say(application, curie, f"new-{n}", [said[3]], [said[0]])
        assert state.list_learned(application, curie) != before
        for n in range(3):
            application.learning.revocation.request(application.auth.access.scope(curie), judge=f"new-{n}")
        application.jobs.runner.run_ready()
        assert state.list_learned(application, curie) == before
        undo.assert_verified(application, curie)
