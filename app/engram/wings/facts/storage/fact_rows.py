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
    """Source of a fact: a statement by ``stated_by``, with the passage that it came from.

    ``withdrawn_at``: since when it says so no more.
    """

    fact_id: int
    sequence: int
    passage_id: int | None
    statement_id: int
    stated_by: str
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
class WordRow:
    """Word on a fact, by a source or an event.

    Attributes:
        judge: who gave the word: a judge, or the statement's source.
        principal: who brought the event; None: it is a source.
    """

    sequence: int
    event_id: int | None
    kind: str
    judge: str | None
    principal: str | None
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
    f.id, f.graph_id, f.{subject} AS subject_id, {subject_name} AS subject, f.predicate, f.{object} AS object_id,
    {object_name} AS object, f.object_kind, f.valid_from, f.valid_to, f.belief, f.perplexity,
    f.observations, f.held_until, f.closed_at, f.closed_reason, f.superseded_by, {learned_at} AS learned_at
"""
_NAMES = join_by_index("fact_entity s", "s.id = f.{subject}") + join_by_index(
    "fact_entity o", "o.id = f.{object}", outer=True
)
_BY_ALL = {
    "subject_name": "s.surface",
    "object_name": """
        CASE WHEN f.object_id = f.subject_id THEN f.object_text ELSE coalesce(o.surface, f.object_text) END
    """,
    "learned_at": "f.learned_at",
}
_SEEN = """
    CROSS JOIN LATERAL (
        SELECT string_agg(concat_ws(' ', p.title, said.text), ' ') AS text, min(held.learned_at) AS since
        FROM fact_source held
        LEFT JOIN passage p ON p.collection_id = held.collection_id AND p.id = held.passage_id
        LEFT JOIN fact_statement said ON said.collection_id = held.collection_id AND said.id = held.statement_id
        WHERE held.collection_id = f.collection_id AND held.fact_id = f.id
    ) AS seen
"""
_SPELLED = """
    WHEN strpos(lower(seen.text), lower({0})) > 0
    THEN substr(seen.text, strpos(lower(seen.text), lower({0})), length({0}))
"""
_BY_SOME = {
    "subject_name": f"CASE {_SPELLED.format('s.surface')} ELSE s.name END",
    "object_name": f"""
        CASE {_SPELLED.format("o.surface")} WHEN o.id IS NOT NULL THEN o.name {_SPELLED.format("f.object_text")}
             WHEN f.object_key ~ '^[0-9]+/[0-9]+$'
             THEN (date '0001-01-01' + split_part(f.object_key, '/', 1)::int - 1)::text ELSE f.object_key END
    """,
    "learned_at": "seen.since",
}
"""What callers are shown who see some passages only: names as these spell them, else normalised."""


@dataclass(frozen=True, slots=True)
class EntityColumns:
    """Columns of ``fact`` that hold its entities, and what an entity ``{0}`` counts as."""

    subject: str
    object: str
    entity: str


def choose_columns(reader: Reader) -> EntityColumns:
    """Choose how entities are read: as joined, or, for whoever sees some passages only, as sources name them.

    All sources together led to the joins.
    """
    if reader.reader_sets is None:
        return EntityColumns("subject_id", "object_id", "coalesce({0}.stands_for, {0}.id)")
    return EntityColumns("named_subject_id", "named_object_id", "{0}.id")


def _build_fact_query(reader: Reader) -> tuple[str, str]:
    """Return columns and joins of ``FactRow``; the spelling of names too is that of sources that are seen."""
    columns = choose_columns(reader)
    ends = {"subject": columns.subject, "object": columns.object}
    if reader.reader_sets is None:
        return _FACT.format(**ends, **_BY_ALL), _NAMES.format(**ends)
    return _FACT.format(**ends, **_BY_SOME), _NAMES.format(**ends) + _SEEN


def load_facts(reader: Reader, collection_id: int, facts: Iterable[int]) -> dict[int, FactRow]:
    """Load these facts; fact -> its row.

    Beliefs are those by all sources: for a caller see ``wings.facts.services.visible_beliefs``.
    """
    columns, joins = _build_fact_query(reader)
    fact_rows = reader.rows(
        f"SELECT {columns} FROM {WANTED_IDS} {join_by_index('fact f', 'f.id = wanted.id')} {joins}",
        {"collection": collection_id, "ids": sorted(set(facts))},
    )
    return {row.id: FactRow(**row._asdict()) for row in fact_rows}


def sources(reader: Reader, collection_id: int, facts: Iterable[int]) -> list[SourceRow]:
    """Return the sources of facts, in the order in which they were learned."""
    source_rows = reader.rows(
        f"""
        SELECT held.fact_id, held.sequence, held.passage_id, held.statement_id, said.source AS stated_by, said.text,
               held.confidence, held.learned_at, left_by.received_at AS withdrawn_at
        FROM {WANTED_IDS} {join_by_index("fact_source held", "held.fact_id = wanted.id")}
        {join_by_index("fact_event left_by", "left_by.id = held.withdrawn_by", outer=True)}
        {join_by_index("fact_statement said", "said.id = held.statement_id")}
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
    columns, joins = _build_fact_query(reader)
    believed = "SELECT f.belief AS believed"
    by_then = "" if as_of is None else "AND held.learned_at <= %(as_of)s"
    if as_of is not None and reader.reader_sets is None:
        believed = """
            SELECT a.belief AS believed FROM fact_audit a
            WHERE a.collection_id = %(collection)s AND a.fact_id = f.id AND a.at <= %(as_of)s
            ORDER BY a.sequence DESC LIMIT 1
        """
    belief_rows = reader.rows(
        f"""
        SELECT {columns}, held.sequence, held.passage_id, held.statement_id, said.source, said.text,
               held.confidence, held.learned_at AS said_at, left_by.received_at, at.believed
        FROM {WANTED_IDS} {join_by_index("fact f", "f.id = wanted.id")} {joins}
        CROSS JOIN LATERAL (
            SELECT held.* FROM fact_source held
            WHERE held.collection_id = %(collection)s AND held.fact_id = f.id {by_then}
            ORDER BY held.withdrawn_by IS NOT NULL, held.sequence LIMIT 1
        ) AS held
        {join_by_index("fact_event left_by", "left_by.id = held.withdrawn_by", outer=True)}
        {join_by_index("fact_statement said", "said.id = held.statement_id")}
        CROSS JOIN LATERAL ({believed}) AS at
        """,
        {"collection": collection_id, "ids": integers(facts), "as_of": as_of},
    )
    width = len(fields(FactRow))
    return {
        row[0]: BelievedFact(FactRow(*row[:width]), SourceRow(row[0], *row[width:-1]), row[-1])
        for row in belief_rows
    }


