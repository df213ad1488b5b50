"""Passage keys with their reasons, to look at: what a key is composed of, and which verdicts are behind it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from engram.core.passage_keys.key_effect import CreditRow, KeyEffect
from engram.storage.database import Reader
from engram.storage.feedback_log.judged_queries import JUDGED_QUERY_JOIN
from engram.storage.half_vectors import unhalve
from engram.storage.row_lookups import id_rows, join_by_index

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class ServedKey:
    """A passage's keys: its base key, unit length (d,), and its evolved one, if it has any.

    Attributes:
        length: of the passage, in terms.
        generation: the latest evolution that took in evidence for the evolved key; None for a base key.
        vector: the evolved key, unit length, (d,); None for a base key.
        units, scores: what the evolved key is composed of, best first; empty for a base key.
    """

    passage_id: int
    base: Vector
    length: float
    generation: int | None
    vector: Vector | None
    units: Sequence[int]
    scores: Sequence[float]


@dataclass(frozen=True, slots=True)
class HeldUnit:
    """A unit of a passage's expansion memory or key; ``score`` is None where the memory let it go meanwhile."""

    id: int
    method: str
    text: str
    frequencies: Mapping[str, float]
    score: float | None


@dataclass(frozen=True, slots=True)
class UnitEvent:
    """A verdict behind a (passage, unit); ``event_count`` is how many the pair has in all.

    ``status`` is "taken in" (by ``generation``), "waiting", or "rolled back" with its generation.
    """

    unit_id: int
    event_id: int
    judge: str
    query_id: UUID
    question: str
    gain: float
    weight: float
    generation: int | None
    status: str
    event_count: int


_STATUS = """CASE WHEN evidence.gate = 'none' THEN NULL WHEN evidence.generation IS NULL THEN 'waiting'
                  WHEN generation.active THEN 'taken in' ELSE 'rolled back' END AS status"""
_GENERATION = join_by_index("key_generation generation", "generation.number = evidence.generation", outer=True)


def find(reader: Reader, collection_id: int, external_id: str) -> ServedKey | None:
    """The keys of the passage with this external id, or None."""
    row = reader.row(
        f"""
        SELECT passage.id, {unhalve("passage.embedding")} AS embedding, coalesce(lexical.length, 0) AS length,
               evolved.generation, evolved.vector, coalesce(evolved.units, '{{}}') AS units,
               coalesce(evolved.scores, '{{}}') AS scores
        FROM passage {join_by_index("passage_key evolved", "evolved.passage_id = passage.id", outer=True)}
        {join_by_index("lexical_passage lexical", "lexical.passage_id = passage.id", outer=True)}
        WHERE passage.collection_id = %(collection)s AND passage.external_id = %(external)s
        """,
        {"collection": collection_id, "external": external_id},
    )
    if row is None:
        return None
    return ServedKey(
        passage_id=row.id,
        base=row.embedding.to_numpy(),
        length=row.length,
        generation=row.generation,
        vector=None if row.vector is None else row.vector.to_numpy(),
        units=row.units,
        scores=row.scores,
    )


def units(
    reader: Reader, collection_id: int, passage_id: int, composing: Sequence[int], limit: int
) -> tuple[list[HeldUnit], int]:
    """The ``limit`` best units of the passage's memory and of its key, ``composing``; and how many there are."""
    rows = reader.rows(
        f"""
        SELECT unit.id, unit.method, unit.text, unit.terms, unit.frequencies, shown.score, count(*) OVER () AS total
        FROM (
            SELECT unit_id, max(score) AS score FROM (
                SELECT unit_id, score FROM expansion_memory
                WHERE collection_id = %(collection)s AND passage_id = %(passage)s
                UNION ALL
                SELECT unit_id, NULL FROM unnest(%(composing)s::bigint[]) AS unit_id
            ) AS named GROUP BY unit_id
        ) AS shown {join_by_index("expansion_unit unit", "unit.id = shown.unit_id")}
        ORDER BY shown.score DESC NULLS LAST, unit.text_hash LIMIT %(limit)s
        """,
        {"collection": collection_id, "passage": passage_id, "composing": list(composing), "limit": limit},
    )
    page_units = [
        HeldUnit(row.id, row.method, row.text, dict(zip(row.terms, row.frequencies, strict=True)), row.score)
        for row in rows
    ]
    return page_units, rows[0].total if rows else 0


