"""Keys that evolve: the gate, credits, memories, generations; exactly once, in any order, and back again."""

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.composition import Application
from app.core import keys as core
from app.core.keys import KeyRules
from app.core.verdict import Expansion
from app.errors import InvalidRequestError, NotFoundError
from app.services.keys.attribution import Attribution, KeyLearning, advance
from app.services.keys.evolve import EvolveService
from app.services.learning.feedback import Receipt
from app.services.learning.learn import LearnService
from app.services.learning.verdict import Verdict
from app.services.retrieval.query import Query
from app.storage.corpus import collections
from app.storage.keys.evolved_keys import Progress
from tests.conftest import CURIE, Ingest
from tests.support import state, undo
from tests.support.keys import unit as unit_length

KEYS = ("expansion_unit", "key_evidence", "key_credit", "expansion_memory", "passage_key", "evolved_posting")
INCIDENTAL = ("created_at", "updated_at")
QUESTION = "Which river is the longest of its country?"
RIVER = Expansion("hyde", "The longest river of the country flows past the capital into the sea.")
REWORDED = Expansion("rewriting", "Of all rivers of the country, which one is the longest?")
SPECIFIC = Expansion("specification", "The longest river of Poland by its length in kilometres")
ELEMENT = Expansion("facet", "chemical element, radioactivity, discovery, physics")


def verdict(
    application: Application,
    collection: str,
    passages: Sequence[str] = ("vistula",),
    expansions: Sequence[Expansion] = (RIVER, ELEMENT),
    question: str = QUESTION,
    wait: bool = True,
    **more: Any,
) -> Receipt:
    query_id = state.given_episode(application, collection, question, [])
    return give(application, collection, query_id, passages, expansions, wait, **more)


def give(
    application: Application,
    collection: str,
    query_id: UUID,
    passages: Sequence[str],
    expansions: Sequence[Expansion],
    wait: bool = True,
    **more: Any,
) -> Receipt:
    said = Verdict(
        query_id=query_id,
        scope=application.access.scope(collection),
        partial=True,
        supporting_passages=tuple(passages),
        expansions=tuple(expansions),
        **more,
    )
    receipt = application.feedback.accept(said, uuid4().hex, wait=wait)
    assert not wait or receipt.event.status == "applied", receipt.event.error
    return receipt


def rows(application: Application, collection: str, table: str) -> list[dict[str, Any]]:
    return state.rows(application, collection, table, INCIDENTAL)


def learned(application: Application, collection: str) -> dict[str, list[dict[str, Any]]]:
    """Everything about keys, units by their text instead of their ids, which depend on who came first."""
    texts = {row["id"]: row["text"] for row in rows(application, collection, "expansion_unit")}
    found = {table: rows(application, collection, table) for table in KEYS}
    for row in found["expansion_unit"]:
        del row["id"]
    for table in ("key_credit", "expansion_memory"):
        for row in found[table]:
            row["unit_id"] = texts[row["unit_id"]]
    for row in found["passage_key"]:
        row["units"] = [texts[unit] for unit in row["units"]]
    return {table: sorted(found[table], key=repr) for table in KEYS}


def served(application: Application, collection: str) -> list[dict[str, Any]]:
    """Evolved keys as they are searched."""
    return [*rows(application, collection, "passage_key"), *rows(application, collection, "evolved_posting")]


