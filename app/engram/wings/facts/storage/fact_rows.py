"""Reading facts: as they stand, who says them, what moved them, and the entities that they are of."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from engram.storage.column_parameters import integers
from engram.storage.database import Reader
from engram.storage.row_lookups import WANTED_IDS, join_by_index


@dataclass(frozen=True, slots=True)
class FactRow:
    """A fact as it stands; ``subject`` and ``object`` are as they were written first.

    ``object_id`` is 0 where the object is no entity. Days are as ``wings.facts.core.claims`` counts.
    """

    id: int
    graph_id: int
    subject_id: int
    subject: str
    predicate: str
    object_id: int
    object: str
    object_kind: str
    valid_from: int
    valid_to: int
    belief: float
    perplexity: float
    observations: int
    held_until: int
    closed_at: datetime | None
    closed_reason: str | None
    superseded_by: int | None
    learned_at: datetime


@dataclass(frozen=True, slots=True)
class SourceRow:
    """Source of a fact: a passage's sentence, or a statement by ``stated_by``.

    ``withdrawn_at``: since when it says so no more.
    """

    fact_id: int
    sequence: int
    passage_id: int | None
    sentence_id: int | None
    statement_id: int | None
    stated_by: str | None
    text: str
    confidence: float
    learned_at: datetime
    withdrawn_at: datetime | None


@dataclass(frozen=True, slots=True)
class BelievedFact:
    """A fact with the first that says it, and what is believed of it."""

    fact: FactRow
    source: SourceRow
    belief: float


@dataclass(frozen=True, slots=True)
class FactMoveRow:
    """Move of a fact by a source of it or of a rival, or by an event."""

    sequence: int
    target: int
    observation_noise: float
    gain: float
    belief: float
    perplexity_before: float
    perplexity_after: float
    at: datetime
    event_id: int | None
    kind: str
    judge: str | None
    said_of: int
    passage: str | None
    text: str | None


@dataclass(frozen=True, slots=True)
class EntityRow:
    """An entity of facts."""

    id: int
    graph_id: int
    name: str
    surface: str
    stands_for: int | None


_FACT = """
    f.id, f.graph_id, f.subject_id, s.surface AS subject, f.predicate, f.object_id,
    CASE WHEN f.object_id = f.subject_id THEN f.object_text ELSE coalesce(o.surface, f.object_text) END AS object,
    f.object_kind, f.valid_from, f.valid_to, f.belief, f.perplexity,
    f.observations, f.held_until, f.closed_at, f.closed_reason, f.superseded_by, f.learned_at
