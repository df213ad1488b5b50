"""Expansion units, credits and memories in their tables; a unit's terms come back as they went in."""

from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict

import numpy as np
import pytest

from engram.composition.container import Application
from engram.wings.published.parts import published_of
from engram.wings.published.storage import (
    evolved_keys,
    key_credits,
    key_evidence_log,
    key_generations,
    key_history,
)
from engram.wings.published.storage.evolved_keys import Base, EvolvedKey
from engram.wings.published.storage.key_credits import Unit
from tests.storage.conftest import TaughtCollection
from tests.support import state


def unit(number: int, terms: dict[str, float]) -> Unit:
    vector = np.zeros(384, dtype=np.float32)
    vector[number] = 1.0
    return Unit(bytes([number]) * 32, "facet", f"unit {number}", vector, terms)


UNITS = [unit(3, {"sea": 2.0, "river": 1.0}), unit(1, {}), unit(2, {"a": 1.0, "b": 2.0, "c": 3.0})]


class TestUnits:
    @pytest.mark.parametrize("at_once", [1, 2, 100])
    def test_they_come_back_as_they_went_in(
        self, application: Application, curie: str, at_once: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(key_credits, "UNITS_AT_ONCE", at_once)
        target = state.collection_id(application, curie)
        hashes = [one.text_hash for one in UNITS]
        with application.database.write() as writer:
            ids = key_credits.add_units(writer, target, UNITS)
            stored = key_credits.load_units(writer, target, [*hashes, b"none"])
            terms = key_credits.frequencies(writer, target, list(ids.values()))
            vectors = key_credits.embeddings(writer, target, list(ids.values()))
        assert ids.keys() == set(hashes)
        assert [ids[one] for one in sorted(hashes)] == sorted(ids.values()), "in the order of their hashes"
        for one in UNITS:
            back = stored[one.text_hash]
            assert (back.method, back.text, back.frequencies) == (one.method, one.text, one.frequencies)
            assert back.embedding.tobytes() == one.embedding.tobytes()
            assert vectors[ids[one.text_hash]].tobytes() == one.embedding.tobytes()
            assert terms[ids[one.text_hash]] == one.frequencies

    def test_one_that_is_there_stays_as_it_was(self, application: Application, curie: str) -> None:
        target = state.collection_id(application, curie)
        renamed = Unit(UNITS[0].text_hash, "other", "unit 3", UNITS[0].embedding, {"x": 1.0})
        with application.database.write() as writer:
            first = key_credits.add_units(writer, target, UNITS[:1])
            assert key_credits.add_units(writer, target, [renamed, UNITS[1]])[UNITS[0].text_hash] in first.values()
            (kept,) = key_credits.load_units(writer, target, [UNITS[0].text_hash]).values()
        assert (kept.method, kept.frequencies) == ("facet", UNITS[0].frequencies)

    def test_none_are_none_and_those_of_another_collection_are_not_found(
        self, application: Application, curie: str, taught: TaughtCollection
    ) -> None:
        target = state.collection_id(application, curie)
        with application.database.write() as writer:
            assert key_credits.add_units(writer, target, []) == {}
            ids = key_credits.add_units(writer, target, UNITS)
            assert key_credits.load_units(writer, taught.id, [one.text_hash for one in UNITS]) == {}
            assert key_credits.embeddings(writer, taught.id, list(ids.values())) == {}
            assert key_evidence_log.text_hashes(writer, taught.id, list(ids.values())) == {}


class TestMemories:
    def test_they_are_the_best_of_what_counts(self, application: Application, taught: TaughtCollection) -> None:
        passages = list(state.passages(application, taught.name).values())
        scores: dict[tuple[int, int], float] = defaultdict(float)
        credits = sorted(state.rows(application, taught.name, "key_credit"), key=lambda row: row["event_id"])
        for row in credits:
            if row["weight"] > 0:
                scores[row["passage_id"], row["unit_id"]] += row["weight"] * row["gain"]
        with application.database.read() as reader:
            held = key_credits.memory(reader, taught.id, passages)
            every = key_credits.find_best_units(reader, taught.id, passages, 100)
            one = key_credits.find_best_units(reader, taught.id, passages, 1)
            assert (
                key_credits.memory(reader, taught.id, [])
                == key_credits.find_best_units(reader, taught.id, [], 5)
                == {}
            )
            assert key_credits.memory(reader, taught.other, passages) == {}
        assert every == dict(scores), "to the last bit"
        assert held == every
        assert list(held) == sorted(held)
        assert one == {
            pair: score
            for pair, score in scores.items()
            if score == max(other for (passage, _), other in scores.items() if passage == pair[0])
        }

    def test_standing_is_what_an_evolution_took_in(
        self, application: Application, taught: TaughtCollection
    ) -> None:
        evidence = {row["event_id"]: row for row in state.rows(application, taught.name, "key_evidence")}
        taken = {
            (row["passage_id"], row["unit_id"])
            for row in state.rows(application, taught.name, "key_credit")
            if row["weight"] > 0 and evidence[row["event_id"]]["generation"] == 1
        }
        waiting = {
            row["passage_id"]
            for row in state.rows(application, taught.name, "key_credit")
            if row["weight"] > 0 and evidence[row["event_id"]]["generation"] is None
        }
        passages = list(state.passages(application, taught.name).values())
        with application.database.read() as reader:
            standing = key_credits.list_standing_units(reader, taught.id, passages, 100)
            first = key_credits.list_standing_units(reader, taught.id, passages, 1)
            assert key_credits.list_waiting_passages(reader, taught.id) == sorted(waiting)
        assert {(one.passage_id, one.unit_id) for one in standing} == taken
        assert {one.generation for one in standing} == {1}
        assert [one.passage_id for one in first] == sorted({passage for passage, _ in taken})
        for one in first:
            assert one.score == max(other.score for other in standing if other.passage_id == one.passage_id)


class TestReplacedKeys:
    @pytest.fixture
    def passages(self, application: Application, curie: str) -> list[int]:
        return list(state.passages(application, curie).values())

    def put(
        self, application: Application, name: str, passages: list[int], keys: list[EvolvedKey]
    ) -> dict[int, Base]:
        target = state.collection_id(application, name)
        with application.database.write() as writer:
            bases = evolved_keys.lock_base_keys(writer, target, passages)
            evolved_keys.replace_keys(writer, target, passages, keys, bases)
        return bases

    def key(self, passage: int, units: list[int], **increments: float) -> EvolvedKey:
        vector = np.zeros(384, dtype=np.float32)
        vector[passage % 384] = 1.0
        return EvolvedKey(passage, 1, vector, units, [1.0 / (1 + n) for n in range(len(units))], increments)

    def test_each_key_has_its_own_units_and_terms(
        self, application: Application, curie: str, passages: list[int]
    ) -> None:
        given = [
            self.key(passages[2], [7, 8, 9], river=0.5),
            self.key(passages[0], []),
            self.key(passages[1], [9], river=0.25, vistula=1.5),
        ]
        bases = self.put(application, curie, passages[:3], given)
        target = state.collection_id(application, curie)
        with application.database.read() as reader:
            stored = {key.passage_id: key for key in key_evidence_log.load_evolved_keys(reader, target, passages)}
            posted = key_evidence_log.postings(reader, target, passages)
            found = key_history.find(reader, target, "curie")
        assert found is not None
        assert (found.passage_id, found.units, found.scores) == (passages[0], [], [])
        assert stored.keys() == set(passages[:3])
        for key in given:
            back = stored[key.passage_id]
            assert (back.generation, back.units, back.scores) == (1, key.units, key.scores)
            assert back.vector.tobytes() == key.vector.tobytes()
        expected = [posting for key in given for posting in evolved_keys.postings(key, bases[key.passage_id])]
        assert len(expected) == 3
        assert posted == sorted(expected, key=lambda posting: (posting.passage_id, posting.term))

    def test_passage_without_a_new_key_returns_to_its_base_key(
        self, application: Application, curie: str, passages: list[int]
    ) -> None:
        self.put(application, curie, passages[:3], [self.key(one, [5], river=1.0) for one in passages[:3]])
        self.put(application, curie, passages[:2], [self.key(passages[1], [6])])
        target = state.collection_id(application, curie)
        with application.database.read() as reader:
            units = {
                key.passage_id: key.units for key in key_evidence_log.load_evolved_keys(reader, target, passages)
            }
            terms = [posting.passage_id for posting in key_evidence_log.postings(reader, target, passages)]
            assert sorted(evolved_keys.list_evolved_passages(reader, target)) == passages[1:3]
        assert units == {passages[1]: [6], passages[2]: [5]}
        assert terms == [passages[2]]

    def test_none_at_all_leaves_none(self, application: Application, curie: str, passages: list[int]) -> None:
        self.put(application, curie, passages[:1], [self.key(passages[0], [5], river=1.0)])
        self.put(application, curie, passages, [])
        assert (
            state.rows(application, curie, "passage_key") == state.rows(application, curie, "evolved_posting") == []
        )

    def test_keys_of_another_collection_stay(
        self, application: Application, curie: str, passages: list[int], taught: TaughtCollection
    ) -> None:
        before = state.rows(application, taught.name, "passage_key")
        theirs = [row["passage_id"] for row in before]
        assert theirs
        with application.database.write() as writer:
            target = state.collection_id(application, curie)
            evolved_keys.replace_keys(writer, target, [*passages, *theirs], [], {})
        assert state.rows(application, taught.name, "passage_key") == before


class TestGenerations:
    def test_pages_come_latest_first(self, application: Application, curie: str) -> None:
        target, rules = (
            state.collection_id(application, curie),
            asdict(published_of(application).key_learning.rules),
        )
        with application.database.write() as writer:
            opened = [key_generations.open_next(writer, target, "requested", rules, 0) for _ in range(3)]
            assert [one.number for one in opened] == [1, 2, 3]
            assert [one.number for one in key_generations.page(writer, target, None, 2)] == [3, 2]
            assert key_generations.page(writer, target, 2, 2) == opened[:1]
            assert key_generations.page(writer, target, 1, 2) == []
            assert key_generations.find(writer, target, 4) is None
            assert key_generations.get_serving_number(writer, target) == 3

    def test_going_back_and_forth_tells_which_passages_it_concerns(
        self, application: Application, taught: TaughtCollection
    ) -> None:
        evidence = {
            row["event_id"]: row["generation"] for row in state.rows(application, taught.name, "key_evidence")
        }
        concerned = sorted(
            {
                row["passage_id"]
                for row in state.rows(application, taught.name, "key_credit")
                if row["weight"] > 0 and evidence[row["event_id"]] == 1
            }
        )
        with application.database.read() as reader:
            assert key_generations.list_touched_passages(reader, taught.id, [1]) == concerned != []
            assert (
                key_generations.list_touched_passages(reader, taught.id, [])
                == key_generations.list_touched_passages(reader, taught.id, [2])
                == []
            )


class UndoneError(Exception):
    """Rolls a transaction back."""


def test_withdrawn_evidence_takes_its_own_credits_along_and_says_whose_they_were(
    application: Application, taught: TaughtCollection
) -> None:
    evidence, credits = (state.rows(application, taught.name, table) for table in ("key_evidence", "key_credit"))
    first = min(row["event_id"] for row in evidence if row["generation"] == 1)
    own = [row for row in credits if row["event_id"] == first]
    with suppress(UndoneError), application.database.write() as writer:
        (before,) = key_generations.page(writer, taught.id, None, 1)
        withdrawn = key_evidence_log.withdraw(writer, taught.id, [first])
        (after,) = key_generations.page(writer, taught.id, None, 1)
        left = key_evidence_log.credits(writer, taught.id, sorted({row["passage_id"] for row in credits}))
        raise UndoneError
    assert withdrawn.passages == sorted({row["passage_id"] for row in own if row["weight"] > 0})
    assert withdrawn.units == sorted({row["unit_id"] for row in own})
    assert not withdrawn.waited
    assert after.events == before.events - 1
    assert len(left) == len(credits) - len(own) < len(credits)
    assert first not in {credit.event_id for credit in left}


def test_evidence_of_another_collection_is_not_withdrawn(
    application: Application, curie: str, taught: TaughtCollection
) -> None:
    before = {table: state.rows(application, taught.name, table) for table in ("key_evidence", "key_credit")}
    carried = [row["event_id"] for row in before["key_evidence"]]
    with application.database.read() as reader:
        assert key_evidence_log.has_evidence(reader, taught.id, carried)
        assert not key_evidence_log.has_evidence(reader, taught.id, [])
        assert not key_evidence_log.has_evidence(reader, taught.other, carried)
    target = state.collection_id(application, curie)
    with application.database.write() as writer:
        nothing = key_evidence_log.withdraw(writer, target, carried)
    assert nothing == key_evidence_log.WithdrawnEvidence([], [], waited=False)
    assert {table: state.rows(application, taught.name, table) for table in before} == before
