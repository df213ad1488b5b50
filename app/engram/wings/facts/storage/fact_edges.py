"""Walking the graph of facts: where a question starts, and what leads on, hubs cut."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from engram.storage.column_parameters import integers
from engram.storage.database import Reader
from engram.storage.row_lookups import WANTED_IDS, id_rows, join_by_index
from engram.wings.facts.core.beliefs import UNSAID
from engram.wings.facts.storage.fact_rows import EntityColumns, FactRow, choose_columns

READ_PER_KEPT = 2
"""Edges of an entity that are read for each that is kept: what is read is bounded, whatever is left out of it."""


@dataclass(frozen=True, slots=True)
class Start:
    """An entity by a name that was asked for; ``exact`` unless the name lacks what the entity's has in brackets."""

    name: str
    entity_id: int
    surface: str
    exact: bool


class Edge(NamedTuple):
    """A fact as a walk sees it; ``object_id`` is 0 at an object that is no entity.

    A walk reads hundreds of them, which is why they are plain tuples.
    """

    id: int
    subject_id: int
    predicate: str
    object_id: int
    text: str
    kind: str
    belief: float
    valid_from: int
    held_until: int
    closed: bool


class NearbyEdges(NamedTuple):
    """Edges of some entities.

    Attributes:
        namesakes: (entity, another one that its name means as well), see ``_NAMESAKES``.
        edges: (entity, a fact that begins or ends at it): of the entities and of their namesakes.
    """

    namesakes: Sequence[tuple[int, int]]
    edges: Sequence[tuple[int, Edge]]


@dataclass(frozen=True, slots=True)
class EdgeFilter:
    """Filter of the facts that a walk may take.

    Attributes:
        as_of: learned by then, and closed only if closed by then; None: as of now.
        min_belief: in [0, 1], of what is believed now.
        days: (first, after the last) of which it can hold one; None: any.
        predicate: only of this predicate.
    """

    as_of: datetime | None = None
    min_belief: float = 0.0
    days: tuple[int, int] | None = None
    predicate: str | None = None


def starts(reader: Reader, collection_id: int, graph_id: int, names: Iterable[str], most: int) -> list[Start]:
    """The entities of these normalised names, ``most`` of each that lacks its brackets."""
    entity = choose_columns(reader).entity.format("e")
    surface = "e.surface" if reader.reader_sets is None else "e.name AS surface"
    of_name = f"""
        SELECT {entity} AS id, {surface} FROM fact_entity e
        WHERE e.collection_id = %(collection)s AND e.graph_id = %(graph)s AND e.{{0}} = wanted.id
    """
    rows = reader.rows(
        f"""
        SELECT wanted.id AS name, e.id, e.surface, true AS exact FROM {id_rows("names", "text")}
        CROSS JOIN LATERAL ({of_name.format("name")} OFFSET 0) AS e
        UNION ALL
        SELECT wanted.id, e.id, e.surface, false FROM {id_rows("names", "text")}
        CROSS JOIN LATERAL ({of_name.format("bare")} AND e.name <> e.bare ORDER BY e.id LIMIT %(most)s) AS e
        """,
        {"collection": collection_id, "graph": graph_id, "names": list(names), "most": most},
    )
    return [Start(row.name, row.id, row.surface, row.exact) for row in rows]


_NAMESAKES = f"""
    SELECT min(other.id) AS id, e.id AS here FROM {WANTED_IDS} {join_by_index("fact_entity e", "e.id = wanted.id")}
    CROSS JOIN LATERAL (
        SELECT {{0}} AS id, n.name = n.bare AS plain FROM fact_entity n
        WHERE n.collection_id = %(collection)s AND n.graph_id = e.graph_id AND n.bare = e.bare
        LIMIT 4
    ) AS other
    WHERE other.id <> e.id GROUP BY e.id, e.name, e.bare
    HAVING count(DISTINCT other.id) = 1 AND bool_or(other.plain) = (e.name <> e.bare)
"""
"""Entities and another one that each one's name means as well: the only one called so but for what is added in
brackets. A page may be called "Thomas Carr (director)", and others speak of Thomas Carr. Where there are two such,
or both names have something in brackets, nobody knows who is meant."""


def find_believed_edges(
    reader: Reader,
    collection_id: int,
    entities: Sequence[int],
    allowed: EdgeFilter,
    most: int,
    read: Iterable[int] = (),
) -> NearbyEdges:
    """Find allowed facts that begin or end at these entities or their namesakes, by what all sources led to.

    One statement for a step of a walk: what a search waits for is round trips.

    Args:
        most: facts of each entity in either direction.
        read: entities that were read before: they may be namesakes, and nothing is read of them.
    """
    return _find_edges(reader, collection_id, entities, allowed, most, read)


