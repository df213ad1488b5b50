"""What a verdict credits to which expansion: the gate, gains, memories, and when enough waits."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.core.learning.logged_verdict import Expansion
from engram.services.question.query import Query
from engram.wings.published.core import evolution as core
from engram.wings.published.core.evolution import KeyRules
from engram.wings.published.parts import published_of
from engram.wings.published.services.attribution import KeyLearning, advance
from engram.wings.published.services.expansion_validation import ExpansionValidation
from engram.wings.published.storage.evolved_keys import EvolutionProgress
from tests.conftest import CURIE, Ingest
from tests.support import state, undo
from tests.support.encoder import HALF_PRECISION
from tests.support.evolving import (
    ELEMENT,
    KEYS,
    QUESTION,
    RIVER,
    build_learning,
    give,
    rows,
    vector,
    verdict,
)
from tests.support.keys import unit as unit_length


class TestCredits:
    def test_only_supported_passages_are_credited_and_only_for_units_that_help(
        self, application: Application, curie: str
    ) -> None:
        verdict(application, curie)
        (evidence,) = rows(application, curie, "key_evidence")
        assert (evidence["gate"], evidence["generation"]) == ("retrieval", None)
        credits = rows(application, curie, "key_credit")
        assert {row["passage_id"] for row in credits} == {state.passages(application, curie)["vistula"]}
        gains = {row["unit_id"]: row["gain"] for row in credits}
        assert evidence["gain"] == max(gains.values())
        assert sum(row["weight"] for row in credits) == pytest.approx(1.0)
        assert all((row["weight"] > 0) == (row["gain"] > 0) for row in credits)

    def test_a_gain_is_that_of_the_question_with_the_composed_base_key(
        self, application: Application, curie: str
    ) -> None:
        verdict(application, curie, expansions=[RIVER])
        question, unit = application.models.embedder.embed([QUESTION, RIVER.text])
        (base,) = [row for row in state.rows(application, curie, "passage") if row["external_id"] == "vistula"]
        expected = core.gains(question, vector(base, "embedding")[None], unit[None], 0.7)[0, 0]
        (credit,) = rows(application, curie, "key_credit")
        assert credit["gain"] == pytest.approx(float(expected), abs=HALF_PRECISION)
        (held,) = rows(application, curie, "expansion_memory")
        assert held["score"] == pytest.approx(credit["gain"] * credit["weight"])

    def test_a_supported_sentence_supports_its_passage(self, application: Application, curie: str) -> None:
        (sentence,) = state.sentences(application, curie, "vistula").values()
        query_id = state.add_episode(application, curie, QUESTION, [])
        state.judge(application, curie, query_id, [sentence], partial=True, expansions=(RIVER,), wait=True)
        (credit,) = rows(application, curie, "key_credit")
        assert credit["passage_id"] == state.passages(application, curie)["vistula"]

    def test_the_published_rule_credits_what_the_expanded_query_retrieved(
        self, application: Application, curie: str
    ) -> None:
        query_id = state.add_episode(application, curie, QUESTION, [])
        with application.database.write() as writer:
            writer.execute("UPDATE episode SET profile = 'paper' WHERE id = %(id)s", {"id": query_id})
        give(application, curie, query_id, ["vistula"], [RIVER])
        credited = {row["passage_id"] for row in rows(application, curie, "key_credit")}
        assert credited == set(state.passages(application, curie).values())

    def test_equal_units_are_stored_once(self, application: Application, curie: str) -> None:
        verdict(application, curie, expansions=[RIVER])
        verdict(application, curie, ["warsaw"], [Expansion("other", f"  {RIVER.text} "), ELEMENT])
        assert len(rows(application, curie, "expansion_unit")) == 2

    def test_a_unit_that_another_worker_stored_meanwhile_is_credited_as_it_is_stored(
        self, application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The same text has other last bits in another batch, or on another machine."""
        receipts = [verdict(application, curie, wait=False, question=text) for text in (QUESTION, "Which one?")]
        first, second = (receipt.event.id for receipt in receipts)
        target, attribution = state.collection_id(application, curie), published_of(application).attribution
        prepared = attribution.prepare(target, [second])
        turned = {
            digest: replace(
                unit, embedding=unit_length(unit.embedding + 1e-3 * (np.arange(len(unit.embedding)) % 7))
            )
            for digest, unit in prepared.units.items()
        }
        assert application.learning.learner.apply(target, [first]) == 1
        with monkeypatch.context() as patch:
            patch.setattr(attribution, "prepare", lambda *_: replace(prepared, units=turned))
            assert application.learning.learner.apply(target, [second]) == 1
        undo.assert_verified(application, curie)

    def test_a_verdict_without_expansions_leaves_keys_alone(self, application: Application, curie: str) -> None:
        verdict(application, curie, expansions=[])
        assert all(rows(application, curie, table) == [] for table in KEYS)

    def test_an_unknown_supporting_passage_is_refused(self, application: Application, curie: str) -> None:
        with pytest.raises(InvalidRequestError, match="'nowhere'"):
            verdict(application, curie, ["nowhere"])
        assert rows(application, curie, "feedback_event") == []