def list_added_terms(
    reader: Reader, collection_id: int, passage_id: int, limit: int
) -> tuple[list[tuple[str, float]], int]:
    """The ``limit`` terms to whose frequencies the evolved key adds most, and how much; and how many there are.

    To five places, which the frequencies as they are stored can tell.
    """
    rows = reader.rows(
        """
        SELECT term, increment::float8 AS increment, count(*) OVER () AS total FROM (
            SELECT term, round((frequency::float8 - base::float8)::numeric, 5) AS increment FROM evolved_posting
            WHERE collection_id = %(collection)s AND passage_id = %(passage)s
        ) AS added
        ORDER BY added.increment DESC, term LIMIT %(limit)s
        """,
        {"collection": collection_id, "passage": passage_id, "limit": limit},
    )
    return [(row.term, row.increment) for row in rows], rows[0].total if rows else 0


def sources(
    reader: Reader, collection_id: int, passage_id: int, units: Sequence[int], limit: int
) -> list[UnitEvent]:
    """The ``limit`` latest verdicts behind each of the units, by unit, the latest first."""
    rows = reader.rows(
        f"""
        SELECT credit.unit_id, credit.event_id, event.judge, event.query_id, judged.question, credit.gain,
               credit.weight, evidence.generation, {_STATUS}, credit.total AS event_count
        FROM (
            SELECT given.*, count(*) OVER (PARTITION BY unit_id) AS total,
                   row_number() OVER (PARTITION BY unit_id ORDER BY event_id DESC) AS place
            FROM {id_rows("units")}
            {join_by_index("key_credit given", "given.passage_id = %(passage)s AND given.unit_id = wanted.id")}
            WHERE given.weight > 0
        ) AS credit
        {join_by_index("key_evidence evidence", "evidence.event_id = credit.event_id")} {_GENERATION}
        {join_by_index("feedback_event event", "event.id = credit.event_id")} {JUDGED_QUERY_JOIN}
        WHERE credit.place <= %(limit)s ORDER BY credit.unit_id, credit.place
        """,
        {"collection": collection_id, "passage": passage_id, "units": list(units), "limit": limit},
    )
    return [UnitEvent(**row._asdict()) for row in rows]


def effect(reader: Reader, collection_id: int, event_id: int, limit: int) -> KeyEffect | None:
    """Return the effect of the event's expansions with its ``limit`` best credits; None if it had none.

    Also None while the event is not applied.
    """
    parameters = {"collection": collection_id, "event": event_id, "limit": limit}
    evidence = reader.row(
        f"""
        SELECT evidence.gate, evidence.gain, evidence.generation, {_STATUS} FROM key_evidence evidence
        {_GENERATION}
        WHERE evidence.collection_id = %(collection)s AND evidence.event_id = %(event)s
        """,
        parameters,
    )
    if evidence is None:
        return None
    rows = reader.rows(
        f"""
        SELECT passage.external_id, credit.unit_id, credit.gain, credit.weight, count(*) OVER () AS total
        FROM key_credit credit {join_by_index("passage", "passage.id = credit.passage_id")}
        WHERE credit.collection_id = %(collection)s AND credit.event_id = %(event)s
        ORDER BY credit.weight * credit.gain DESC, credit.gain DESC, credit.passage_id, credit.unit_id
        LIMIT %(limit)s
        """,
        parameters,
    )
    return KeyEffect(
        gate=evidence.gate,
        gain=evidence.gain,
        generation=evidence.generation,
        status=evidence.status,
        credits=[CreditRow(row.external_id, row.unit_id, row.gain, row.weight) for row in rows],
        credit_count=rows[0].total if rows else 0,
    )
