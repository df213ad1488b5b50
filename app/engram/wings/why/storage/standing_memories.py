"""Sentence memories as they stand, beside what they began as."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.core.learning.states import Vector
from engram.storage.database import Reader
from engram.storage.half_vectors import unhalve
from engram.storage.row_lookups import WANTED_IDS, join_by_index


@dataclass(frozen=True, slots=True)
class StoredMemory:
    """A channel of a sentence's memory as it stands, beside what it began as (unit vectors, (d,))."""

    sentence_id: int
    text: str
    channel: str
    base: Vector
    vector: Vector
    perplexity: float
    update_count: int


# What the task channel of and the time channel of the sentences ``ids`` begin as.
_BASE = f"""(
    SELECT s.collection_id, s.id, s.text, 'task' AS channel, {unhalve("s.embedding")} AS vector,
           NULL::bigint AS time_expression_id
    FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
    UNION ALL
    SELECT s.collection_id, s.id, s.text, 'time', {unhalve("t.embedding")}, t.id
    FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
    {join_by_index("time_expression t", "t.id = s.time_expression_id")}
) AS base"""


def load_standing(reader: Reader, collection_id: int, sentences: Sequence[int]) -> list[StoredMemory]:
    """The memories of these sentences, by id and channel; what no verdict touched stands at its base, perplexity 1.

    A sentence without a time expression has no time channel; one that does not exist is left out.
    """
    memory = "memory.sentence_id = base.id AND memory.channel = base.channel"
    rows = reader.rows(
        f"""
        SELECT base.id, base.text, base.channel, base.vector AS base,
               coalesce(memory.vector, base.vector) AS vector,
               coalesce(memory.perplexity, 1) AS perplexity, coalesce(memory.update_count, 0) AS update_count
        FROM {_BASE}
        {join_by_index("sentence_memory memory", memory, outer=True)}
        ORDER BY base.id, base.channel
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    return [
        StoredMemory(
            sentence_id=row.id,
            text=row.text,
            channel=row.channel,
            base=row.base.to_numpy(),
            vector=row.vector.to_numpy(),
            perplexity=row.perplexity,
            update_count=row.update_count,
        )
        for row in rows
    ]
