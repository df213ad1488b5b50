"""Keys that evolve: what they are made of, when they do, and back again."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.storage.corpus import collections
from engram.wings.published.core import evolution as core
from engram.wings.published.core.evolution import KeyRules
from engram.wings.published.parts import published_of
from engram.wings.published.services.key_evolution import KeyEvolutionService
from engram.wings.published.storage.evolved_keys import EvolutionProgress
from tests.conftest import CURIE, Ingest
from tests.support import state
from tests.support.evolving import (
    ELEMENT,
    KEYS,
    REWORDED,
    RIVER,
    SPECIFIC,
    build_learning,
    list_learned,
    list_served,
    rows,
    vector,
    verdict,
)


class TestEvolution:
    def test_an_evolved_key_is_the_base_and_its_units(self, application: Application, curie: str) -> None:
        verdict(application, curie)
        opened = published_of(application).evolve.evolve(application.auth.access.scope(curie))
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
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        assert state.snapshot(application, curie, tuple(before)) == before

    def test_a_lexical_key_gains_its_units_terms(self, application: Application, curie: str) -> None:
        verdict(application, curie, expansions=[RIVER])
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        postings = rows(application, curie, "evolved_posting")
        added = sum(row["frequency"] - row["base"] for row in postings)
        assert added == pytest.approx(0.25 * postings[0]["length"], rel=1e-4)
        terms = {row["term"]: row for row in postings}
        assert terms["longest"]["base"] == 0
        assert terms["sea"]["base"] > 0

    def test_evolution_without_new_evidence_changes_nothing(self, application: Application, curie: str) -> None:
        verdict(application, curie)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        before = list_learned(application, curie), state.rows(application, curie, "key_generation")
        assert published_of(application).evolve.evolve(application.auth.access.scope(curie)) is None
        assert (list_learned(application, curie), state.rows(application, curie, "key_generation")) == before

    def test_other_rules_make_the_keys_anew(self, application: Application, curie: str) -> None:
        verdict(application, curie)
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        other = KeyEvolutionService(application.database, KeyRules(0.3, 0.25, 4, 16))
        opened = other.evolve(application.auth.access.scope(curie))
        assert opened is not None
        assert opened.number == 2
        (key,) = rows(application, curie, "passage_key")
        (base,) = [row for row in state.rows(application, curie, "passage") if row["id"] == key["passage_id"]]
        moved = float(np.linalg.norm(vector(key, "vector") - vector(base, "embedding")))
        assert moved <= core.compute_displacement_bound(0.3) + 1e-6

    def test_keys_evolve_by_themselves_once_enough_waits(self, application: Application, curie: str) -> None:
        eager = build_learning(application, most_waiting=2)
        target = state.collection_id(application, curie)
        for _ in range(2):
            eager.apply(target, [verdict(application, curie, wait=False).event.id])
        (generation,) = state.rows(application, curie, "key_generation")
        assert (generation["reason"], generation["events"]) == ("pending", 2)
        assert published_of(application).evolve.load_standing(
            application.auth.access.scope(curie)
        ).progress == EvolutionProgress(0, 0.0, 0.0, 0, 0, None)

    def test_keys_evolve_once_batches_bring_nothing_better(self, application: Application, curie: str) -> None:
        patient = build_learning(application, batch_events=2, patience=2)
        target = state.collection_id(application, curie)
        for number in range(6):
            assert state.rows(application, curie, "key_generation") == [], number
            weaker = [RIVER] if number < 2 else [ELEMENT]
            patient.apply(target, [verdict(application, curie, expansions=weaker, wait=False).event.id])
        (generation,) = state.rows(application, curie, "key_generation")
        assert (generation["reason"], generation["events"]) == ("saturated", 6)

    def test_missed_evolution_is_run_later(self, application: Application, curie: str) -> None:
        verdict(application, curie)
        with application.database.write() as writer:
            writer.execute(
                "UPDATE key_evolution SET due = 'pending' WHERE collection_id = %(c)s",
                {"c": state.collection_id(application, curie)},
            )
        assert published_of(application).evolve.run_due() >= 1
        assert published_of(application).evolve.load_standing(application.auth.access.scope(curie)).generation == 1

    def test_a_collection_that_is_being_written_to_stays_due(self, application: Application, curie: str) -> None:
        verdict(application, curie)
        target = state.collection_id(application, curie)
        with application.database.write() as writer:
            writer.execute("UPDATE key_evolution SET due = 'pending' WHERE collection_id = %(c)s", {"c": target})
        with application.database.write() as writer:
            assert collections.lock_graph(writer, target)
            assert not published_of(application).evolve.evolve_if_due(target)
        assert (
            published_of(application).evolve.load_standing(application.auth.access.scope(curie)).progress.due
            == "pending"
        )
        assert published_of(application).evolve.evolve_if_due(target)
        assert not published_of(application).evolve.evolve_if_due(target)

    def test_unhelpful_units_do_not_trigger_an_evolution(self, application: Application, curie: str) -> None:
        eager = build_learning(application, most_waiting=1, batch_events=1, patience=1)
        target = state.collection_id(application, curie)
        for _ in range(3):
            eager.apply(target, [verdict(application, curie, ["vistula"], [ELEMENT], wait=False).event.id])
        assert all(row["gain"] <= 0 for row in rows(application, curie, "key_credit"))
        assert {row["gate"] for row in rows(application, curie, "key_evidence")} == {"retrieval"}
        assert state.rows(application, curie, "key_generation") == []
        assert (
            published_of(application).evolve.load_standing(application.auth.access.scope(curie)).progress.due
            is None
        )


class TestRollback:
    @pytest.fixture
    def three(self, application: Application, curie: str) -> list[list[dict[str, Any]]]:
        """Three generations; what each served, base keys first."""
        states = [list_served(application, curie)]
        for passages, expansions in (
            (["vistula"], [RIVER]),
            (["vistula", "polonium"], [SPECIFIC]),
            (["tokyo"], [REWORDED]),
        ):
            verdict(application, curie, passages, expansions)
            assert published_of(application).evolve.evolve(application.auth.access.scope(curie)) is not None
            states.append(list_served(application, curie))
        return states

    def test_any_generation_serves_again_as_it_did(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        for number in (1, 3, 0, 2, 3):
            assert (
                published_of(application).evolve.roll_back(application.auth.access.scope(curie), number).generation
                == number
            )
            assert list_served(application, curie) == three[number]

    def test_evidence_that_was_rolled_back_stays_out_of_later_generations(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        published_of(application).evolve.roll_back(application.auth.access.scope(curie), 1)
        verdict(application, curie, ["warsaw"], [REWORDED])
        opened = published_of(application).evolve.evolve(application.auth.access.scope(curie))
        assert opened is not None
        assert (opened.number, opened.parent) == (4, 1)
        ids = state.passages(application, curie)
        assert {row["passage_id"] for row in rows(application, curie, "passage_key")} == {
            ids["vistula"],
            ids["warsaw"],
        }
        vistula = [row for row in rows(application, curie, "passage_key") if row["passage_id"] == ids["vistula"]]
        assert vistula == [row for row in three[1] if "vector" in row]
        published_of(application).evolve.roll_back(application.auth.access.scope(curie), 3)
        assert list_served(application, curie) == three[3]

    def test_waiting_evidence_goes_on_waiting(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        verdict(application, curie, ["warsaw"], [REWORDED])
        published_of(application).evolve.roll_back(application.auth.access.scope(curie), 2)
        assert list_served(application, curie) == three[2]
        assert (
            published_of(application).evolve.load_standing(application.auth.access.scope(curie)).progress.waiting
            == 1
        )
        assert published_of(application).evolve.evolve(application.auth.access.scope(curie)) is not None
        assert state.passages(application, curie)["warsaw"] in {
            row["passage_id"] for row in rows(application, curie, "passage_key")
        }

    def test_keys_of_other_rules_are_those_of_the_generation_gone_to(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        other = KeyEvolutionService(application.database, KeyRules(0.2, 0.1, 2, 16))
        verdict(application, curie, ["warsaw"], [REWORDED])
        assert other.evolve(application.auth.access.scope(curie)) is not None
        fourth = list_served(application, curie)
        assert published_of(application).evolve.roll_back(application.auth.access.scope(curie), 3).generation == 3
        assert list_served(application, curie) == three[3]
        published_of(application).evolve.roll_back(application.auth.access.scope(curie), 4)
        assert list_served(application, curie) == fourth

    def test_an_unknown_generation_is_an_error_and_changes_nothing(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        with pytest.raises(NotFoundError, match="generation 7"):
            published_of(application).evolve.roll_back(application.auth.access.scope(curie), 7)
        assert list_served(application, curie) == three[3]

    def test_forgetting_removes_keys_with_everything_that_made_them(
        self, application: Application, curie: str, three: list[list[dict[str, Any]]]
    ) -> None:
        application.revocation.learning_reset.reset(application.auth.access.scope(curie))
        assert all(rows(application, curie, table) == [] for table in (*KEYS, "key_generation", "key_evolution"))
        assert published_of(application).evolve.load_standing(application.auth.access.scope(curie)).generation == 0


class TestChangedBaseKeys:
    def test_a_changed_passage_has_its_keys_made_anew(
        self, application: Application, curie: str, ingest: Ingest
    ) -> None:
        verdict(application, curie, ["vistula", "tokyo"])
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        body = next(dict(passage) for passage in CURIE if passage["id"] == "vistula")
        changed = body | {"text": body["text"] + " Ships sail on it as far as Warsaw."}
        ingest(changed, into=curie)
        after = list_learned(application, curie)
        # The same as if the passage had always read like that.
        fresh = f"{curie}-fresh"
        ingest(*(changed if p["id"] == "vistula" else p for p in CURIE), into=fresh)
        verdict(application, fresh, ["vistula", "tokyo"])
        published_of(application).evolve.evolve(application.auth.access.scope(fresh))
        expected = list_learned(application, fresh)
        # Vectors of one text differ in their last bits with the batch they were embedded in.
        for table, column in (("key_credit", "gain"), ("key_credit", "weight"), ("expansion_memory", "score")):
            assert numbers(after[table], column) == pytest.approx(numbers(expected[table], column), abs=1e-6)
        for one, other in zip(
            sort_by_vector(after["passage_key"]), sort_by_vector(expected["passage_key"]), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-6)
        assert terms_of(after["evolved_posting"]) == terms_of(expected["evolved_posting"])

    def test_a_deleted_passage_takes_its_keys_along(self, application: Application, curie: str) -> None:
        verdict(application, curie, ["vistula", "tokyo"])
        published_of(application).evolve.evolve(application.auth.access.scope(curie))
        gone = state.passages(application, curie)["vistula"]
        application.corpus.ingest.delete_passage(application.auth.access.scope(curie), "vistula")
        for table in ("expansion_memory", "passage_key", "evolved_posting"):
            assert all(row["passage_id"] != gone for row in rows(application, curie, table))


def numbers(found: Sequence[Mapping[str, Any]], column: str) -> list[float]:
    return sorted(row[column] for row in found)


def sort_by_vector(found: Sequence[Mapping[str, Any]]) -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    return sorted((vector(row, "vector") for row in found), key=lambda key: round(float(key[0]), 4))


def terms_of(found: Sequence[Mapping[str, Any]]) -> list[tuple[str, float, float]]:
    return sorted((row["term"], row["base"], round(row["frequency"], 4)) for row in found)