def load_words(reader: Reader, collection_id: int, facts: Iterable[int]) -> dict[int, WordRow]:
    """Load what was said of these facts; sequence -> the word."""
    rows = reader.rows(
        f"""
        SELECT held.sequence, NULL::bigint AS event_id, 'source' AS kind, said.source AS judge,
               NULL::text AS principal, held.fact_id AS said_of, p.external_id AS passage, said.text
        FROM {WANTED_IDS} {join_by_index("fact_source held", "held.fact_id = wanted.id")}
        {join_by_index("passage p", "p.id = held.passage_id", outer=True)}
        {join_by_index("fact_statement said", "said.id = held.statement_id")}
        UNION ALL
        SELECT e.sequence, e.id, e.kind, e.judge, e.principal, e.fact_id, NULL, e.reason
        FROM {WANTED_IDS} {join_by_index("fact_event e", "e.fact_id = wanted.id")}
        UNION ALL
        SELECT DISTINCT ON (e.sequence)
               e.sequence, e.id, e.kind, e.judge, e.principal, held.fact_id, p.external_id, said.text
        FROM {WANTED_IDS} {join_by_index("fact_source held", "held.fact_id = wanted.id")}
        {join_by_index("fact_event e", "e.id = held.withdrawn_by")}
        {join_by_index("passage p", "p.id = held.passage_id", outer=True)}
        {join_by_index("fact_statement said", "said.id = held.statement_id")}
        """,
        {"collection": collection_id, "ids": sorted(set(facts))},
    )
    return {row.sequence: WordRow(**row._asdict()) for row in rows}


def entities(reader: Reader, collection_id: int, ids: Iterable[int]) -> dict[int, EntityRow]:
    """Load these entities; entity -> its row.

    Whoever sees some passages only sees no joins, and names as they are normalised.
    """
    names = "e.surface, e.stands_for" if reader.reader_sets is None else "e.name AS surface, NULL AS stands_for"
    entity_rows = reader.rows(
        f"""
        SELECT e.id, e.graph_id, e.name, {names} FROM {WANTED_IDS}
        {join_by_index("fact_entity e", "e.id = wanted.id")}
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
    """List the entities that were joined to one of these; see ``entities``."""
    if reader.reader_sets is not None:
        return []
    member_rows = reader.rows(
        f"SELECT e.id FROM {WANTED_IDS} {join_by_index('fact_entity e', 'e.stands_for = wanted.id')} ORDER BY e.id",
        {"collection": collection_id, "ids": sorted(set(ids))},
    )
    return [row.id for row in member_rows]
