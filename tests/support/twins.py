"""Two collections with the same passages and the same verdicts, compared without the ids that differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from engram.composition.container import Application
from tests.conftest import CURIE
from tests.support import evolving, state, undo

Rows = list[dict[str, Any]]
# Why and when keys evolved may differ, and what it is: not what they became.
INCIDENTAL = ("collection_id", "reason")


def create_twin(application: Application, collection: str) -> str:
    """A collection as ``curie`` makes it, of this name."""
    job = state.stage_passages(application, collection, *CURIE)
    application.jobs.runner.run_ready()
    assert application.jobs.jobs.job(application.auth.access.scope(collection), job).status == "succeeded"
    return collection


def list_learned(application: Application, collection: str) -> dict[str, Rows]:
    """Everything that verdicts left, to the last bit, with names and places in the log instead of ids."""
    names = {row["id"]: row["external_id"] for row in state.rows(application, collection, "passage")}
    sentences = {
        row["id"]: f"{names[row['passage_id']]} {row['position']}"
        for row in state.rows(application, collection, "sentence")
    }
    times = {row["id"]: row["text"] for row in state.rows(application, collection, "time_expression")}
    log = sorted(state.event_statuses(application, collection))
    events = {event: place for place, event in enumerate(log)}
    named: Mapping[str, Mapping[int, Any]] = {
        "passage_id": names,
        "sentence_id": sentences,
        "event_id": events,
        "time_expression_id": times,
    }

    def replace_ids(row: Mapping[str, Any]) -> dict[str, Any]:
        return {
            column: named[column][value] if column in named and value is not None else value
            for column, value in row.items()
            if column not in INCIDENTAL
        }

    found = undo.list_learned(application, collection)
    return {table: sorted(map(replace_ids, rows), key=repr) for table, rows in found.items()}


def set_aside(application: Application, twin: str) -> None:
    """Have workers leave the twin's verdicts alone: they are for the reference to apply."""
    with application.database.write() as writer:
        writer.execute(
            "UPDATE feedback_event SET received_at = now() + interval '1 hour' WHERE collection_id = %(c)s",
            {"c": state.collection_id(application, twin)},
        )


def assert_as_without_fault(
    application: Application, collection: str, events: Sequence[int], twin: str, twins: Sequence[int]
) -> None:
    """Apply the twin's events one by one in the order in which the collection's were, and compare all they taught.

    The order is the one that the collection reports. Where several workers or a restart share the work it is not
    that of acceptance, and each order of events that touch the same state has a result of its own.
    """
    assert set(state.event_statuses(application, collection).values()) == {"applied"}
    order = [twins[events.index(event)] for event in state.list_applied_order(application, collection)]
    assert sorted(order) == list(twins)
    with application.database.write() as writer:  # what a judge may move goes by the day
        writer.execute(
            """
            UPDATE feedback_event AS twin SET received_at = event.received_at
            FROM unnest(%(twins)s::bigint[], %(events)s::bigint[]) AS pair(twin, event)
            JOIN feedback_event event ON event.id = pair.event AND event.collection_id = %(collection)s
            WHERE twin.id = pair.twin AND twin.collection_id = %(of)s
            """,
            {
                "twins": list(twins),
                "events": list(events),
                "collection": state.collection_id(application, collection),
                "of": state.collection_id(application, twin),
            },
        )
    undo.apply(application, twin, order)
    for one in (collection, twin):
        evolving.evolve(application, application.auth.access.scope(one))
    undo.assert_same(list_learned(application, collection), list_learned(application, twin))
