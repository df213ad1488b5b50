"""Memories and keys that a collection does not let learn, and what the log teaches them once it does."""

from typing import Any

import pytest

from engram.composition.container import Application
from engram.wings.published.parts import published_of
from engram.wings.published.services.catch_up import CatchUpService
from tests.support import evolving, state, undo

LEFT_ALONE = ("key_evidence", "key_credit", "expansion_unit", "expansion_memory", "key_generation", "passage_key")


def set_learning(application: Application, name: str, learns: bool) -> None:
    scope = application.auth.access.scope(name)
    setting = None if learns else {"learn": False}
    application.corpus.collection_settings.configure(scope, {"published": setting})


def apply(application: Application, name: str, events: list[int]) -> None:
    applied = application.learning.learner.apply(state.collection_id(application, name), events)
    assert applied == len(events)


def catch_up(application: Application) -> None:
    """Sweep until nothing is left to credit."""
    while published_of(application).catch_up.run():
        pass


def test_verdicts_leave_keys_alone(application: Application, curie: str) -> None:
    evolving.verdict(application, curie)
    evolving.evolve(application, application.auth.access.scope(curie))
    set_learning(application, curie, False)
    before = {table: evolving.rows(application, curie, table) for table in LEFT_ALONE}
    receipt = evolving.verdict(application, curie, passages=("curie",), expansions=(evolving.SPECIFIC,))
    assert receipt.keys is None
    assert len(receipt.changes or ()) > 0
    published_of(application).sweep()
    assert {table: evolving.rows(application, curie, table) for table in LEFT_ALONE} == before
    assert all(before.values())


def test_keys_that_learn_later_are_as_if_they_always_had(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope, events = application.auth.access.scope(curie), evolving.stream(application, curie, 7, seed=1)
    apply(application, curie, events)
    progress = published_of(application).evolve.load_standing(scope).progress
    evolving.evolve(application, scope)
    always = evolving.list_learned(application, curie)
    assert all(always.values())

    evolving.forget_keys(application, curie)
    set_learning(application, curie, False)
    apply(application, curie, events)
    assert not any(evolving.list_learned(application, curie).values())
    set_learning(application, curie, True)
    monkeypatch.setattr("engram.wings.published.services.catch_up.BATCH", 3)
    catch_up(application)
    assert published_of(application).evolve.load_standing(scope).progress == progress
    evolving.evolve(application, scope)
    assert evolving.list_learned(application, curie) == always
    (standing,) = state.rows(application, curie, "key_evolution")
    assert standing["behind"] is False


def list_moves(application: Application, name: str) -> list[dict[str, Any]]:
    return [row for row in state.rows(application, name, "memory_audit") if row["channel"] != "recall"]


def list_memories(application: Application, name: str) -> list[dict[str, Any]]:
    rows = state.rows(application, name, "sentence_memory")
    return [{column: value for column, value in row.items() if column != "updated_at"} for row in rows]


def test_memories_that_learn_later_are_as_if_they_always_had(
    application: Application, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where verdicts of before and after move the same sentences, and contradict each other."""
    events = undo.stream(application, curie, 20, seed=5)
    apply(application, curie, events)
    always = list_moves(application, curie), list_memories(application, curie)
    assert {row["channel"] for row in list_moves(application, curie)} == {"task", "time"}

    undo.forgotten(application, curie)
    apply(application, curie, events[:5])
    set_learning(application, curie, False)
    moved = list_moves(application, curie)
    apply(application, curie, events[5:12])
    assert list_moves(application, curie) == moved
    undo.assert_verified(application, curie)
    set_learning(application, curie, True)
    apply(application, curie, events[12:])
    undo.assert_verified(application, curie)
    monkeypatch.setattr("engram.wings.published.services.catch_up.BATCH", 3)
    catch_up(application)
    assert (list_moves(application, curie), list_memories(application, curie)) == always
    undo.assert_verified(application, curie)


def test_revoked_verdicts_are_not_credited(application: Application, curie: str) -> None:
    set_learning(application, curie, False)
    receipt = evolving.verdict(application, curie)
    application.learning.revocation.revoke(application.auth.access.scope(curie), receipt.event.id)
    set_learning(application, curie, True)
    catch_up(application)
    assert not any(evolving.list_learned(application, curie).values())


def test_a_collection_that_never_learned_has_nothing_to_credit(application: Application, curie: str) -> None:
    evolving.verdict(application, curie)
    learned = evolving.list_learned(application, curie)
    service: CatchUpService = published_of(application).catch_up
    assert service.learn_batch(state.collection_id(application, curie)) == 0
    assert evolving.list_learned(application, curie) == learned
