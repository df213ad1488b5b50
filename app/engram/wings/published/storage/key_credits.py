"""Credits of verdicts for passage keys: expansion units, credits, and the memories they add up to.

Scores are never kept apart from their reasons: a (passage, unit) score is the sum of its events' credits, in the
order of the events' ids, so it does not depend on who applied what first. Memories and evolved keys are made from
those sums. Credits of a removed passage count once it returns. ``evolved_keys.lock`` comes before everything here
that writes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engram.storage.column_parameters import integers, vectors
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log.judged_queries import JUDGED_QUERY_JOIN
from engram.storage.row_lookups import WANTED_IDS, id_rows, join_by_index

Vector = NDArray[np.float32]

CREDITS_AT_ONCE = 10_000
"""Credits that one statement writes: each checks three foreign keys."""
UNITS_AT_ONCE = 200
"""Expansion units that one statement writes: where a unit's terms begin is looked for from the first one's on."""


@dataclass(frozen=True, slots=True)
class Unit:
    """An expansion unit: its embedding has unit length, (d,); ``frequencies`` are its terms.

    ``stored``: this is what the database has, and not what was made for it.
    """

    text_hash: bytes
    method: str
    text: str
    embedding: Vector
    frequencies: Mapping[str, float]
    stored: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class ExpansionEvidence:
    """Outcome of an event with expansions; ``strength`` is the λ of its gains."""

    event_id: int
    gate: str
    gain: float
    strength: float


@dataclass(frozen=True, slots=True)
class Credit:
    """Credit of an event for one (passage, unit): Δ and w of ERM, Eqs. 5-6."""

    event_id: int
    passage_id: int
    unit_id: int
    gain: float
    weight: float


@dataclass(frozen=True, slots=True)
class ScoredUnit:
    """A unit's standing with a passage; ``generation`` is the latest evolution that took in evidence for it."""

    passage_id: int
    unit_id: int
    score: float
    generation: int


_UNITS_BY_ID = f"{WANTED_IDS} {join_by_index('expansion_unit unit', 'unit.id = wanted.id')}"
_PASSAGE_CREDITS = f"""
    {join_by_index("passage", "passage.id = wanted.id")}
    {join_by_index("key_credit credit", "credit.passage_id = passage.id")}
"""
_EVIDENCE = join_by_index("key_evidence evidence", "evidence.event_id = credit.event_id")
_UNITS_BY_HASH = (
    f"{id_rows('hashes', 'bytea')} {join_by_index('expansion_unit unit', 'unit.text_hash = wanted.id')}"
)


def load_units(reader: Reader, collection_id: int, hashes: Sequence[bytes]) -> dict[bytes, Unit]:
    """Text hash -> unit, for those that are stored."""
    rows = reader.rows(
        f"""
        SELECT unit.text_hash, unit.method, unit.text, unit.embedding, unit.terms, unit.frequencies
        FROM {_UNITS_BY_HASH}
        """,
        {"collection": collection_id, "hashes": list(hashes)},
    )
    return {
        row.text_hash: Unit(
            text_hash=row.text_hash,
            method=row.method,
            text=row.text,
            embedding=row.embedding.to_numpy(),
            frequencies=dict(zip(row.terms, row.frequencies, strict=True)),
            stored=True,
        )
        for row in rows
    }


def add_units(writer: Writer, collection_id: int, units: Sequence[Unit]) -> dict[bytes, int]:
    """Store units that are new, in the order of their hashes; text hash -> unit, of all given."""
    if not units:
        return {}
    ordered = sorted(units, key=lambda unit: unit.text_hash)
    for at in range(0, len(ordered), UNITS_AT_ONCE):
        _add_some_units(writer, collection_id, ordered[at : at + UNITS_AT_ONCE])
    rows = writer.rows(
        f"SELECT unit.text_hash, unit.id FROM {_UNITS_BY_HASH}",
        {"collection": collection_id, "hashes": [unit.text_hash for unit in units]},
    )
    return {row.text_hash: row.id for row in rows}