"""
_NAMES = join_by_index("fact_entity s", "s.id = f.subject_id") + join_by_index(
    "fact_entity o", "o.id = f.object_id", outer=True
)


def load_facts(reader: Reader, collection_id: int, facts: Iterable[int]) -> dict[int, FactRow]:
    """Load these facts; fact -> its row."""
    fact_rows = reader.rows(
        f"SELECT {_FACT} FROM {WANTED_IDS} {join_by_index('fact f', 'f.id = wanted.id')} {_NAMES}",
        {"collection": collection_id, "ids": sorted(set(facts))},
    )
    return {row.id: FactRow(**row._asdict()) for row in fact_rows}


def sources(reader: Reader, collection_id: int, facts: Iterable[int]) -> list[SourceRow]:
    """Return the sources of facts, in the order in which they were learned."""
    source_rows = reader.rows(
        f"""
        SELECT held.fact_id, held.sequence, held.passage_id, held.sentence_id, held.statement_id,
               said.source AS stated_by, coalesce(t.text, said.text) AS text, held.confidence, held.learned_at,
               left_by.received_at AS withdrawn_at
        FROM {WANTED_IDS} {join_by_index("fact_source held", "held.fact_id = wanted.id")}
        {join_by_index("fact_event left_by", "left_by.id = held.withdrawn_by", outer=True)}
        {join_by_index("sentence t", "t.id = held.sentence_id", outer=True)}
        {join_by_index("fact_statement said", "said.id = held.statement_id", outer=True)}
        ORDER BY held.sequence
        """,
        {"collection": collection_id, "ids": sorted(set(facts))},
    )
    return [SourceRow(**row._asdict()) for row in source_rows]


def load_believed_facts(
    reader: Reader, collection_id: int, facts: Sequence[int], as_of: datetime | None = None
) -> dict[int, BelievedFact]:
    """Load these facts, each with its belief and its first source, by one statement.

    A source that still states the fact comes before one that was withdrawn.

    Args:
        as_of: moment of belief and sources; a fact that had no source or no belief by then is left out.
    """
    believed = "SELECT f.belief AS believed"
    by_then = "" if as_of is None else "AND held.learned_at <= %(as_of)s"
    if as_of is not None:
        believed = """
            SELECT a.belief AS believed FROM fact_audit a
            WHERE a.collection_id = %(collection)s AND a.fact_id = f.id AND a.at <= %(as_of)s
            ORDER BY a.sequence DESC LIMIT 1
        """
    belief_rows = reader.rows(
        f"""
        SELECT {_FACT}, held.sequence, held.passage_id, held.sentence_id, held.statement_id, said.source,
               coalesce(t.text, said.text), held.confidence, held.learned_at AS said_at, left_by.received_at,
               at.believed
        FROM {WANTED_IDS} {join_by_index("fact f", "f.id = wanted.id")} {_NAMES}
        CROSS JOIN LATERAL (
            SELECT held.* FROM fact_source held
            WHERE held.collection_id = %(collection)s AND held.fact_id = f.id {by_then}
            ORDER BY held.withdrawn_by IS NOT NULL, held.sequence LIMIT 1
        ) AS held
        {join_by_index("fact_event left_by", "left_by.id = held.withdrawn_by", outer=True)}
        {join_by_index("sentence t", "t.id = held.sentence_id", outer=True)}
        {join_by_index("fact_statement said", "said.id = held.statement_id", outer=True)}
        CROSS JOIN LATERAL ({believed}) AS at
        """,
        {"collection": collection_id, "ids": integers(facts), "as_of": as_of},
    )
    columns = len(fields(FactRow))
    return {
        row[0]: BelievedFact(FactRow(*row[:columns]), SourceRow(row[0], *row[columns:-1]), row[-1])
        for row in belief_rows
    }


def moves(reader: Reader, collection_id: int, fact_id: int, rivals: Iterable[int]) -> list[FactMoveRow]:
    """Return the moves of a fact, in order.

    Args:
        rivals: the facts that bear on it, itself among them: what moved it was said of one of them.
    """
    move_rows = reader.rows(
        f"""
        WITH said AS MATERIALIZED (
            SELECT held.sequence, held.fact_id, NULL::bigint AS event_id, 'source' AS kind, said.source AS judge,
                   p.external_id AS passage, coalesce(t.text, said.text) AS text
            FROM {WANTED_IDS} {join_by_index("fact_source held", "held.fact_id = wanted.id")}
            {join_by_index("sentence t", "t.id = held.sentence_id", outer=True)}
            {join_by_index("passage p", "p.id = held.passage_id", outer=True)}
            {join_by_index("fact_statement said", "said.id = held.statement_id", outer=True)}
            UNION ALL
            SELECT e.sequence, e.fact_id, e.id, e.kind, e.judge, NULL, e.reason
            FROM {WANTED_IDS} {join_by_index("fact_event e", "e.fact_id = wanted.id")}
            UNION ALL
            SELECT DISTINCT ON (e.sequence)
                   e.sequence, held.fact_id, e.id, e.kind, e.judge, p.external_id, said.text
            FROM {WANTED_IDS} {join_by_index("fact_source held", "held.fact_id = wanted.id")}
            {join_by_index("fact_event e", "e.id = held.withdrawn_by")}
            {join_by_index("passage p", "p.id = held.passage_id", outer=True)}
            {join_by_index("fact_statement said", "said.id = held.statement_id")}
        )
        SELECT a.sequence, a.target, a.observation_noise, a.gain, a.belief, a.perplexity_before, a.perplexity_after,
               a.at, said.event_id, said.kind, said.judge, said.fact_id AS said_of, said.passage, said.text
        FROM (SELECT %(fact)s::bigint AS id) AS wanted {join_by_index("fact_audit a", "a.fact_id = wanted.id")}
        JOIN said USING (sequence) ORDER BY a.sequence
        """,
        {"collection": collection_id, "ids": sorted({fact_id, *rivals}), "fact": fact_id},
    )
    return [FactMoveRow(**row._asdict()) for row in move_rows]


def entities(reader: Reader, collection_id: int, ids: Iterable[int]) -> dict[int, EntityRow]:
    """Load these entities; entity -> its row."""
    entity_rows = reader.rows(
        f"""
        SELECT e.id, e.graph_id, e.name, e.surface, e.stands_for
        FROM {WANTED_IDS} {join_by_index("fact_entity e", "e.id = wanted.id")}
        """,
        {"collection": collection_id, "ids": sorted(set(ids))},
    )
    return {row.id: EntityRow(**row._asdict()) for row in entity_rows}


def list_next_names(reader: Reader, collection_id: int, graph_id: int, after: int, limit: int) -> dict[int, str]:
    """List entities of a graph that follow ``after``, in id order; entity -> its normalised name."""
    rows = reader.rows(
        """
        SELECT id, name FROM fact_entity WHERE collection_id = %(collection)s AND graph_id = %(graph)s
        AND id > %(after)s ORDER BY id LIMIT %(limit)s
        """,
        {"collection": collection_id, "graph": graph_id, "after": after, "limit": limit},
    )
    return {row.id: row.name for row in rows}


def members(reader: Reader, collection_id: int, ids: Iterable[int]) -> list[int]:
    """List the entities that were joined to one of these."""
    member_rows = reader.rows(
        f"SELECT e.id FROM {WANTED_IDS} {join_by_index('fact_entity e', 'e.stands_for = wanted.id')} ORDER BY e.id",
        {"collection": collection_id, "ids": sorted(set(ids))},
    )
    return [row.id for row in member_rows]
