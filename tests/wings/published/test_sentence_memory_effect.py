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
<<<<<<<< HEAD:tests/services/effects/test_question_memory_effect.py
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

    @pytest.mark.wing("published")
========
>>>>>>>> paper:tests/wings/published/test_sentence_memory_effect.py
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

    @pytest.mark.wing("published")
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

    @pytest.mark.wing("published")
    def test_a_partial_verdict_touches_only_what_it_names(self, application: Application, curie: str) -> None:
        everything = state.list_sentence_ids(application, curie)
        query_id = state.add_episode(application, curie, QUESTION, everything)

        state.judge(application, curie, query_id, everything[:1], rejected=everything[1:2], partial=True, wait=True)

        assert {key for key, _ in memories(application, curie)} == set(everything[:2])
        assert set(supports(application, curie)) == set(everything[:2])

    @pytest.mark.wing("published")
    def test_an_unsure_judge_moves_less(self, application: Application, curie: str) -> None:
        born, discovered = state.sentences(application, curie, "curie").values()
        query_id = state.add_episode(application, curie, QUESTION, [born, discovered])

        state.judge(application, curie, query_id, [born], confidence=0.25, wait=True)

        explained = audit(application, curie)
        assert explained[born, "task"]["observation_noise"] == pytest.approx(0.5 / 0.25)
        assert explained[born, "task"]["gain"] == pytest.approx(1 / (1 + 0.5 / 0.25))
        assert explained[discovered, "task"]["gain"] == pytest.approx(1 / (1 + 1.0 / 0.25))

<<<<<<<< HEAD:tests/services/effects/test_question_memory_effect.py
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

    @pytest.mark.wing("published")
========
>>>>>>>> paper:tests/wings/published/test_sentence_memory_effect.py
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
    @pytest.mark.wing("published")
    def test_it_needs_a_question_of_time_and_a_sentence_of_time(
        self, application: Application, curie: str, constraint: str | None, channels: set[str]
    ) -> None:
        born = state.sentences(application, curie, "curie")["Marie Curie was born in Warsaw in 1867."]
        (vistula,) = state.sentences(application, curie, "vistula").values()
        query_id = state.add_episode(application, curie, "Who was born?", [], constraint)

        state.judge(application, curie, query_id, [born, vistula], wait=True)

        assert {channel for sentence, channel in memories(application, curie) if sentence == born} == channels
        assert {channel for sentence, channel in memories(application, curie) if sentence == vistula} == {"task"}

    @pytest.mark.wing("published")
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
    @pytest.mark.wing("published")
    def test_ten_of_them_leave_the_published_activation(
        self, application: Application, curie: str, supporting: bool, activation: float
    ) -> None:
        born = state.list_sentence_ids(application, curie)[0]
        query_id = state.add_episode(application, curie, QUESTION, [born])
        for _ in range(10):
            state.judge(application, curie, query_id, [born] if supporting else [], wait=True)

        assert round(1 - memories(application, curie)[born, "task"]["perplexity"], 2) == activation