def _add_some_units(writer: Writer, collection_id: int, units: Sequence[Unit]) -> None:
    # All units' terms come in one array, from which each row cuts its own: unnest takes arrays of arrays apart.
    ends = np.cumsum([len(unit.frequencies) for unit in units])
    writer.execute(
        """
        INSERT INTO expansion_unit (collection_id, text_hash, method, text, embedding, terms, frequencies)
        SELECT %(collection)s, new.hash, new.method, new.text, new.embedding,
               (%(terms)s::text[])[new.start + 1 : new.stop], (%(frequencies)s::real[])[new.start + 1 : new.stop]
        FROM unnest(%(hashes)s::bytea[], %(methods)s::text[], %(texts)s::text[], %(embeddings)s::vector[],
                    %(starts)s::bigint[], %(stops)s::bigint[])
            AS new(hash, method, text, embedding, start, stop)
        ORDER BY new.hash ON CONFLICT DO NOTHING
        """,
        {
            "collection": collection_id,
            "hashes": [unit.text_hash for unit in units],
            "methods": [unit.method for unit in units],
            "texts": [unit.text for unit in units],
            "embeddings": vectors([unit.embedding for unit in units]),
            "terms": [term for unit in units for term in unit.frequencies],
            "frequencies": [float(frequency) for unit in units for frequency in unit.frequencies.values()],
            "starts": integers([0, *ends[:-1]]),
            "stops": integers(ends),
        },
    )


def embeddings(reader: Reader, collection_id: int, units: Sequence[int]) -> dict[int, Vector]:
    """Unit -> embedding, unit length, (d,)."""
    rows = reader.rows(
        f"SELECT unit.id, unit.embedding FROM {_UNITS_BY_ID}",
        {"collection": collection_id, "ids": list(units)},
    )
    return {row.id: row.embedding.to_numpy() for row in rows}


def frequencies(reader: Reader, collection_id: int, units: Sequence[int]) -> dict[int, dict[str, float]]:
    """Unit -> term -> how often the unit has it."""
    rows = reader.rows(
        f"SELECT unit.id, unit.terms, unit.frequencies FROM {_UNITS_BY_ID}",
        {"collection": collection_id, "ids": list(units)},
    )
    return {row.id: dict(zip(row.terms, row.frequencies, strict=True)) for row in rows}


def add_evidence(
    writer: Writer, collection_id: int, evidence: Sequence[ExpansionEvidence], credits: Sequence[Credit]
) -> None:
    """Write what events amount to, in the transaction that applies them."""
    writer.execute(
        """
        INSERT INTO key_evidence (collection_id, event_id, gate, gain, strength)
        SELECT %(collection)s, row.* FROM unnest(
            %(events)s::bigint[], %(gates)s::text[], %(gains)s::float8[], %(strengths)s::float8[]
        ) AS row
        """,
        {
            "collection": collection_id,
            "events": [row.event_id for row in evidence],
            "gates": [row.gate for row in evidence],
            "gains": [row.gain for row in evidence],
            "strengths": [row.strength for row in evidence],
        },
    )
    _write_credits(writer, collection_id, credits)


