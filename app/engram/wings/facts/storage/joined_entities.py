"""Joined entities: the joins of the log, and the root of each entity.

A join is one event of kind ``merge``: from then on entity ``joining`` stands for entity ``staying``. The root of an
entity is the one that all its merges lead to.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engram.storage.column_parameters import integers
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index


@dataclass(frozen=True, slots=True)
class Join:
    """A join of the log: ``joining`` became one with ``staying``.

    Attributes:
        counts: it is not revoked.
        undone: it was split or revoked by itself, not with the merge of two graphs that it was part of.
    """

    event_id: int
    joining: int
    staying: int
    counts: bool
    undone: bool


@dataclass(frozen=True, slots=True)
class NewJoin:
    """A join to record.

    Attributes:
        reason: why, in words.
        origin_id, part_of: of one that repeats a join of another graph.
    """

    joining: int
    staying: int
    judge: str
    reason: str | None = None
    origin_id: int | None = None
    part_of: int | None = None


def side(reader: Reader, collection_id: int, entities: Iterable[int]) -> dict[int, int | None]:
    """Return all entities that are one with these now, themselves included, with the root of each."""
    rows = reader.rows(
        f"""
        WITH root AS MATERIALIZED (
            SELECT DISTINCT coalesce(e.stands_for, e.id) AS id
            FROM {WANTED_IDS} {join_by_index("fact_entity e", "e.id = wanted.id")}
        )
        SELECT e.id, e.stands_for FROM root {join_by_index("fact_entity e", "e.id = root.id")}
        UNION ALL SELECT e.id, e.stands_for FROM root {join_by_index("fact_entity e", "e.stands_for = root.id")}
        """,
        {"collection": collection_id, "ids": sorted(set(entities))},
    )
    return {row.id: row.stands_for for row in rows}


def list_joins(reader: Reader, collection_id: int, entities: Iterable[int]) -> list[Join]:
    """Joins of others to these entities, in their order, revoked ones too.

    An entity whose name nothing says any more may have been between two that are one: what joined it is told too.
    """
    join_by_id: dict[int, tuple[int, Join]] = {}
    searched: set[int] = set()
    pending = set(entities)
    while pending:
        searched |= pending
        rows = reader.rows(
            f"""
            SELECT e.id, e.other_id, e.entity_id, e.status = 'applied' AS counts, e.sequence,
                   e.status = 'revoked' AND coalesce(whole.status, '') <> 'revoked' AS undone
            FROM {WANTED_IDS} {join_by_index("fact_event e", "e.entity_id = wanted.id")}
            {join_by_index("fact_event whole", "whole.id = e.part_of", outer=True)} WHERE e.kind = 'merge'
            """,
            {"collection": collection_id, "ids": sorted(pending)},
        )
        for row in rows:
            join_by_id[row.id] = row.sequence, Join(row.id, row.other_id, row.entity_id, row.counts, row.undone)
        pending = {join.joining for _, join in join_by_id.values() if join.counts} - searched
    return [join for _, join in sorted(join_by_id.values(), key=lambda one: one[0])]


def list_counting_joins(reader: Reader, collection_id: int) -> list[tuple[int, int]]:
    """All joins of a collection that count, in their order, as (who joins, who stays)."""
    rows = reader.rows(
        """
        SELECT other_id, entity_id FROM fact_event
        WHERE collection_id = %(collection)s AND kind = 'merge' AND status = 'applied' ORDER BY sequence
        """,
        {"collection": collection_id},
    )
    return [(row.other_id, row.entity_id) for row in rows]


def load_joins(reader: Reader, collection_id: int) -> dict[int, int]:
    """All entities of a collection that stand for another one -> that."""
    rows = reader.rows(
        "SELECT id, stands_for FROM fact_entity WHERE collection_id = %(collection)s AND stands_for IS NOT NULL",
        {"collection": collection_id},
    )
    return {row.id: row.stands_for for row in rows}


def list_facts_by_entity(reader: Reader, collection_id: int, entities: Iterable[int]) -> list[int]:
    """All facts by the names of these entities."""
    rows = reader.rows(
        f"""
        SELECT f.id FROM {WANTED_IDS} {join_by_index("fact f", "f.named_subject_id = wanted.id")}
        UNION SELECT f.id FROM {WANTED_IDS} {join_by_index("fact f", "f.named_object_id = wanted.id")}
        """,
        {"collection": collection_id, "ids": sorted(set(entities))},
    )
    return [row.id for row in rows]


def stand_for(writer: Writer, collection_id: int, root: Mapping[int, int | None]) -> None:
    """Have entities stand for others, or, where None, for themselves, and facts by their names be of those."""
    if not root:
        return
    parameters = {
        "collection": collection_id,
        "ids": integers(root),
        "roots": [None if one is None else int(one) for one in root.values()],
    }
    new = alias_rows("unnest(%(ids)s::bigint[], %(roots)s::bigint[]) AS row(id, root)")
    writer.execute(
        f"""
        UPDATE fact_entity e SET stands_for = new.root FROM {new}
        WHERE e.collection_id = new.collection_id AND e.id = new.id
        """,
        parameters,
    )
    for named_column, root_column in (("named_subject_id", "subject_id"), ("named_object_id", "object_id")):
        writer.execute(
            f"""
            UPDATE fact f SET {root_column} = coalesce(new.root, f.{named_column}) FROM {new}
            WHERE f.collection_id = new.collection_id AND f.{named_column} = new.id
            """,
            parameters,
        )


def append(writer: Writer, collection_id: int, graph_id: int, new_joins: Sequence[NewJoin]) -> None:
    """Append joins to the log, in their order. They move no belief by a noise of their own."""
    writer.execute(
        """
        INSERT INTO fact_event (collection_id, graph_id, kind, judge, idempotency_key, body_hash, other_id,
            entity_id, reason, origin_id, part_of, sequence, observation_noise_positive, observation_noise_negative,
            process_noise, daily_share, contested_share)
        SELECT %(collection)s, %(graph)s, 'merge', row.judge, gen_random_uuid()::text, '', row.joining, row.staying,
               row.reason, row.origin, row.part, nextval('fact_said'), 1, 1, 0, 1, 1
        FROM (
            SELECT * FROM unnest(%(joining)s::bigint[], %(staying)s::bigint[], %(judges)s::text[],
                                 %(reasons)s::text[], %(origins)s::bigint[], %(parts)s::bigint[])
                WITH ORDINALITY AS row(joining, staying, judge, reason, origin, part, n) ORDER BY n
        ) AS row
        """,
        {
            "collection": collection_id,
            "graph": graph_id,
            "joining": integers(one.joining for one in new_joins),
            "staying": integers(one.staying for one in new_joins),
            "judges": [one.judge for one in new_joins],
            "reasons": [one.reason for one in new_joins],
            "origins": [one.origin_id for one in new_joins],
            "parts": [one.part_of for one in new_joins],
        },
    )


def find_by_name(reader: Reader, collection_id: int, graph_id: int, names: Collection[str]) -> dict[str, int]:
    """Map each normalised name to the graph's entity of that name, itself even if it stands for another one."""
    if not names:
        return {}
    rows = reader.rows(
        f"""
        SELECT wanted.id AS name, e.id FROM {id_rows("names", "text")}
        {join_by_index("fact_entity e", "e.graph_id = %(graph)s AND e.name = wanted.id")}
        """,
        {"collection": collection_id, "graph": graph_id, "names": list(names)},
    )
    return {row.name: row.id for row in rows}


def find_existing(reader: Reader, collection_id: int, entities: Sequence[int]) -> set[int]:
    """Return the entities that exist."""
    if not entities:
        return set()
    rows = reader.rows(
        f"SELECT e.id FROM {WANTED_IDS} {join_by_index('fact_entity e', 'e.id = wanted.id')}",
        {"collection": collection_id, "ids": sorted(set(entities))},
    )
    return {row.id for row in rows}