class TestGate:
    def gate(self, application: Application, collection: str, **said: Any) -> str:
        verdict(application, collection, **said)
        gates = [
            row["gate"]
            for row in sorted(rows(application, collection, "key_evidence"), key=lambda r: r["event_id"])
        ]
        return str(gates[-1])

    def test_the_verdicts_word_comes_before_the_rule(self, application: Application, curie: str) -> None:
        assert self.gate(application, curie) == "retrieval"
        assert self.gate(application, curie, retrieval_success=False) == "none"
        assert self.gate(application, curie, retrieval_success=False, generation_success=True) == "generation"
        assert self.gate(application, curie, retrieval_success=False, generation_score=0.5) == "generation"
        assert self.gate(application, curie, retrieval_success=False, generation_score=0.49) == "none"
        assert (
            self.gate(application, curie, retrieval_success=False, generation_success=False, generation_score=1.0)
            == "none"
        )

    def test_unvalidated_expansion_earns_no_credit(self, application: Application, curie: str) -> None:
        verdict(application, curie, retrieval_success=False)
        assert rows(application, curie, "key_credit") == rows(application, curie, "expansion_memory") == []
        assert (
            published_of(application).evolve.load_standing(application.auth.access.scope(curie)).progress.waiting
            == 0
        )

    def test_by_rule_a_supported_passage_must_be_among_what_the_expanded_query_retrieves(
        self, application: Application, curie: str
    ) -> None:
        strict = build_learning(application, ExpansionValidation(1, 0.5))
        for passage, gate in (("tokyo", "none"), ("vistula", "retrieval")):
            event = verdict(application, curie, [passage], [RIVER], wait=False).event
            assert strict.apply(state.collection_id(application, curie), [event.id]) == 1
            evidence = {row["event_id"]: row["gate"] for row in rows(application, curie, "key_evidence")}
            assert evidence[event.id] == gate

    def test_filtered_passages_do_not_count_as_retrieved(
        self, application: Application, collection: str, ingest: Ingest
    ) -> None:
        ingest(*(dict(p) | {"metadata": {"mine": p["id"] == "tokyo"}} for p in CURIE))
        strict = build_learning(application, ExpansionValidation(1, 0.5))
        target = state.collection_id(application, collection)
        query = Query(
            text=QUESTION,
            scope=application.auth.access.scope(collection),
            strategy="dense",
            filter={"mine": {"$eq": True}},
        )
        for asked, gate in ((replace(query, filter=None), "none"), (query, "retrieval")):
            query_id = application.answers.question.answer(asked).query_id
            event = give(application, collection, query_id, ["tokyo"], [RIVER], wait=False).event
            strict.apply(target, [event.id])
            evidence = {row["event_id"]: row["gate"] for row in rows(application, collection, "key_evidence")}
            assert evidence[event.id] == gate


class TestMemory:
    def test_it_keeps_the_best_units_and_lets_the_lowest_go(self, application: Application, curie: str) -> None:
        narrow = build_learning(application, rules=KeyRules(0.7, 0.25, units=2, capacity=3))
        target = state.collection_id(application, curie)
        for number in range(6):
            units = [Expansion("facet", f"{RIVER.text} {number}"), Expansion("facet", f"river {number} Poland")]
            event = verdict(application, curie, expansions=units, wait=False).event
            assert narrow.apply(target, [event.id]) == 1
        scores: dict[int, float] = {}
        for row in rows(application, curie, "key_credit"):
            scores[row["unit_id"]] = scores.get(row["unit_id"], 0.0) + row["gain"] * row["weight"]
        best = sorted(scores, key=lambda unit: -scores[unit])[:3]
        held = {row["unit_id"]: row["score"] for row in rows(application, curie, "expansion_memory")}
        assert held == {unit: pytest.approx(scores[unit]) for unit in best}

    def test_a_unit_that_was_let_go_comes_back_with_all_its_credit(
        self, application: Application, curie: str
    ) -> None:
        narrow = build_learning(application, rules=KeyRules(0.7, 0.25, units=1, capacity=1))
        target = state.collection_id(application, curie)
        sequence = [RIVER, ELEMENT, RIVER, ELEMENT, ELEMENT, ELEMENT, ELEMENT, RIVER]
        for unit in sequence:
            event = verdict(application, curie, expansions=[unit], wait=False).event
            assert narrow.apply(target, [event.id]) == 1
        (held,) = rows(application, curie, "expansion_memory")
        credited = [
            row["gain"] * row["weight"]
            for row in rows(application, curie, "key_credit")
            if row["unit_id"] == held["unit_id"]
        ]
        assert held["score"] == pytest.approx(sum(credited))


class TestProgress:
    learning = KeyLearning(KeyRules(0.5, 0.2, 2, 4), batch_events=2, patience=1, margin=0.1, most_waiting=5)

    def test_a_batch_counts_when_it_is_full(self) -> None:
        assert advance(EvolutionProgress(0, 0.0, 0.0, 0, 0, None), 0.0, self.learning).waiting == 0
        state = EvolutionProgress(0, 0.0, 0.0, 0, 0, None)
        for gain in (0.1, 0.4, 0.2):
            state = advance(state, gain, self.learning)
        assert state == EvolutionProgress(1, 0.2, 0.4, 0, 3, None)
        assert advance(state, 0.3, self.learning) == EvolutionProgress(0, 0.0, 0.4, 1, 4, "saturated")

    def test_too_many_waiting_are_enough(self) -> None:
        state = EvolutionProgress(0, 0.0, 0.1, 0, 4, None)
        assert advance(state, 0.5, self.learning).due == "pending"
