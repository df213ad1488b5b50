"""What was said of facts by a past moment, copied; what was believed of them is replayed from that."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.storage.database import Writer
from app.storage.undo.copies import Copy, of_source, rows_of


@dataclass(frozen=True, slots=True)
class Joined:
    """An entity that stood for another then, and those that had joined it before."""

    other: int
    entity: int
    members: Sequence[int]


# A fact is copied with a source that is; entities, with a fact that is. Each entity is its own until merges say.
_SOURCE = f"""
    FROM fact_source held
    {of_source("fact_statement said", "said.id = held.statement_id", outer=True)}
    {of_source("fact_event event", "event.id = said.event_id", outer=True)}
    {of_source("passage p", "p.id = held.passage_id", outer=True)}
    WHERE held.collection_id = %(source)s AND held.learned_at <= %(until)s
      AND (p.created_at <= %(until)s OR event.received_at <= %(until)s)
"""
_COUNTED = """
    (event.status = 'applied' OR event.revoked_at > %(until)s) AND event.received_at <= %(until)s
"""


def copy(writer: Writer, copy: Copy) -> list[Joined]:
    """Copy graphs, facts, their sources and the log; the merges to carry out, in their order."""
    parameters = copy.parameters()
    for table in ("fact_graph", "fact_predicate"):
        writer.execute(rows_of(table, f"FROM {table} held WHERE held.collection_id = %(source)s"), parameters)
    writer.execute(
        rows_of(
            "fact",
            f"""
            FROM (SELECT DISTINCT held.fact_id {_SOURCE}) AS said {of_source("fact held", "held.id = said.fact_id")}
            """,
            subject_id="held.subject_said",
            object_id="held.object_said",
        ),
        parameters,
    )
    writer.execute(
        rows_of(
            "fact_entity",
            f"""
            FROM (
                SELECT subject_said AS id FROM fact WHERE collection_id = %(target)s
                UNION SELECT object_said FROM fact WHERE collection_id = %(target)s
                UNION SELECT unnest(ARRAY[event.entity_id, event.other_id]) FROM fact_event event
                WHERE event.collection_id = %(source)s AND event.kind = 'merge' AND {_COUNTED}
            ) AS named {of_source("fact_entity held", "held.id = named.id")}
            """,
            stands_for="NULL",
        ),
        parameters,
    )
    writer.execute(
        rows_of(
            "fact_event",
            """
            FROM fact_event held WHERE held.collection_id = %(source)s AND held.received_at <= %(until)s
            """,
            status="CASE WHEN held.revoked_at > %(until)s THEN 'applied' ELSE held.status END",
            revoked_at="CASE WHEN held.revoked_at > %(until)s THEN NULL ELSE held.revoked_at END",
        ),
        parameters,
    )
    writer.execute(
        rows_of(
            "fact_statement",
            f"""
            FROM fact_statement held {of_source("fact_event event", "event.id = held.event_id")}
            WHERE held.collection_id = %(source)s AND event.received_at <= %(until)s
            """,
        ),
        parameters,
    )
    writer.execute(rows_of("fact_source", _SOURCE), parameters)
    found = writer.rows(
        f"""
        SELECT event.other_id AS other, event.entity_id AS entity FROM fact_event event
        WHERE event.collection_id = %(source)s AND event.kind = 'merge' AND {_COUNTED} ORDER BY event.sequence
        """,
        parameters,
    )
    members: dict[int, list[int]] = {}
    done = []
    for row in found:
        joining = members.pop(row.other, [])
        done.append(Joined(row.other, row.entity, joining))
        members.setdefault(row.entity, []).extend([row.other, *joining])
    return done
