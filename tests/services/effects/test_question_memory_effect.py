"""Learning: what one verdict moves, how far, and what its audit says of it."""

from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.core.learning.logged_verdict import NEAREST_SENTENCE_PROBABILITY
from engram.services.verdict.verdict import NamedSentence
from tests.conftest import Ingest
from tests.support import state

QUESTION = "Where was Marie Curie born?"


def audit(application: Application, collection: str) -> dict[tuple[int, str], dict[str, Any]]:
    found = state.rows(application, collection, "memory_audit")
    return {(row["sentence_id"], row["channel"]): row for row in found}


def supports(application: Application, collection: str) -> dict[int, float]:
    return {row["sentence_id"]: row["support"] for row in state.rows(application, collection, "question_support")}


class TestOneVerdict:
    def test_of_a_passage_that_helped_as_a_whole_the_nearest_sentence_is_likely_and_no_other_touched(
        self, application: Application, curie: str
    ) -> None:
        everything = state.list_sentence_ids(application, curie)
        query_id = state.add_episode(application, curie, QUESTION, everything)
        own = state.sentences(application, curie, "curie")
        nearest = max(own, key=lambda text: float(np.dot(*application.models.embedder.embed([QUESTION, text]))))

        state.judge(application, curie, query_id, supporting_passages=("curie",), wait=True)

        explained = audit(application, curie)
        assert {key[0] for key in explained} == set(everything) - (set(own.values()) - {own[nearest]})
        moved = explained[own[nearest], "recall"]
        assert (moved["target"], moved["observation_noise"]) == (
            1,
            application.models.noise.positive / NEAREST_SENTENCE_PROBABILITY,
        )
        assert supports(application, curie)[own[nearest]] == pytest.approx(moved["gain"])
        assert {row["target"] for (sentence, _), row in explained.items() if sentence != own[nearest]} == {0}

    @pytest.mark.parametrize("rated", [False, True])
    def test_of_a_passage_that_helped_as_a_whole_no_heading_is_learned(
        self, application: Application, ingest: Ingest, collection: str, rated: bool
    ) -> None:
        ingest({"id": "curie", "title": "Curie", "text": f"{QUESTION}\n\nWarsaw was her birthplace."})
        query_id = state.add_episode(application, collection, QUESTION, [])
        verdict: dict[str, Any] = {"supporting_passages": ("curie",)}
        if rated:
            verdict = {"rating": "up", "cited": [NamedSentence(passage_id="curie")]}

        state.judge(application, collection, query_id, **verdict, wait=True)

        _, birthplace = state.sentences(application, collection, "curie").values()
        assert {sentence for sentence, _ in audit(application, collection)} == {birthplace}

    def test_named_sentence_of_a_supporting_passage_precedes_likely_ones(
        self, application: Application, curie: str
    ) -> None:
        query_id = state.add_episode(application, curie, QUESTION, [])
        born, discovered = state.sentences(application, curie, "curie").values()

        state.judge(application, curie, query_id, [discovered], supporting_passages=("curie",), wait=True)
        assert {sentence for sentence, _ in audit(application, curie)} == {discovered}

        state.judge(application, curie, query_id, rejected=[born], supporting_passages=("curie",), wait=True)
        assert {
            row["target"] for row in state.rows(application, curie, "memory_audit") if row["sentence_id"] == born
        } == {0}

    def test_a_rejection_takes_back_support_and_makes_none(self, application: Application, curie: str) -> None:
        born, discovered = state.sentences(application, curie, "curie").values()
        query_id = state.add_episode(application, curie, QUESTION, [])
        state.judge(application, curie, query_id, [born], wait=True)
        first = state.rows(application, curie, "question_support")[0]
        state.judge(application, curie, query_id, rejected=[born, discovered], wait=True)

        gain = first["perplexity"] / (first["perplexity"] + 1.0)
        assert supports(application, curie) == {born: pytest.approx((1 - gain) * first["support"]), discovered: 0.0}

    def test_rejected_sentence_moves_less_by_an_erring_verdict(self, application: Application, curie: str) -> None:
        born, discovered = state.sentences(application, curie, "curie").values()
        query_id = state.add_episode(application, curie, QUESTION, [born, discovered])
        for _ in range(2):
            state.judge(application, curie, query_id, [born], wait=True)

        state.judge(application, curie, query_id, [discovered], wait=True)

        known = supports(application, curie)
        assert known[discovered] < 0.5 < known[born]

    def test_equal_questions_share_their_supports(self, application: Application, curie: str) -> None:
        born = state.list_sentence_ids(application, curie)[0]
        for text in (QUESTION, f"  {QUESTION.upper()}", QUESTION.replace(" ", "  ")):
            state.judge(application, curie, state.add_episode(application, curie, text, []), [born], wait=True)

        assert len(state.rows(application, curie, "question")) == 1
        assert [row["update_count"] for row in state.rows(application, curie, "question_support")] == [3]


class TestManyVerdicts:
    def test_a_batch_equals_its_events_one_by_one(
        self, application: Application, ingest: Ingest, curie: str
    ) -> None:
        everything = state.list_sentence_ids(application, curie)
        asked = [
            state.add_episode(application, curie, QUESTION, everything[:5]),
            state.add_episode(application, curie, "Who was born in 1867?", everything, "1867"),
        ]
        events = [
            state.judge(application, curie, asked[n % 2], everything[n : n + 3], confidence=0.9).event.id
            for n in range(8)
        ]
        target = state.collection_id(application, curie)

        for event in events:
            assert application.learning.learner.apply(target, [event]) == 1
        one_by_one = state.list_learned(application, curie)
        state.forget_everything(application, curie)
        assert not any(state.list_learned(application, curie).values())
        assert application.learning.learner.apply(target, events) == len(events)

        assert state.list_learned(application, curie) == one_by_one
