"""Sentence memories: what verdicts move, how far, and what the audit says of it."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from tests.support import state
from tests.support.encoder import HALF_PRECISION

QUESTION = "Where was Marie Curie born?"


def memories(application: Application, collection: str) -> dict[tuple[int, str], dict[str, Any]]:
    found = state.rows(application, collection, "sentence_memory")
    return {(row["sentence_id"], row["channel"]): row for row in found}


def audit(application: Application, collection: str) -> dict[tuple[int, str], dict[str, Any]]:
    found = state.rows(application, collection, "memory_audit")
    return {(row["sentence_id"], row["channel"]): row for row in found}


def supports(application: Application, collection: str) -> dict[int, float]:
    return {row["sentence_id"]: row["support"] for row in state.rows(application, collection, "question_support")}


def numbers(vector: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(vector.strip("[]").split(","), dtype=np.float64)


class TestOneVerdict:
    def test_supported_and_rejected_sentences_move_as_far_as_their_gain_says(
        self, application: Application, curie: str
    ) -> None:
        born, discovered = state.sentences(application, curie, "curie").values()
        (vistula,) = state.sentences(application, curie, "vistula").values()
        query_id = state.add_episode(application, curie, QUESTION, [born, discovered])

        state.judge(application, curie, query_id, [born], missed=[vistula], wait=True)

        explained = audit(application, curie)
        assert {key: row["target"] for key, row in explained.items()} == {
            (born, "task"): 1,
            (born, "recall"): 1,
            (vistula, "task"): 1,
            (vistula, "recall"): 1,
            (discovered, "task"): 0,
            (discovered, "recall"): 0,
        }
        moved = memories(application, curie)
        assert moved[born, "task"]["perplexity"] == pytest.approx((1 - 1 / 1.5) * 1 + 0.001)
        assert moved[discovered, "task"]["perplexity"] == pytest.approx((1 - 1 / 2) * 1 + 0.001)
        assert supports(application, curie) == {
            born: pytest.approx(1 / 1.5),
            vistula: pytest.approx(1 / 1.5),
            discovered: 0.0,
        }

    def test_a_memory_is_the_sentence_moved_along_the_question(self, application: Application, curie: str) -> None:
        born = state.sentences(application, curie, "curie")["Marie Curie was born in Warsaw in 1867."]
        query_id = state.add_episode(application, curie, QUESTION, [])
        base, question = application.models.embedder.embed(["Marie Curie was born in Warsaw in 1867.", QUESTION])

        state.judge(application, curie, query_id, [born], wait=True)

        memory = numbers(memories(application, curie)[born, "task"]["vector"])
        moved = base + (1 / 1.5) * (1 - float(base @ question)) * question.astype(np.float64)
        np.testing.assert_allclose(memory, moved / np.linalg.norm(moved), atol=HALF_PRECISION)
        stored = next(row for row in state.rows(application, curie, "sentence") if row["id"] == born)
        np.testing.assert_allclose(numbers(stored["embedding"]), base, atol=HALF_PRECISION)

    def test_a_partial_verdict_touches_only_what_it_names(self, application: Application, curie: str) -> None:
        everything = state.list_sentence_ids(application, curie)
        query_id = state.add_episode(application, curie, QUESTION, everything)

        state.judge(application, curie, query_id, everything[:1], rejected=everything[1:2], partial=True, wait=True)

        assert {key for key, _ in memories(application, curie)} == set(everything[:2])
        assert set(supports(application, curie)) == set(everything[:2])

    def test_an_unsure_judge_moves_less(self, application: Application, curie: str) -> None:
        born, discovered = state.sentences(application, curie, "curie").values()
        query_id = state.add_episode(application, curie, QUESTION, [born, discovered])

        state.judge(application, curie, query_id, [born], confidence=0.25, wait=True)

        explained = audit(application, curie)
        assert explained[born, "task"]["observation_noise"] == pytest.approx(0.5 / 0.25)
        assert explained[born, "task"]["gain"] == pytest.approx(1 / (1 + 0.5 / 0.25))
        assert explained[discovered, "task"]["gain"] == pytest.approx(1 / (1 + 1.0 / 0.25))

    def test_every_audit_row_joins_what_was_to_what_is(self, application: Application, curie: str) -> None:
        everything = state.list_sentence_ids(application, curie)
        query_id = state.add_episode(application, curie, "Who was born in 1867?", everything, "1867")
        for supporting in (everything[:2], everything[1:4], [], everything[2:3]):
            state.judge(application, curie, query_id, supporting, wait=True)

        after = {key: row["perplexity"] for key, row in memories(application, curie).items()} | {
            (row["sentence_id"], "recall"): row["perplexity"]
            for row in state.rows(application, curie, "question_support")
        }
        counted = {key: row["update_count"] for key, row in memories(application, curie).items()}
        history: dict[tuple[int, str], list[dict[str, Any]]] = {}
        for row in sorted(state.rows(application, curie, "memory_audit"), key=lambda row: row["event_id"]):
            history.setdefault((row["sentence_id"], row["channel"]), []).append(row)
        assert history.keys() == after.keys()
        for key, moves in history.items():
            assert moves[0]["perplexity_before"] == 1
            for earlier, later in pairwise(moves):
                assert later["perplexity_before"] == earlier["perplexity_after"]
            assert moves[-1]["perplexity_after"] == after[key]
            assert counted.get(key, len(moves)) == len(moves)
            for move in moves:
                noise = 0.5 if move["target"] else 1.0
                assert move["observation_noise"] == noise
                before = move["perplexity_before"]
                assert move["gain"] == pytest.approx(before / (before + noise))
                assert move["perplexity_after"] == pytest.approx((1 - move["gain"]) * before + 0.001)


class TestTimeChannel:
    @pytest.mark.parametrize(("constraint", "channels"), [("1867", {"task", "time"}), (None, {"task"})])
    def test_it_needs_a_question_of_time_and_a_sentence_of_time(
        self, application: Application, curie: str, constraint: str | None, channels: set[str]
    ) -> None:
        born = state.sentences(application, curie, "curie")["Marie Curie was born in Warsaw in 1867."]
        (vistula,) = state.sentences(application, curie, "vistula").values()
        query_id = state.add_episode(application, curie, "Who was born?", [], constraint)

        state.judge(application, curie, query_id, [born, vistula], wait=True)

        assert {channel for sentence, channel in memories(application, curie) if sentence == born} == channels
        assert {channel for sentence, channel in memories(application, curie) if sentence == vistula} == {"task"}

    def test_it_starts_from_the_time_expression_and_moves_along_the_constraint(
        self, application: Application, curie: str
    ) -> None:
        born = state.sentences(application, curie, "curie")["Marie Curie was born in Warsaw in 1867."]
        query_id = state.add_episode(application, curie, "Who was born?", [], "in the 1860s")
        expression, constraint = application.models.embedder.embed(["1867", "in the 1860s"])
        state.judge(application, curie, query_id, [born], wait=True)

        moved = expression + (1 / 1.5) * (1 - float(expression @ constraint)) * constraint.astype(np.float64)
        memory = numbers(memories(application, curie)[born, "time"]["vector"])
        np.testing.assert_allclose(memory, moved / np.linalg.norm(moved), atol=HALF_PRECISION)


class TestManyVerdicts:
    @pytest.mark.parametrize(("supporting", "activation"), [(True, 0.95), (False, 0.90)])
    def test_ten_of_them_leave_the_published_activation(
        self, application: Application, curie: str, supporting: bool, activation: float
    ) -> None:
        born = state.list_sentence_ids(application, curie)[0]
        query_id = state.add_episode(application, curie, QUESTION, [born])
        for _ in range(10):
            state.judge(application, curie, query_id, [born] if supporting else [], wait=True)

        assert round(1 - memories(application, curie)[born, "task"]["perplexity"], 2) == activation
