"""Ratings among other verdicts: replaced, taken back and replayed to the bit."""

import random
from dataclasses import replace
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.core.auth.access_keys import Grants
from engram.core.learning.ratings import Rating
from engram.services.auth.scope import Principal
from engram.services.verdict.verdict import NamedSentence, Verdict
from tests.support import state, undo

QUESTION = "Where was Marie Curie born?"


@pytest.mark.parametrize(("seed", "batch"), [(1, 1), (2, 5)])
def test_revoked_ratings_leave_no_trace(application: Application, curie: str, seed: int, batch: int) -> None:
    events = undo.stream(application, curie, 18, seed, ratings=True)
    undo.apply(application, curie, events, batch)
    taken = random.Random(seed).sample(events[::3], 3)
    for event in taken:
        application.learning.revocation.revoke(application.auth.access.scope(curie), event)
    undo.assert_verified(application, curie)
    after = undo.list_learned(application, curie)
    assert {row["sufficiency"] > 0 for row in after["question_support"]} == {True, False}

    undo.forgotten(application, curie)
    undo.apply(application, curie, [event for event in events if event not in taken])
    undo.assert_same(after, undo.list_learned(application, curie))


def test_a_broken_call_is_made_good_by_its_repetition(application: Application, curie: str) -> None:
    """The new rating was stored, and the process ended before the one before it was revoked."""
    query = add_episode(application, curie)
    first = rate(application, curie, query, "up", "first")
    verdict = build_rating(application, curie, query, "down")
    stored = application.learning.log.store_now(verdict, "second")
    application.learning.learner.apply(stored.collection_id, [stored.id])
    assert state.event_statuses(application, curie)[first] == "applied"
    second = rate(application, curie, query, "down", "second")
    assert state.event_statuses(application, curie) == {first: "revoked", second: "applied"}
    undo.assert_verified(application, curie)


def test_a_rating_that_waits_is_replaced_and_never_applied(application: Application, curie: str) -> None:
    query = add_episode(application, curie)
    scope = application.auth.access.scope(curie)
    first = application.learning.verdicts.accept(build_rating(application, curie, query, "up"), "first").event.id
    second = rate(application, curie, query, "withdrawn", "second")
    assert application.learning.learner.apply(scope.collection.id, [first, second]) == 0
    assert state.event_statuses(application, curie) == {first: "revoked", second: "applied"}
    assert state.rows(application, curie, "question_support") == []


def test_a_judge_rates_each_answer_by_itself(application: Application, curie: str) -> None:
    one, other = add_episode(application, curie), add_episode(application, curie)
    events = [rate(application, curie, query, "up", uuid4().hex) for query in (one, other)]
    assert state.event_statuses(application, curie) == dict.fromkeys(events, "applied")


def test_a_rating_replaces_none_that_another_principal_brought(application: Application, curie: str) -> None:
    query = add_episode(application, curie)
    events = []
    for name in ("one", "two"):
        judging = Principal(name, "local", Grants.from_mapping({"*": ["judge"]}), trusted=False)
        scope = application.auth.access.scope(curie, judging)
        verdict = replace(build_rating(application, curie, query, "up"), scope=scope)
        events.append(application.learning.verdicts.accept(verdict, uuid4().hex, wait=True).event.id)
    assert state.event_statuses(application, curie) == dict.fromkeys(events, "applied")


def add_episode(application: Application, name: str) -> object:
    shown = list(state.passages(application, name).values())
    return state.add_episode(application, name, QUESTION, [], shown=shown)


def build_rating(application: Application, name: str, query: object, value: Rating) -> Verdict:
    cited = [NamedSentence(passage_id="curie")] if value == "up" else []
    return Verdict(
        query_id=query, scope=application.auth.access.scope(name), judge="ana", rating=value, cited=cited
    )


def rate(application: Application, name: str, query: object, value: Rating, key: str) -> int:
    return application.learning.verdicts.accept(
        build_rating(application, name, query, value), key, wait=True
    ).event.id