def vector(row: Mapping[str, Any], column: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.array(row[column].strip("[]").split(","), dtype=np.float64)


def with_learning(application: Application, **changes: Any) -> LearnService:
    """A service with other constants."""
    learning = replace(application.key_learning, **changes)
    attribution = Attribution(application.database, application.encoder, application.limits, learning)
    evolve = EvolveService(application.database, learning.rules)
    return LearnService(
        application.database, application.noise, application.prior, attribution, evolve, max_attempts=5
    )


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
        question, unit = application.embedder.embed([QUESTION, RIVER.text])
        (base,) = [row for row in state.rows(application, curie, "passage") if row["external_id"] == "vistula"]
        expected = core.gains(question, vector(base, "embedding")[None], unit[None], 0.7)[0, 0]
        (credit,) = rows(application, curie, "key_credit")
        assert credit["gain"] == pytest.approx(float(expected), abs=1e-6)
        (held,) = rows(application, curie, "expansion_memory")
        assert held["score"] == pytest.approx(credit["gain"] * credit["weight"])

    def test_a_supported_sentence_supports_its_passage(self, application: Application, curie: str) -> None:
        (sentence,) = state.sentences(application, curie, "vistula").values()
        query_id = state.given_episode(application, curie, QUESTION, [])
        state.judge(application, curie, query_id, [sentence], partial=True, expansions=(RIVER,), wait=True)
        (credit,) = rows(application, curie, "key_credit")
        assert credit["passage_id"] == state.passages(application, curie)["vistula"]

    def test_the_published_rule_credits_what_the_expanded_query_retrieved(
        self, application: Application, curie: str
    ) -> None:
        query_id = state.given_episode(application, curie, QUESTION, [])
        with application.database.write() as writer:
            writer.execute("UPDATE episode SET profile = 'paper' WHERE id = %(id)s", {"id": query_id})
        give(application, curie, query_id, ["vistula"], [RIVER])
        credited = {row["passage_id"] for row in rows(application, curie, "key_credit")}
        assert credited == set(state.passages(application, curie).values())

    def test_units_are_stored_once_whoever_brings_them(self, application: Application, curie: str) -> None:
        verdict(application, curie, expansions=[RIVER])
        verdict(application, curie, ["warsaw"], [Expansion("other", f"  {RIVER.text} "), ELEMENT])
        assert len(rows(application, curie, "expansion_unit")) == 2

    def test_a_unit_that_another_worker_stored_meanwhile_is_credited_as_it_is_stored(
        self, application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The same text has other last bits in another batch, or on another machine."""
        receipts = [verdict(application, curie, wait=False, question=text) for text in (QUESTION, "Which one?")]
        first, second = (receipt.event.id for receipt in receipts)
        target, attribution = state.collection_id(application, curie), application.learn._attribution
        units, space = attribution.prepare(target, [second])
        turned = {
            digest: replace(
                unit, embedding=unit_length(unit.embedding + 1e-3 * (np.arange(len(unit.embedding)) % 7))
            )
            for digest, unit in units.items()
        }
        assert application.learn.apply(target, [first]) == 1
        with monkeypatch.context() as patch:
            patch.setattr(attribution, "prepare", lambda *_: (turned, space))
            assert application.learn.apply(target, [second]) == 1
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

    def test_what_is_not_validated_leaves_no_credit(self, application: Application, curie: str) -> None:
        verdict(application, curie, retrieval_success=False)
        assert rows(application, curie, "key_credit") == rows(application, curie, "expansion_memory") == []
        assert application.evolve.standing(application.access.scope(curie)).progress.waiting == 0

    def test_by_rule_a_supported_passage_must_be_among_what_the_expanded_query_retrieves(
        self, application: Application, curie: str
    ) -> None:
        strict = with_learning(application, gate_top_k=1)
        for passage, gate in (("tokyo", "none"), ("vistula", "retrieval")):
            event = verdict(application, curie, [passage], [RIVER], wait=False).event
            assert strict.apply(state.collection_id(application, curie), [event.id]) == 1
            evidence = {row["event_id"]: row["gate"] for row in rows(application, curie, "key_evidence")}
            assert evidence[event.id] == gate

    def test_what_the_question_filtered_out_is_not_retrieved(
        self, application: Application, collection: str, ingest: Ingest
    ) -> None:
        ingest(*(dict(p) | {"metadata": {"mine": p["id"] == "tokyo"}} for p in CURIE))
        strict = with_learning(application, gate_top_k=1)
        target = state.collection_id(application, collection)
        query = Query(
            text=QUESTION, scope=application.access.scope(collection), strategy="dense", metadata={"mine": True}
        )
        for asked, gate in ((replace(query, metadata=None), "none"), (query, "retrieval")):
            query_id = application.ask.query(asked).query_id
            event = give(application, collection, query_id, ["tokyo"], [RIVER], wait=False).event
            strict.apply(target, [event.id])
            evidence = {row["event_id"]: row["gate"] for row in rows(application, collection, "key_evidence")}
            assert evidence[event.id] == gate

    def test_without_a_gate_everything_counts(self, application: Application, curie: str) -> None:
        event = verdict(application, curie, ["tokyo"], [RIVER], wait=False, retrieval_success=False).event
        with_learning(application, gated=False).apply(state.collection_id(application, curie), [event.id])
        assert rows(application, curie, "key_evidence")[0]["gate"] == "retrieval"


class TestMemory:
    def test_it_keeps_the_best_units_and_lets_the_lowest_go(self, application: Application, curie: str) -> None:
        narrow = with_learning(application, rules=KeyRules(0.7, 0.25, units=2, capacity=3))
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
        narrow = with_learning(application, rules=KeyRules(0.7, 0.25, units=1, capacity=1))
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


class TestEvolution:
    def test_an_evolved_key_is_the_base_and_its_units(self, application: Application, curie: str) -> None:
        verdict(application, curie)
        opened = application.evolve.evolve(application.access.scope(curie))
        assert opened is not None
        assert (opened.number, opened.parent, opened.reason, opened.events, opened.passages) == (
            1,
            0,
            "requested",
            1,
            1,
        )
        (key,) = rows(application, curie, "passage_key")
        (base,) = [row for row in state.rows(application, curie, "passage") if row["id"] == key["passage_id"]]
        units = {row["id"]: vector(row, "embedding") for row in rows(application, curie, "expansion_unit")}
        expected = core.compose(
            vector(base, "embedding"),
            np.stack([units[unit] for unit in key["units"]]),
            np.array(key["scores"]),
            0.7,
        )
        np.testing.assert_allclose(vector(key, "vector"), expected, atol=1e-6)

    def test_base_keys_stay_as_they_are(self, application: Application, curie: str) -> None:
        before = state.snapshot(
            application, curie, ("passage", "lexical_posting", "lexical_term", "lexical_passage")
        )
        verdict(application, curie)
        application.evolve.evolve(application.access.scope(curie))
        assert state.snapshot(application, curie, tuple(before)) == before

    def test_a_lexical_key_gains_its_units_terms(self, application: Application, curie: str) -> None:
        verdict(application, curie, expansions=[RIVER])
        application.evolve.evolve(application.access.scope(curie))
        postings = rows(application, curie, "evolved_posting")
        added = sum(row["frequency"] - row["base"] for row in postings)
        assert added == pytest.approx(0.25 * postings[0]["length"], rel=1e-4)
        terms = {row["term"]: row for row in postings}
        assert terms["longest"]["base"] == 0
        assert terms["sea"]["base"] > 0

    def test_a_second_evolution_without_new_evidence_changes_nothing(
        self, application: Application, curie: str
    ) -> None:
        verdict(application, curie)
        application.evolve.evolve(application.access.scope(curie))
        before = learned(application, curie), state.rows(application, curie, "key_generation")
        assert application.evolve.evolve(application.access.scope(curie)) is None
        assert (learned(application, curie), state.rows(application, curie, "key_generation")) == before

    def test_other_rules_make_the_keys_anew(self, application: Application, curie: str) -> None:
        verdict(application, curie)
        application.evolve.evolve(application.access.scope(curie))
        other = EvolveService(application.database, KeyRules(0.3, 0.25, 4, 16))
        opened = other.evolve(application.access.scope(curie))
        assert opened is not None
        assert opened.number == 2
        (key,) = rows(application, curie, "passage_key")
        (base,) = [row for row in state.rows(application, curie, "passage") if row["id"] == key["passage_id"]]
        moved = float(np.linalg.norm(vector(key, "vector") - vector(base, "embedding")))
        assert moved <= core.displacement_bound(0.3) + 1e-6

    def test_keys_evolve_by_themselves_once_enough_waits(self, application: Application, curie: str) -> None:
        eager = with_learning(application, most_waiting=2)
        target = state.collection_id(application, curie)
        for _ in range(2):
            eager.apply(target, [verdict(application, curie, wait=False).event.id])
        (generation,) = state.rows(application, curie, "key_generation")
        assert (generation["reason"], generation["events"]) == ("pending", 2)
        assert application.evolve.standing(application.access.scope(curie)).progress == Progress(
            0, 0.0, 0.0, 0, 0, None
        )

    def test_keys_evolve_once_batches_bring_nothing_better(self, application: Application, curie: str) -> None:
        patient = with_learning(application, batch_events=2, patience=2)
        target = state.collection_id(application, curie)
        for number in range(6):
            assert state.rows(application, curie, "key_generation") == [], number
            weaker = [RIVER] if number < 2 else [ELEMENT]
            patient.apply(target, [verdict(application, curie, expansions=weaker, wait=False).event.id])
        (generation,) = state.rows(application, curie, "key_generation")
        assert (generation["reason"], generation["events"]) == ("saturated", 6)

    def test_what_is_due_and_was_missed_is_found(self, application: Application, curie: str) -> None:
        verdict(application, curie)
        with application.database.write() as writer:
            writer.execute(
                "UPDATE key_evolution SET due = 'pending' WHERE collection_id = %(c)s",
                {"c": state.collection_id(application, curie)},
            )
        assert application.evolve.run_due() >= 1
        assert application.evolve.standing(application.access.scope(curie)).generation == 1

    def test_a_collection_that_is_being_written_to_stays_due(self, application: Application, curie: str) -> None:
        verdict(application, curie)
        target = state.collection_id(application, curie)
        with application.database.write() as writer:
            writer.execute("UPDATE key_evolution SET due = 'pending' WHERE collection_id = %(c)s", {"c": target})
        with application.database.write() as writer:
            assert collections.lock_graph(writer, target)
            assert not application.evolve.evolve_if_due(target)
        assert application.evolve.standing(application.access.scope(curie)).progress.due == "pending"
        assert application.evolve.evolve_if_due(target)
        assert not application.evolve.evolve_if_due(target)

    def test_what_helps_no_key_never_makes_an_evolution_due(self, application: Application, curie: str) -> None:
        eager = with_learning(application, most_waiting=1, batch_events=1, patience=1)
        target = state.collection_id(application, curie)
        for _ in range(3):
            eager.apply(target, [verdict(application, curie, ["vistula"], [ELEMENT], wait=False).event.id])
        assert all(row["gain"] <= 0 for row in rows(application, curie, "key_credit"))
        assert {row["gate"] for row in rows(application, curie, "key_evidence")} == {"retrieval"}
        assert state.rows(application, curie, "key_generation") == []
        assert application.evolve.standing(application.access.scope(curie)).progress.due is None


class TestRollback:
    @pytest.fixture
    def three(self, application: Application, curie: str) -> list[list[dict[str, Any]]]:
        """Three generations; what each served, base keys first."""
        states = [served(application, curie)]
        for passages, expansions in (
            (["vistula"], [RIVER]),
            (["vistula", "polonium"], [SPECIFIC]),
            (["tokyo"], [REWORDED]),
        ):
            verdict(application, curie, passages, expansions)
            assert application.evolve.evolve(application.access.scope(curie)) is not None
            states.append(served(application, curie))
        return states

    def test_any_generation_serves_again_as_it_did(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        for number in (1, 3, 0, 2, 3):
            assert application.evolve.roll_back(application.access.scope(curie), number).generation == number
            assert served(application, curie) == three[number]

    def test_evidence_that_was_rolled_back_stays_out_of_later_generations(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        application.evolve.roll_back(application.access.scope(curie), 1)
        verdict(application, curie, ["warsaw"], [REWORDED])
        opened = application.evolve.evolve(application.access.scope(curie))
        assert opened is not None
        assert (opened.number, opened.parent) == (4, 1)
        ids = state.passages(application, curie)
        assert {row["passage_id"] for row in rows(application, curie, "passage_key")} == {
            ids["vistula"],
            ids["warsaw"],
        }
        vistula = [row for row in rows(application, curie, "passage_key") if row["passage_id"] == ids["vistula"]]
        assert vistula == [row for row in three[1] if "vector" in row]
        application.evolve.roll_back(application.access.scope(curie), 3)
        assert served(application, curie) == three[3]

    def test_waiting_evidence_goes_on_waiting(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        verdict(application, curie, ["warsaw"], [REWORDED])
        application.evolve.roll_back(application.access.scope(curie), 2)
        assert served(application, curie) == three[2]
        assert application.evolve.standing(application.access.scope(curie)).progress.waiting == 1
        assert application.evolve.evolve(application.access.scope(curie)) is not None
        assert state.passages(application, curie)["warsaw"] in {
            row["passage_id"] for row in rows(application, curie, "passage_key")
        }

    def test_keys_of_other_rules_are_those_of_the_generation_gone_to(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        other = EvolveService(application.database, KeyRules(0.2, 0.1, 2, 16))
        verdict(application, curie, ["warsaw"], [REWORDED])
        assert other.evolve(application.access.scope(curie)) is not None
        fourth = served(application, curie)
        assert application.evolve.roll_back(application.access.scope(curie), 3).generation == 3
        assert served(application, curie) == three[3]
        application.evolve.roll_back(application.access.scope(curie), 4)
        assert served(application, curie) == fourth

    def test_an_unknown_generation_is_an_error_and_changes_nothing(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        with pytest.raises(NotFoundError, match="generation 7"):
            application.evolve.roll_back(application.access.scope(curie), 7)
        assert served(application, curie) == three[3]

    def test_forgetting_removes_keys_with_everything_that_made_them(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        application.forget.reset(application.access.scope(curie))
        assert all(rows(application, curie, table) == [] for table in (*KEYS, "key_generation", "key_evolution"))
        assert application.evolve.standing(application.access.scope(curie)).generation == 0


class TestChangedBaseKeys:
    def test_a_changed_passage_has_its_keys_made_anew(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        verdict(application, curie, ["vistula", "tokyo"])
        application.evolve.evolve(application.access.scope(curie))
        body = next(dict(passage) for passage in CURIE if passage["id"] == "vistula")
        changed = body | {"text": body["text"] + " Ships sail on it as far as Warsaw."}
        ingest(changed, into=curie)
        after = learned(application, curie)
        # The same as if the passage had always read like that.
        fresh = f"{curie}-fresh"
        ingest(*(changed if p["id"] == "vistula" else p for p in CURIE), into=fresh)
        verdict(application, fresh, ["vistula", "tokyo"])
        application.evolve.evolve(application.access.scope(fresh))
        expected = learned(application, fresh)
        # Vectors of one text differ in their last bits with the batch they were embedded in.
        for table, column in (("key_credit", "gain"), ("key_credit", "weight"), ("expansion_memory", "score")):
            assert numbers(after[table], column) == pytest.approx(numbers(expected[table], column), abs=1e-6)
        for one, other in zip(by_vector(after["passage_key"]), by_vector(expected["passage_key"]), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-6)
        assert terms_of(after["evolved_posting"]) == terms_of(expected["evolved_posting"])

    def test_a_deleted_passage_takes_its_keys_along(self, application: Application, curie: str) -> None:
        verdict(application, curie, ["vistula", "tokyo"])
        application.evolve.evolve(application.access.scope(curie))
        gone = state.passages(application, curie)["vistula"]
        application.ingest.delete_passage(application.access.scope(curie), "vistula")
        for table in ("key_credit", "expansion_memory", "passage_key", "evolved_posting"):
            assert all(row["passage_id"] != gone for row in rows(application, curie, table))


def numbers(found: Sequence[Mapping[str, Any]], column: str) -> list[float]:
    return sorted(row[column] for row in found)


def by_vector(found: Sequence[Mapping[str, Any]]) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    return sorted((vector(row, "vector") for row in found), key=lambda key: round(float(key[0]), 4))


def terms_of(found: Sequence[Mapping[str, Any]]) -> list[tuple[str, float, float]]:
    return sorted((row["term"], row["base"], round(row["frequency"], 4)) for row in found)


PASSAGES = [str(passage["id"]) for passage in CURIE]


def stream(application: Application, collection: str, count: int, seed: int) -> list[int]:
    """Events that wait, on few passages and few units, so that most of them overlap."""
    draw = random.Random(seed)
    units = [RIVER, ELEMENT, *(Expansion("facet", f"capital of {name}") for name in ("Poland", "Japan", "France"))]
    questions = [QUESTION, "What is radioactive?", "Where is the capital of Japan?"]
    asked = [state.given_episode(application, collection, question, []) for question in questions]
    return [
        give(
            application,
            collection,
            draw.choice(asked),
            draw.sample(PASSAGES, draw.randint(1, 3)),
            draw.sample(units, draw.randint(1, 4)),
            wait=False,
        ).event.id
        for _ in range(count)
    ]


def forget_keys(application: Application, collection: str) -> None:
    """Leave of all that was learned about keys only the log, all of whose events wait again."""
    target = {"c": state.collection_id(application, collection)}
    with application.database.write() as writer:
        for table in ("key_credit", "key_evidence", "expansion_memory", "passage_key", "evolved_posting"):
            writer.execute(f"DELETE FROM {table} WHERE collection_id = %(c)s", target)
        for table in ("expansion_unit", "key_generation", "key_evolution"):
            writer.execute(f"DELETE FROM {table} WHERE collection_id = %(c)s", target)
        writer.execute("UPDATE collection SET key_generation = 0 WHERE id = %(c)s", target)
    state.forget_everything(application, collection)


class TestOrder:
    def test_neither_order_nor_batches_matter_and_a_replay_gives_identical_keys(
        self, application: Application, curie: str
    ) -> None:
        events = stream(application, curie, 24, seed=5)
        target = state.collection_id(application, curie)
        calm = with_learning(application, most_waiting=10_000, patience=10_000)
        calm.apply(target, events)
        application.evolve.evolve(application.access.scope(curie))
        expected = learned(application, curie)
        assert expected["passage_key"]
        for seed in (1, 2):
            forget_keys(application, curie)
            shuffled = random.Random(seed).sample(events, len(events))
            for at in range(0, len(shuffled), 1 if seed == 1 else 7):
                calm.apply(target, shuffled[at : at + (1 if seed == 1 else 7)])
            application.evolve.evolve(application.access.scope(curie))
            assert learned(application, curie) == expected

    def test_two_workers_and_four_clients_lose_and_double_nothing(
        self, application: Application, curie: str
    ) -> None:
        target = state.collection_id(application, curie)
        workers = [with_learning(application, most_waiting=10) for _ in range(2)]
        posted: list[int] = []

        def post(seed: int) -> None:
            posted.extend(stream(application, curie, 15, seed))

        def work(worker: LearnService) -> None:
            for _ in range(200):
                with application.database.read() as reader:
                    waiting = reader.rows(
                        """
                        SELECT id FROM feedback_event WHERE collection_id = %(c)s AND status = 'pending' LIMIT 5
                        """,
                        {"c": target},
                    )
                if not waiting and len(posted) == 60:
                    return
                worker.apply(target, [row[0] for row in waiting])

        state.together(
            *(lambda seed=seed: post(seed) for seed in range(4)),
            *(lambda worker=worker: work(worker) for worker in workers),
        )
        assert set(state.event_statuses(application, curie).values()) == {"applied"}
        evidence = rows(application, curie, "key_evidence")
        assert sorted(row["event_id"] for row in evidence) == sorted(posted)
        application.evolve.evolve(application.access.scope(curie))
        after = learned(application, curie)
        forget_keys(application, curie)
        calm = with_learning(application, most_waiting=10_000, patience=10_000)
        for event in sorted(posted):
            calm.apply(target, [event])
        application.evolve.evolve(application.access.scope(curie))
        again = learned(application, curie)
        for table in ("key_credit", "expansion_memory", "evolved_posting"):
            assert again[table] == after[table]
        keys = ("passage_id", "vector", "units", "scores")
        assert [[row[key] for key in keys] for row in again["passage_key"]] == [
            [row[key] for key in keys] for row in after["passage_key"]
        ]

    def test_evolving_and_rolling_back_while_others_learn_does_not_deadlock(
        self, application: Application, curie: str
    ) -> None:
        events = stream(application, curie, 40, seed=9)
        target = state.collection_id(application, curie)

        def steer() -> None:
            for _ in range(15):
                application.evolve.evolve(application.access.scope(curie))
                number = application.evolve.standing(application.access.scope(curie)).generation
                application.evolve.roll_back(application.access.scope(curie), max(0, number - 1))

        def learn(part: Sequence[int]) -> None:
            for event in part:
                application.learn.apply(target, [event])

        with ThreadPoolExecutor(3) as pool:
            for outcome in [
                pool.submit(steer),
                pool.submit(learn, events[::2]),
                pool.submit(learn, events[1::2]),
            ]:
                outcome.result()
        assert set(state.event_statuses(application, curie).values()) == {"applied"}
        assert len(rows(application, curie, "key_evidence")) == len(events)


TOLD = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.lists(st.sampled_from(PASSAGES), min_size=1, max_size=3, unique=True),
        st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True),
    ),
    min_size=1,
    max_size=6,
)
"""Verdicts: a question, the passages it supports, the units that come along."""
QUESTIONS = (QUESTION, "What is radioactive?", "Where is the capital of Japan?")
UNITS = (
    RIVER,
    REWORDED,
    SPECIFIC,
    ELEMENT,
    Expansion("facet", "capital, Japan, Tokyo"),
    Expansion("facet", "Poland"),
)
SOME = settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], derandomize=True
)


class TestAnyVerdicts:
    @SOME
    @given(told=TOLD, order=st.randoms(use_true_random=False), size=st.integers(1, 6))
    def test_order_and_batches_do_not_matter_evolving_again_changes_nothing_and_bounds_hold(
        self, application: Application, curie: str, told: list[Any], order: random.Random, size: int
    ) -> None:
        forget_keys(application, curie)
        with application.database.write() as writer:
            target = state.collection_id(application, curie)
            writer.execute("DELETE FROM judged_query WHERE collection_id = %(c)s", {"c": target})
        rules = KeyRules(0.7, 0.25, units=2, capacity=3)
        learn = with_learning(application, rules=rules, most_waiting=10_000, patience=10_000)
        evolve = EvolveService(application.database, rules)
        asked = [state.given_episode(application, curie, question, []) for question in QUESTIONS]
        events = [
            give(application, curie, asked[question], named, [UNITS[unit] for unit in units], wait=False).event.id
            for question, named, units in told
        ]
        learn.apply(target, events)
        evolve.evolve(application.access.scope(curie))
        expected = learned(application, curie)
        assert evolve.evolve(application.access.scope(curie)) is None
        assert learned(application, curie) == expected

        held = [row["passage_id"] for row in expected["expansion_memory"]]
        assert all(held.count(passage) <= rules.capacity for passage in set(held))
        bases = {row["id"]: vector(row, "embedding") for row in state.rows(application, curie, "passage")}
        for key in expected["passage_key"]:
            moved = np.linalg.norm(vector(key, "vector") - bases[key["passage_id"]])
            assert moved <= core.displacement_bound(rules.strength) + 1e-6
            assert len(key["units"]) <= rules.units

        forget_keys(application, curie)
        order.shuffle(events)
        for at in range(0, len(events), size):
            learn.apply(target, events[at : at + size])
        evolve.evolve(application.access.scope(curie))
        assert learned(application, curie) == expected


class TestProgress:
    learning = KeyLearning(
        KeyRules(0.5, 0.2, 2, 4), 10, 0.5, batch_events=2, patience=1, margin=0.1, most_waiting=5
    )

    def test_a_batch_counts_when_it_is_full(self) -> None:
        assert advance(Progress(0, 0.0, 0.0, 0, 0, None), 0.0, self.learning).waiting == 0
        state = Progress(0, 0.0, 0.0, 0, 0, None)
        for gain in (0.1, 0.4, 0.2):
            state = advance(state, gain, self.learning)
        assert state == Progress(1, 0.2, 0.4, 0, 3, None)
        assert advance(state, 0.3, self.learning) == Progress(0, 0.0, 0.4, 1, 4, "saturated")

    def test_too_many_waiting_are_enough(self) -> None:
        state = Progress(0, 0.0, 0.1, 0, 4, None)
        assert advance(state, 0.5, self.learning).due == "pending"