def replace_credits(writer: Writer, collection_id: int, passages: Sequence[int], credits: Sequence[Credit]) -> None:
    """Put these credits in the place of all that the passages had."""
    writer.execute(
        f"""
        DELETE FROM key_credit credit USING {WANTED_IDS}
        WHERE credit.collection_id = wanted.collection_id AND credit.passage_id = wanted.id
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    _write_credits(writer, collection_id, credits)


def _write_credits(writer: Writer, collection_id: int, credits: Sequence[Credit]) -> None:
    for at in range(0, len(credits), CREDITS_AT_ONCE):
        _write_some_credits(writer, collection_id, credits[at : at + CREDITS_AT_ONCE])


def _write_some_credits(writer: Writer, collection_id: int, credits: Sequence[Credit]) -> None:
    writer.execute(
        """
        INSERT INTO key_credit (collection_id, event_id, passage_id, unit_id, gain, weight)
        SELECT %(collection)s, row.* FROM unnest(
            %(events)s::bigint[], %(passages)s::bigint[], %(units)s::bigint[], %(gains)s::float8[],
            %(weights)s::float8[]
        ) AS row
        """,
        {
            "collection": collection_id,
            "events": [row.event_id for row in credits],
            "passages": [row.passage_id for row in credits],
            "units": [row.unit_id for row in credits],
            "gains": [row.gain for row in credits],
            "weights": [row.weight for row in credits],
        },
    )


@dataclass(frozen=True, slots=True)
class CreditPair:
    """Inputs of a credit: the event's question (d,), its λ and the pair itself."""

    event_id: int
    passage_id: int
    unit_id: int
    strength: float
    question: Vector


def pairs(reader: Reader, collection_id: int, passages: Sequence[int]) -> list[CreditPair]:
    """Every pair that events credited or weighed and found wanting, by event, passage and unit."""
    rows = reader.rows(
        f"""
        SELECT credit.event_id, credit.passage_id, credit.unit_id, evidence.strength, judged.embedding
        FROM {WANTED_IDS} {_PASSAGE_CREDITS} {_EVIDENCE}
        {join_by_index("feedback_event event", "event.id = credit.event_id")} {JUDGED_QUERY_JOIN}
        ORDER BY credit.event_id, credit.passage_id, credit.unit_id
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return [
        CreditPair(row.event_id, row.passage_id, row.unit_id, row.strength, row.embedding.to_numpy())
        for row in rows
    ]


# Evidence that counts: it waits for an evolution, or one that is not rolled back took it in.
_COUNTED = f"""
    FROM {id_rows("passages")} {_PASSAGE_CREDITS} {_EVIDENCE}
    {join_by_index("key_generation generation", "generation.number = evidence.generation", outer=True)}
    WHERE credit.weight > 0
"""
_UNIT = join_by_index("expansion_unit unit", "unit.id = scored.unit_id")
_SCORE = "sum(credit.weight * credit.gain ORDER BY credit.event_id)"


def refresh_memory(
    writer: Writer, collection_id: int, passages: Sequence[int], capacity: int, units: Sequence[int] | None = None
) -> None:
    """Make the passages' memories their ``capacity`` best units, by evidence that was taken in or waits.

    Args:
        units: only these units' scores can have changed, and they can only have risen; None: anything can.
            Then what a memory let go stays below what it holds, so nothing else needs to be summed up.
    """
    writer.execute(
        f"""
        WITH scored AS (
            SELECT credit.passage_id, credit.unit_id, {_SCORE} AS score {_COUNTED}
              AND (evidence.generation IS NULL OR generation.active)
              AND (%(units)s::bigint[] IS NULL OR credit.unit_id = ANY(%(units)s))
            GROUP BY credit.passage_id, credit.unit_id
            UNION ALL
            SELECT held.passage_id, held.unit_id, held.score
            FROM {id_rows("passages")} {join_by_index("expansion_memory held", "held.passage_id = wanted.id")}
            WHERE NOT held.unit_id = ANY(%(units)s)
        ), best AS MATERIALIZED (
            SELECT passage_id, unit_id, score FROM (
                SELECT scored.*, row_number() OVER (
                    PARTITION BY scored.passage_id ORDER BY scored.score DESC, unit.text_hash
                ) AS place
                FROM scored {_UNIT}
            ) AS ranked WHERE place <= %(capacity)s
        ), evicted AS (
            DELETE FROM expansion_memory held USING {id_rows("passages")}
            WHERE held.collection_id = wanted.collection_id AND held.passage_id = wanted.id
              AND held.passage_id || ' ' || held.unit_id NOT IN (SELECT passage_id || ' ' || unit_id FROM best)
        )
        INSERT INTO expansion_memory AS held (collection_id, passage_id, unit_id, score)
        SELECT %(collection)s, best.* FROM best ORDER BY passage_id, unit_id
        ON CONFLICT (collection_id, passage_id, unit_id) DO UPDATE SET score = excluded.score
        WHERE held.score <> excluded.score
        """,
        {
            "collection": collection_id,
            "passages": list(passages),
            "capacity": capacity,
            "units": None if units is None else list(units),
        },
    )


def memory(reader: Reader, collection_id: int, passages: Sequence[int]) -> dict[tuple[int, int], float]:
    """(passage, unit) -> score of the passages' expansion memories, by passage and unit."""
    rows = reader.rows(
        f"""
        SELECT held.passage_id, held.unit_id, held.score
        FROM {WANTED_IDS} {join_by_index("expansion_memory held", "held.passage_id = wanted.id")}
        ORDER BY held.passage_id, held.unit_id
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return {(row.passage_id, row.unit_id): row.score for row in rows}


def list_standing_units(
    reader: Reader, collection_id: int, passages: Sequence[int], limit: int
) -> list[ScoredUnit]:
    """The passages' ``limit`` best units by evidence that evolutions took in, by passage, best first."""
    rows = reader.rows(
        f"""
        SELECT passage_id, unit_id, score, generation FROM (
            SELECT scored.*, row_number() OVER (
                PARTITION BY scored.passage_id ORDER BY scored.score DESC, unit.text_hash
            ) AS place
            FROM (
                SELECT credit.passage_id, credit.unit_id, {_SCORE} AS score,
                       max(max(evidence.generation)) OVER (PARTITION BY credit.passage_id) AS generation
                {_COUNTED} AND generation.active
                GROUP BY credit.passage_id, credit.unit_id
            ) AS scored
            {_UNIT}
        ) AS ranked WHERE place <= %(limit)s ORDER BY passage_id, place
        """,
        {"collection": collection_id, "passages": list(passages), "limit": limit},
    )
    return [ScoredUnit(**row._asdict()) for row in rows]


def find_best_units(
    reader: Reader, collection_id: int, passages: Sequence[int], limit: int
) -> dict[tuple[int, int], float]:
    """(passage, unit) -> score of the passages' ``limit`` best units by all evidence that counts, best first.

    What ``refresh_memory`` makes expansion memories.
    """
    rows = reader.rows(
        f"""
        SELECT passage_id, unit_id, score FROM (
            SELECT scored.*, row_number() OVER (
                PARTITION BY scored.passage_id ORDER BY scored.score DESC, unit.text_hash
            ) AS place
            FROM (
                SELECT credit.passage_id, credit.unit_id, {_SCORE} AS score {_COUNTED}
                  AND (evidence.generation IS NULL OR generation.active)
                GROUP BY credit.passage_id, credit.unit_id
            ) AS scored
            {_UNIT}
        ) AS ranked WHERE place <= %(limit)s ORDER BY passage_id, place
        """,
        {"collection": collection_id, "passages": list(passages), "limit": limit},
    )
    return {(row.passage_id, row.unit_id): row.score for row in rows}


def list_waiting_passages(reader: Reader, collection_id: int) -> list[int]:
    """Passages that evidence waits for, in id order."""
    rows = reader.rows(
        f"""
        SELECT DISTINCT credit.passage_id FROM key_evidence evidence
        {join_by_index("key_credit credit", "credit.event_id = evidence.event_id")}
        {join_by_index("passage", "passage.id = credit.passage_id")}
        WHERE evidence.collection_id = %(collection)s AND evidence.generation IS NULL AND credit.weight > 0
        ORDER BY credit.passage_id
        """,
        {"collection": collection_id},
    )
    return [row.passage_id for row in rows]


def load_unit_texts(reader: Reader, collection_id: int, units: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Unit -> method and text."""
    unit = join_by_index("expansion_unit unit", "unit.id = wanted.id")
    rows = reader.rows(
        f"SELECT unit.id, unit.method, unit.text FROM {WANTED_IDS} {unit}",
        {"collection": collection_id, "ids": list(units)},
    )
    return {row.id: (row.method, row.text) for row in rows}
