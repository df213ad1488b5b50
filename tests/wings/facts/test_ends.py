"""Facts that another one ends: posts that somebody resigns from, seats that move."""

from datetime import date
from typing import Any

import pytest

from engram.composition.container import Application
from engram.services.auth.scope import Scope
from engram.wings.facts.core.beliefs import ENDED, SUPERSEDED
from engram.wings.facts.core.claims import NEVER
from engram.wings.facts.core.triples import Triple
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_service import StatedFact
from tests.support import state, undo


@pytest.fixture
def scope(application: Application, collection: str) -> Scope:
    """An empty collection."""
    state.stage_passages(application, collection)
    application.jobs.runner.run_ready()
    return application.auth.access.scope(collection)


def say(
    application: Application,
    scope: Scope,
    source: str,
    triple: tuple[str, str, str],
    *,
    start: date | None = None,
    end: date | None = None,
) -> int:
    """Have a source state a fact; return the event."""
    first, last = (None if day is None else day.toordinal() for day in (start, end))
    subject, predicate, thing = triple
    fact = Triple(subject, predicate, thing, 0, "text", first, last, 0.85)
    return facts_of(application).facts.state(scope, [StatedFact(fact)], source=source).event.id


def facts(application: Application, scope: Scope) -> dict[str, dict[str, Any]]:
    """The facts by their objects; of one object with a first day before one without."""
    rows = sorted(state.rows(application, scope.collection.name, "fact"), key=lambda row: row["valid_from"])
    return {row["object_text"]: row for row in rows}


def test_resigned_closes_the_post_and_its_retraction_opens_it_again(application: Application, scope: Scope) -> None:
    post = "Ana Ferreira", "position held", "mayor of Braga"
    say(application, scope, "begun", post, start=date(2012, 10, 1))
    resigned = say(application, scope, "resigned", post, end=date(2018, 1, 1))
    mayor = facts(application, scope)["mayor of Braga"]
    assert (mayor["valid_from"], mayor["held_until"]) == (
        date(2012, 10, 1).toordinal(),
        date(2018, 1, 1).toordinal(),
    )
    assert mayor["closed_reason"] == ENDED
    undo.assert_verified(application, scope.collection.name)

    facts_of(application).retractions.revoke(scope, resigned)
    mayor = facts(application, scope)["mayor of Braga"]
    assert (mayor["held_until"], mayor["closed_reason"]) == (NEVER, None)
    undo.assert_verified(application, scope.collection.name)


def test_a_dated_seat_replaces_an_undated_one(application: Application, scope: Scope) -> None:
    say(application, scope, "old", ("Norra Shipping", "based in", "Kiel"))
    say(application, scope, "new", ("Norra Shipping", "based in", "Hamburg"), start=date(2019, 1, 1))
    seats = facts(application, scope)
    assert (seats["Kiel"]["closed_reason"], seats["Kiel"]["superseded_by"]) == (SUPERSEDED, seats["Hamburg"]["id"])
    assert seats["Kiel"]["held_until"] == seats["Hamburg"]["valid_from"] == date(2019, 1, 1).toordinal()
    assert seats["Hamburg"]["closed_reason"] is None
    undo.assert_verified(application, scope.collection.name)
