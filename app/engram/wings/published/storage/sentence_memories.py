"""Sentence memories: one row per sentence and channel, once a verdict touched it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from engram.core.learning.caps import UNTOUCHED, GainBudget
from engram.storage.column_parameters import Numbers, Vectors, decode_column, decode_vectors, integers
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log.audit_rows import CHANNEL_NAME
from engram.storage.half_vectors import unhalve
from engram.storage.learning.question_supports import gain_budgets_as_json, list_gain_budgets
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index
from engram.wings.published.core.memory_states import MemoryRows, SentenceMemory

# What the task channel of the sentences ``ids`` and the time channel of the sentences ``timed`` begin as.
_BASE = f"""(
    SELECT s.collection_id, s.id, 'task' AS channel, {unhalve("s.embedding")} AS vector,
           NULL::bigint AS time_expression_id
    FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
    UNION ALL
    SELECT s.collection_id, s.id, 'time', {unhalve("t.embedding")}, t.id
    FROM {id_rows("timed")} {join_by_index("sentence s", "s.id = wanted.id")}
    {join_by_index("time_expression t", "t.id = s.time_expression_id")}
) AS base"""


def begin(writer: Writer, collection_id: int, sentences: Sequence[int], timed: Sequence[int]) -> None:
    """Begin the memories that these sentences, which are held, do not have yet: as what verdicts did not move.

    Args:
        sentences: whose task channel is wanted.
        timed: whose time channel is wanted as well; without a time expression a sentence has none.
    """
    writer.execute(
        f"""
        INSERT INTO sentence_memory
            (collection_id, sentence_id, channel, vector, perplexity, update_count, time_expression_id)
        SELECT collection_id, id, channel, vector, 1, 0, time_expression_id FROM {_BASE} ORDER BY id, channel
        ON CONFLICT DO NOTHING
        """,
        {"collection": collection_id, "ids": integers(sorted(sentences)), "timed": integers(sorted(timed))},
    )


def lock(writer: Writer, collection_id: int, sentences: Sequence[int], timed: Sequence[int]) -> MemoryRows:
    """Lock the memories of these sentences in id order, making those that no verdict touched yet.

    A new memory is the sentence's embedding, or its time expression's, at perplexity 1 (GAM-RAG, Eq. 2).
    Time channels of sentences without a time expression are left out.

    Args:
        sentences: whose task channel is wanted; the transaction holds them.
        timed: whose time channel is wanted as well.
    """
    ids, dated = integers(sorted(sentences)), integers(sorted(timed))
    parameters = {"collection": collection_id, "ids": ids, "timed": dated}
    begin(writer, collection_id, sentences, timed)
    row = writer.row(
        f"""
        WITH memory AS MATERIALIZED (
            SELECT memory.sentence_id, memory.channel, memory.vector, memory.perplexity, memory.update_count,
                   memory.gain_budgets
            FROM {WANTED_IDS} JOIN sentence_memory memory
              ON memory.collection_id = wanted.collection_id AND memory.sentence_id = wanted.id
            WHERE memory.channel = 'task' OR memory.sentence_id = ANY(%(timed)s)
            ORDER BY memory.sentence_id, memory.channel FOR UPDATE OF memory
        )
        SELECT array_send(array_agg(sentence_id)) AS ids,
               array_send(array_agg((channel = 'time')::integer::bigint)) AS channels,
               string_agg(vector_send(vector), ''::bytea) AS vectors,
               array_send(array_agg(perplexity)) AS perplexities,
               array_send(array_agg(update_count::bigint)) AS counts,
               json_agg(gain_budgets) AS gain_budgets
        FROM memory
        """,
        parameters,
    )
    days, kept = list_gain_budgets(row.gain_budgets or ())
    return MemoryRows(
        sentence_ids=decode_column(row.ids, np.int64),
        channels=decode_column(row.channels, np.int64),
        vectors=decode_vectors(row.vectors),
        perplexities=decode_column(row.perplexities, np.float64),
        update_counts=decode_column(row.counts, np.int64),
        days=days,
        remaining_shares=kept,
    )


def read_memory(row: Any) -> SentenceMemory:
    """The memory that a row of ``sentence_memory`` holds."""
    return SentenceMemory(
        sentence_id=row.sentence_id,
        channel=row.channel,
        vector=row.vector.to_numpy(),
        perplexity=row.perplexity,
        update_count=row.update_count,
        gain_budget=read_gain_budget(row.gain_budgets),
    )


def read_gain_budget(value: Any) -> GainBudget:
    """Read a gain budget from its JSON."""
    return GainBudget(value["day"], tuple(sorted(value["kept"].items()))) if value else UNTOUCHED


_NEW_MEMORIES = alias_rows(
    """
    unnest(%(ids)s::bigint[], %(channels)s::bigint[], %(vectors)s::vector[], %(perplexities)s::float8[],
           %(counts)s::bigint[], %(gain_budgets)s::jsonb[])
        AS given(sentence_id, channel, vector, perplexity, update_count, gain_budgets)
    """
)


def store(writer: Writer, collection_id: int, memories: MemoryRows) -> None:
    """Write locked memories back."""
    if not len(memories):
        return
    writer.execute(
        f"""
        UPDATE sentence_memory SET vector = new.vector, perplexity = new.perplexity,
            update_count = new.update_count, gain_budgets = new.gain_budgets, updated_at = now()
        FROM {_NEW_MEMORIES}
        WHERE sentence_memory.collection_id = new.collection_id
          AND sentence_memory.sentence_id = new.sentence_id
          AND sentence_memory.channel = {CHANNEL_NAME.format("new.channel")}
        """,
        {
            "collection": collection_id,
            "ids": Numbers(memories.sentence_ids),
            "channels": Numbers(memories.channels),
            "vectors": Vectors(memories.vectors),
            "perplexities": Numbers(memories.perplexities),
            "counts": Numbers(memories.update_counts),
            "gain_budgets": gain_budgets_as_json(memories.days, memories.remaining_shares),
        },
    )


def follow_times(writer: Writer, collection_id: int, sentences: Sequence[int]) -> None:
    """Have time memories of sentences begin as the expressions that these have now, where they have one."""
    writer.execute(
        f"""
        UPDATE sentence_memory memory SET time_expression_id = s.time_expression_id
        FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id AND s.time_expression_id IS NOT NULL")}
        WHERE memory.collection_id = wanted.collection_id AND memory.sentence_id = wanted.id
          AND memory.channel = 'time'
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )


def delete_all_but(
    writer: Writer, collection_id: int, sentences: Sequence[int], remaining: Sequence[tuple[int, str]]
) -> None:
    """Take all channels of these sentences but the (sentence, channel) ``remaining`` back to before any verdict."""
    writer.execute(
        f"""
        DELETE FROM sentence_memory memory USING {id_rows("sentences")}
        WHERE memory.collection_id = wanted.collection_id AND memory.sentence_id = wanted.id
          AND memory.sentence_id || ' ' || memory.channel NOT IN (SELECT unnest(%(remaining)s::text[]))
        """,  # of several columns, Citus would look for too few where row security holds
        {
            "collection": collection_id,
            "sentences": list(sentences),
            "remaining": [f"{sentence} {channel}" for sentence, channel in remaining],
        },
    )


def delete_all(writer: Writer, collection_id: int) -> int:
    """Delete all memories of a collection, and count them."""
    return writer.execute(
        "DELETE FROM sentence_memory WHERE collection_id = %(collection)s", {"collection": collection_id}
    )


def list_judged_sentences(reader: Reader, collection_id: int, after: int, limit: int) -> list[int]:
    """The next sentences, in id order, that there are memories or audit rows of."""
    rows = reader.rows(
        """
        SELECT id FROM (
            (SELECT DISTINCT sentence_id AS id FROM memory_audit
             WHERE collection_id = %(collection)s AND sentence_id > %(after)s ORDER BY 1 LIMIT %(limit)s)
            UNION
            (SELECT DISTINCT sentence_id FROM sentence_memory
             WHERE collection_id = %(collection)s AND sentence_id > %(after)s ORDER BY 1 LIMIT %(limit)s)
        ) AS judged ORDER BY id LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after, "limit": limit},
    )
    return [row.id for row in rows]


def load_memories(reader: Reader, collection_id: int, sentences: Sequence[int]) -> list[SentenceMemory]:
    """The memories of these sentences as they stand, by sentence and channel."""
    rows = reader.rows(
        f"""
        SELECT memory.sentence_id, memory.channel, memory.vector, memory.perplexity, memory.update_count,
               memory.gain_budgets
        FROM {WANTED_IDS} {join_by_index("sentence_memory memory", "memory.sentence_id = wanted.id")}
        ORDER BY memory.sentence_id, memory.channel
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    return [read_memory(row) for row in rows]