def find_stated_edges(
    reader: Reader,
    collection_id: int,
    entities: Sequence[int],
    predicate: str | None,
    most: int,
    read: Iterable[int] = (),
) -> NearbyEdges:
    """Find facts around entities as ``find_believed_edges`` does, but whatever is believed of them.

    For whoever sees some passages only: stored beliefs are by all sources, so that they decide nothing here.
    """
    return _find_edges(reader, collection_id, entities, EdgeFilter(predicate=predicate), most, read)


def _find_edges(
    reader: Reader,
    collection_id: int,
    entities: Sequence[int],
    allowed: EdgeFilter,
    most: int,
    read: Iterable[int],
) -> NearbyEdges:
    start, end = allowed.days or (0, 0)
    columns = choose_columns(reader)
    rows = reader.rows(
        f"""
        WITH near AS MATERIALIZED (
            SELECT wanted.id, 0::bigint AS here FROM {WANTED_IDS}
            UNION ALL {_NAMESAKES.format(columns.entity.format("n"))}
        )
        SELECT near.id AS entity, near.here, f.* FROM near LEFT JOIN LATERAL (
            {_build_edge_query(columns.subject, columns, allowed)}
            UNION ALL {_build_edge_query(columns.object, columns, allowed)}
        ) AS f ON true
        """,
        {
            "collection": collection_id,
            "ids": integers(entities),
            "seen": integers(read),
            "most": most,
            "read": most * READ_PER_KEPT,
            "belief": allowed.min_belief,
            "as_of": allowed.as_of,
            "start": start,
            "end": end,
            "predicate": allowed.predicate,
        },
    )
    alike = dict.fromkeys((row[1], row[0]) for row in rows if row[1])
    place = {entity: at for at, entity in enumerate(entities)}
    return NearbyEdges(
        sorted(alike, key=lambda pair: place[pair[0]]),
        [(row[0], Edge._make(row[2:])) for row in rows if row[2] is not None],
    )


def select_edge(row: FactRow, allowed: EdgeFilter) -> Edge | None:
    """Return a fact as a walk sees it; None if the walk may not take it, by the rule of ``find_believed_edges``."""
    closed = row.closed_at is not None and (allowed.as_of is None or row.closed_at <= allowed.as_of)
    ends = min(row.valid_to, row.held_until)
    if row.belief < allowed.min_belief or (allowed.as_of is not None and row.learned_at > allowed.as_of):
        return None
    if allowed.days is not None:
        start, end = allowed.days
        if row.valid_from >= end or ends <= start or (closed and row.closed_reason == UNSAID):
            return None
    until = ends if closed or allowed.as_of is None else row.valid_to
    return Edge(
        row.id, row.subject_id, row.predicate, row.object_id, row.object, row.object_kind, row.belief,
        row.valid_from, until, closed,
    )  # fmt: skip


def _build_edge_query(column: str, columns: EntityColumns, allowed: EdgeFilter) -> str:
    """The facts of an entity ``near`` in one direction, as ``Edge`` has them."""
    condition = "f.belief >= %(belief)s"
    if allowed.as_of is not None:
        condition += " AND f.learned_at <= %(as_of)s"
    if allowed.days is not None:
        condition += " AND f.valid_from < %(end)s AND least(f.valid_to, f.held_until) > %(start)s"
        unsaid = f"f.closed_reason = '{UNSAID}'" + (
            "" if allowed.as_of is None else " AND f.closed_at <= %(as_of)s"
        )
        condition += f" AND ({unsaid}) IS NOT TRUE"
    predicate = "" if allowed.predicate is None else "AND f.predicate = %(predicate)s"
    closed, until = "f.closed_at IS NOT NULL", "least(f.valid_to, f.held_until)"
    if allowed.as_of is not None:
        closed += " AND f.closed_at <= %(as_of)s"
        until = f"CASE WHEN {closed} THEN {until} ELSE f.valid_to END"
    return f"""
        (SELECT f.id, f.{columns.subject}, f.predicate, f.{columns.object}, f.object_text, f.object_kind, f.belief,
                f.valid_from, {until}, {closed}
         FROM (
             SELECT f.* FROM fact f WHERE f.collection_id = %(collection)s AND f.{column} = near.id {predicate}
                 AND near.id <> ALL(%(seen)s::bigint[]) LIMIT %(read)s
         ) AS f WHERE {condition} LIMIT %(most)s)
    """
