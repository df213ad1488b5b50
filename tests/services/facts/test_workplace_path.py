"""Facts of news and minutes through ingest: posts that end, seats that move, and which passages are read at all."""

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.core.knowledge.beliefs import ENDED, SUPERSEDED
from engram.core.knowledge.claims import NEVER
from engram.services.auth.scope import Scope
from tests.support import state, undo
from tests.support.databases import application_on

BEGUN_TERM = {
    "id": "begun",
    "title": "Council news",
    "text": "Ana Ferreira was elected mayor of Braga in October 2012.",
}
RESIGNED = {"id": "resigned", "title": "Minutes", "text": "Ana Ferreira resigned as mayor of Braga in 2017."}
OLD_SEAT = {"id": "old", "title": "Suppliers", "text": "Norra Shipping is based in Kiel."}
NEW_SEAT = {"id": "new", "title": "Suppliers", "text": "Norra Shipping moved to Hamburg in 2019."}
PAGE = {"id": "page", "title": "Ada Berg", "text": "Ada Berg was a Swedish painter. She was born in Lund."}


@pytest.fixture(scope="module")
def reading(addresses: Servers, settings: Settings, application: Application) -> Iterator[Application]:
    """An application that keeps facts of what it ingests."""
    with application_on(addresses, settings.model_copy(update={"facts": True}), application) as services:
        yield services


def put(application: Application, name: str, *passages: Mapping[str, Any]) -> Scope:
    """Ingest into a collection that reads facts from all passages."""
    state.stage_passages(application, name)
    application.runner.run_ready()
    scope = application.access.scope(name)
    application.serving.configure(scope, {"passage_facts": "on"})
    state.stage_passages(application, name, *passages)
    application.runner.run_ready()
    return scope


def facts(application: Application, name: str) -> dict[str, dict[str, Any]]:
    """The facts by their objects; of one object with a first day before one without."""
    rows = sorted(state.rows(application, name, "fact"), key=lambda row: row["valid_from"])
    return {row["object_text"]: row for row in rows}


def test_resigned_closes_the_post_and_its_deletion_opens_it_again(reading: Application, collection: str) -> None:
    put(reading, collection, BEGUN_TERM)
    mayor = facts(reading, collection)["mayor of Braga"]
    assert (mayor["predicate"], mayor["valid_from"]) == ("position held", date(2012, 10, 1).toordinal())
    assert (mayor["held_until"], mayor["closed_reason"]) == (NEVER, None)

    put(reading, collection, RESIGNED)
    mayor = facts(reading, collection)["mayor of Braga"]
    assert (mayor["held_until"], mayor["closed_reason"]) == (date(2018, 1, 1).toordinal(), ENDED)
    undo.assert_verified(reading, collection)

    reading.ingest.delete_passage(reading.access.scope(collection), "resigned")
    mayor = facts(reading, collection)["mayor of Braga"]
    assert (mayor["held_until"], mayor["closed_reason"]) == (NEVER, None)
    undo.assert_verified(reading, collection)


def test_moved_to_replaces_is_based_in(reading: Application, collection: str) -> None:
    put(reading, collection, OLD_SEAT)
    put(reading, collection, NEW_SEAT)
    seats = facts(reading, collection)
    assert {row["predicate"] for row in seats.values()} == {"based in"}
    assert (seats["Kiel"]["closed_reason"], seats["Kiel"]["superseded_by"]) == (SUPERSEDED, seats["Hamburg"]["id"])
    assert seats["Kiel"]["held_until"] == seats["Hamburg"]["valid_from"] == date(2019, 1, 1).toordinal()
    assert seats["Hamburg"]["closed_reason"] is None
    undo.assert_verified(reading, collection)


def test_passages_under_a_heading_are_read_only_where_that_is_set(reading: Application, collection: str) -> None:
    state.stage_passages(reading, collection, BEGUN_TERM, PAGE)
    reading.runner.run_ready()
    assert "mayor of Braga" not in facts(reading, collection)
    assert "Lund" in facts(reading, collection)

    scope = reading.access.scope(collection)
    assert reading.serving.configure(scope, {"passage_facts": "off"}).passage_facts == "off"
    state.stage_passages(
        reading, collection, PAGE | {"text": "Ada Berg was a Swedish painter. She was born in Oslo."}
    )
    reading.runner.run_ready()
    assert "Oslo" not in facts(reading, collection)
    assert reading.serving.configure(scope, {"passage_facts": None}).passage_facts == "auto"
