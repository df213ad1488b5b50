"""Evolved keys as they serve, and the verdicts that credit their units most."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.storage.database import Reader
from engram.storage.half_vectors import halve
from engram.storage.question.query_focus import Focus
from engram.storage.row_lookups import WANTED_IDS, id_rows, join_by_index


@dataclass(frozen=True, slots=True)
class ServedKey:
    """An evolved key as it serves: cosines with what keys are compared with, and its units, best first."""

    passage_id: int
    similarity: float
    base_similarity: float
    units: list[int]
    scores: list[float]


@dataclass(frozen=True, slots=True)
class UnitVerdict:
    """A verdict that brought a passage's unit, of ``total``."""

    passage_id: int
    unit_id: int
    event_id: int
    gain: float
    weight: float
    total: int


def list_served_keys(reader: Reader, focus: Focus, passages: Sequence[int]) -> list[ServedKey]:
    """The evolved keys of these passages, of those that have one."""
    rows = reader.rows(
        f"""
        SELECT p.id AS passage_id, -(key.vector <#> %(key)s) AS similarity,
               -(p.embedding <#> {halve("%(key)s")}) AS base_similarity, key.units, key.scores
        FROM {WANTED_IDS} {join_by_index("passage_key key", "key.passage_id = wanted.id")}
        {join_by_index("passage p", "p.id = wanted.id")} ORDER BY p.id
        """,
        focus.parameters(ids=list(passages)),
    )
    return [ServedKey(**row._asdict()) for row in rows]


def bringers(
    reader: Reader, collection_id: int, passages: Sequence[int], units: Sequence[int], limit: int
) -> list[UnitVerdict]:
    """The ``limit`` verdicts that credit each (passage, unit) most, of those that were taken in, best first."""
    rows = reader.rows(
        f"""
        SELECT passage_id, unit_id, event_id, gain, weight, total FROM (
            SELECT credit.passage_id, credit.unit_id, credit.event_id, credit.gain, credit.weight,
                   count(*) OVER (PARTITION BY credit.passage_id, credit.unit_id) AS total,
                   row_number() OVER (
                       PARTITION BY credit.passage_id, credit.unit_id
                       ORDER BY credit.gain * credit.weight DESC, credit.event_id DESC
                   ) AS place
            FROM {id_rows("passages")} {join_by_index("key_credit credit", "credit.passage_id = wanted.id")}
            {join_by_index("key_evidence evidence", "evidence.event_id = credit.event_id")}
            {join_by_index("key_generation made", "made.number = evidence.generation AND made.active")}
            WHERE credit.unit_id = ANY(%(units)s) AND credit.weight > 0
        ) AS ranked WHERE place <= %(limit)s ORDER BY passage_id, unit_id, place
        """,
        {"collection": collection_id, "passages": list(passages), "units": list(units), "limit": limit},
    )
    return [UnitVerdict(**row._asdict()) for row in rows]
