"""Copies of the statements of facts up to a past moment; beliefs are replayed from them."""

from engram.storage.database import Writer
from engram.storage.revocation.copied_rows import Copy, build_copy_statement, build_source_join

# A fact is copied if one of its sources is, an entity if one of its facts is. No entity is joined to another one.
_SOURCES_BY_THEN = "FROM fact_source held WHERE held.collection_id = %(source)s AND held.learned_at <= %(until)s"
# A revocation that was taken back later still revoked its events at ``until``.
_COVERED = """
    {0}.id IN (
        SELECT unnest(r.covers) FROM fact_event r
        WHERE r.collection_id = %(source)s AND r.kind = 'revoke' AND r.received_at <= %(until)s
          AND (r.revoked_at IS NULL OR r.revoked_at > %(until)s)
    )
"""
_COUNTED = f"""
    (event.status = 'applied' OR event.revoked_at > %(until)s) AND event.received_at <= %(until)s
    AND NOT {_COVERED.format("event")}
"""


def copy_facts(writer: Writer, copy: Copy) -> list[tuple[int, int]]:
    """Copy what was known of facts at ``copy.until``.

    These are graphs, predicates, facts, their entities and sources, and the log with its statements. Joins of
    entities are not applied: the caller applies those returned.

    Returns:
        The joins that counted at that moment, in log order, as (joining entity, staying entity).
    """
    parameters = copy.parameters()
    for table in ("fact_graph", "fact_predicate"):
        writer.execute(
            build_copy_statement(table, f"FROM {table} held WHERE held.collection_id = %(source)s"), parameters
        )
    writer.execute(
        build_copy_statement(
            "fact",
            f"""
            FROM (SELECT DISTINCT held.fact_id {_SOURCES_BY_THEN}) AS known
            {build_source_join("fact held", "held.id = known.fact_id")}
            """,
            subject_id="held.named_subject_id",
            object_id="held.named_object_id",
        ),
        parameters,
    )
    writer.execute(
        build_copy_statement(
            "fact_entity",
            f"""
            FROM (
                SELECT unnest(ARRAY[fact.named_subject_id, fact.named_object_id]) AS id
                FROM (SELECT DISTINCT held.fact_id {_SOURCES_BY_THEN}) AS known
                {build_source_join("fact", "fact.id = known.fact_id")}
                UNION SELECT unnest(ARRAY[event.entity_id, event.other_id]) FROM fact_event event
                WHERE event.collection_id = %(source)s AND event.kind = 'merge' AND {_COUNTED}
            ) AS named {build_source_join("fact_entity held", "held.id = named.id")}
            """,
            stands_for="NULL",
        ),
        parameters,
    )
    writer.execute(
        build_copy_statement(
            "fact_event",
            "FROM fact_event held WHERE held.collection_id = %(source)s AND held.received_at <= %(until)s",
            status=f"""CASE WHEN {_COVERED.format("held")} THEN 'revoked'
                            WHEN held.revoked_at > %(until)s THEN 'applied' ELSE held.status END""",
            revoked_at=f"""CASE WHEN {_COVERED.format("held")} THEN coalesce(held.revoked_at, %(until)s)
                                WHEN held.revoked_at > %(until)s THEN NULL ELSE held.revoked_at END""",
        ),
        parameters,
    )
    writer.execute(
        build_copy_statement(
            "fact_statement",
            f"""
            FROM fact_statement held {build_source_join("fact_event event", "event.id = held.event_id")}
            WHERE held.collection_id = %(source)s AND event.received_at <= %(until)s
            """,
        ),
        parameters,
    )
    # If a passage was changed only later, its sources were not withdrawn yet.
    withdrawn_by_then = """
        (SELECT change.id FROM fact_event change WHERE change.collection_id = %(source)s
         AND change.id = held.withdrawn_by AND change.received_at <= %(until)s)
    """
    writer.execute(
        build_copy_statement("fact_source", _SOURCES_BY_THEN, withdrawn_by=withdrawn_by_then), parameters
    )
    joins = writer.rows(
        f"""
        SELECT event.other_id AS joining, event.entity_id AS staying FROM fact_event event
        WHERE event.collection_id = %(source)s AND event.kind = 'merge' AND {_COUNTED} ORDER BY event.sequence
        """,
        parameters,
    )
    return [(row.joining, row.staying) for row in joins]
