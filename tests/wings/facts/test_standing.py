"""A judge that is not trusted: on facts it counts as little as on answers, until it has agreed often enough."""

from dataclasses import replace
from datetime import timedelta

import pytest

from engram.composition.container import Application
from engram.core.learning.judge_standing import JudgeStanding
from engram.services.auth.scope import LOCAL, Scope
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_service import Revision, StatedFact
from engram.wings.facts.storage import fact_rows, fact_standings
from engram.wings.facts.storage.fact_rows import FactRow
from tests.support import past, undo

ESTABLISHED = 11
"""Agreements that it takes."""


@pytest.fixture
def scope(application: Application, collection: str) -> Scope:
    """Somebody whose key is trusted."""
    application.corpus.ingest.receive(application.auth.access.prepare_opening(collection)).add([], [])
    return application.auth.access.scope(collection)


@pytest.fixture
def stranger(scope: Scope) -> Scope:
    """Somebody whose key is not trusted."""
    return replace(scope, principal=replace(LOCAL, name="stranger", judges_as="stranger", trusted=False))


def state(application: Application, scope: Scope, *objects: str) -> list[int]:
    stated = [StatedFact(Triple(f"S{o}", "place of birth", o, 0, "entity", None, None, 1.0)) for o in objects]
    return list(facts_of(application).facts.state(scope, stated, source="a").facts)


def row(application: Application, scope: Scope, fact: int) -> FactRow:
    with application.database.read() as reader:
        return fact_rows.load_facts(reader, scope.collection.id, [fact])[fact]


def say(application: Application, scope: Scope, action: str, fact: int, judge: str, key: str) -> None:
    facts_of(application).facts.revise(scope, [Revision(action, fact)], judge=judge, key=key)


def yesterday(application: Application, scope: Scope) -> None:
    """Have everything said so far be of the day before."""
    with application.database.write() as writer:
        writer.execute(
            "UPDATE fact_event SET received_at = now() - interval '1 day' WHERE collection_id = %(id)s",
            {"id": scope.collection.id},
        )


def test_a_new_judge_moves_a_fact_a_little_and_all_new_judges_share_a_cap(
    application: Application, scope: Scope, stranger: Scope
) -> None:
    trusted, other = state(application, scope, "A", "B")
    before = row(application, scope, other).belief
    say(application, scope, "contradict", trusted, "ana", "1")
    say(application, stranger, "contradict", other, "stranger", "2")
    known, new = row(application, scope, trusted).belief, row(application, scope, other).belief
    assert known < new < before
    # All new judges of a day close at most the newcomers' share of the distance, however many they are.
    for number in range(8):
        name = f"stranger {number}"
        another = replace(stranger, principal=replace(stranger.principal, name=name, judges_as=name))
        say(application, another, "contradict", other, name, f"more {number}")
    share = application.models.noise.newcomers
    assert row(application, scope, other).belief >= before * (1 - share) - 1e-9
    undo.assert_verified(application, scope.collection.name)


def test_new_judge_neither_outvotes_nor_closes_facts(
    application: Application, scope: Scope, stranger: Scope
) -> None:
    fact, after = state(application, scope, "A", "B")
    say(application, scope, "confirm", fact, "ana", "1")
    sure = row(application, scope, fact)
    say(application, stranger, "contradict", fact, "stranger", "2")
    contested = application.models.noise.contested
    assert row(application, scope, fact).belief >= sure.belief * (1 - contested) - 1e-9
    say(application, stranger, "close", fact, "stranger", "3")
    facts_of(application).facts.revise(stranger, [Revision("supersede", fact, by=after)], judge="stranger", key="4")
    assert row(application, scope, fact).closed_at is None
    say(application, scope, "close", fact, "ana", "5")
    assert row(application, scope, fact).closed_at is not None
    undo.assert_verified(application, scope.collection.name)


def test_agreement_makes_a_judge_count_from_the_day_after(
    application: Application, scope: Scope, stranger: Scope
) -> None:
    *facts, last, control = state(application, scope, *map(str, range(ESTABLISHED + 2)))
    for number, fact in enumerate(facts):
        say(application, scope, "confirm", fact, "ana", f"ana {number}")
        say(application, stranger, "confirm", fact, "stranger", f"stranger {number}")
    moment = past.now(application)
    with application.database.read() as reader:
        today = fact_standings.load_standing(reader, scope.collection.id, "stranger", moment.date())
        then = fact_standings.load_standing(
            reader, scope.collection.id, "stranger", moment.date() + timedelta(days=1)
        )
    assert today == JudgeStanding(0, 0)
    assert then == JudgeStanding(ESTABLISHED, 0)
    assert then.weight == 1.0
    yesterday(application, scope)
    say(application, stranger, "contradict", last, "stranger", "now")
    say(application, scope, "contradict", control, "ana", "now too")
    assert row(application, scope, last).belief == pytest.approx(row(application, scope, control).belief)


def test_disagreement_counts_and_what_both_contradict_does_not(
    application: Application, scope: Scope, stranger: Scope
) -> None:
    one, two, three = state(application, scope, "A", "B", "C")
    for number, (fact, ana, other) in enumerate(
        [(one, "confirm", "contradict"), (two, "contradict", "contradict"), (three, "contradict", "confirm")]
    ):
        say(application, scope, ana, fact, "ana", f"ana {number}")
        say(application, stranger, other, fact, "stranger", f"stranger {number}")
    tomorrow = past.now(application).date() + timedelta(days=1)
    with application.database.read() as reader:
        found = fact_standings.load_standing(reader, scope.collection.id, "stranger", tomorrow)
        nobody = fact_standings.load_standing(reader, scope.collection.id, "nobody", tomorrow)
    assert found == JudgeStanding(0, 2)
    assert nobody == JudgeStanding()


def test_trusted_judge_counts_in_full(application: Application, scope: Scope, stranger: Scope) -> None:
    fact, control = state(application, scope, "A", "B")
    application.learning.judges.set(scope, "stranger", trusted=True)
    say(application, stranger, "contradict", fact, "stranger", "1")
    say(application, scope, "contradict", control, "ana", "2")
    assert row(application, scope, fact).belief == pytest.approx(row(application, scope, control).belief)


def test_the_weight_stays_with_the_event(application: Application, scope: Scope, stranger: Scope) -> None:
    (fact,) = state(application, scope, "A")
    say(application, stranger, "contradict", fact, "stranger", "1")
    with application.database.read() as reader:
        kept = reader.scalar(
            "SELECT standing FROM fact_event WHERE collection_id = %(id)s AND kind = 'contradict'",
            {"id": scope.collection.id},
        )
    assert kept == pytest.approx(1 / 5)  # one agreement in five, before anything is known
