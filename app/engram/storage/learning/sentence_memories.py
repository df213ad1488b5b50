"""Sentence memories: one row per sentence and channel, once a verdict touched it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from engram.core.filter.caps import UNTOUCHED, GainBudget
from engram.core.filter.state_rows import NO_SHARES, MemoryRows, RemainingShares
from engram.core.filter.states import Audit, AuditRows, SentenceMemory, SentenceRevisions, Vector
from engram.storage.column_parameters import (
    Documents,
    Numbers,
    Vectors,
    decode_column,
    decode_vectors,
    floats,
    integers,
)
from engram.storage.database import Reader, Writer
from engram.storage.half_vectors import unhalve
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index


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


# What the task channel of the sentences ``ids`` and the time channel of the sentences ``timed`` begin as.
_BASE = f"""(
    SELECT s.collection_id, s.id, s.text, 'task' AS channel, {unhalve("s.embedding")} AS vector,
           NULL::bigint AS time_expression_id
    FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
    UNION ALL
    SELECT s.collection_id, s.id, s.text, 'time', {unhalve("t.embedding")}, t.id
    FROM {id_rows("timed")} {join_by_index("sentence s", "s.id = wanted.id")}
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
        {"collection": collection_id, "ids": list(sentences), "timed": list(sentences)},
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


def lock(writer: Writer, collection_id: int, sentences: Sequence[int], timed: Sequence[int]) -> MemoryRows:
    """Lock the memories of these sentences in id order, making those that no verdict touched yet.

    A new memory is the sentence's embedding, or its time expression's, at perplexity 1 (GAM-RAG, Eq. 2).
    Sentences are locked first, against a delete that would take their memories along; those that are gone
    already, and time channels of sentences without a time expression, are left out.

    Args:
        sentences: whose task channel is wanted.
        timed: whose time channel is wanted as well.
    """
    ids, dated = integers(sorted(sentences)), integers(sorted(timed))
    parameters = {"collection": collection_id, "ids": ids, "timed": dated}
    hold(writer, collection_id, sentences)
    writer.execute(
        f"""
        INSERT INTO sentence_memory
            (collection_id, sentence_id, channel, vector, perplexity, update_count, time_expression_id)
        SELECT collection_id, id, channel, vector, 1, 0, time_expression_id FROM {_BASE} ORDER BY id, channel
        ON CONFLICT DO NOTHING
        """,
        parameters,
    )
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


def list_gain_budgets(values: Sequence[Any]) -> tuple[list[str], list[RemainingShares]]:
    """Read the days and remaining shares of gain budgets, as ``gain_budgets_as_json`` writes them."""
    return [value.get("day", "") for value in values], [value.get("kept", NO_SHARES) for value in values]


def gain_budgets_as_json(days: Sequence[str], shares: Sequence[RemainingShares]) -> Documents:
    """Make the JSON of column ``gain_budgets``; PostgreSQL keeps every bit of a float."""
    return Documents([{"day": day, "kept": own} if own else {} for day, own in zip(days, shares, strict=True)])


_CHANNEL = "(ARRAY['task', 'time', 'recall'])[{} + 1]"
"""A channel by its place in ``AUDITED``: a name for each of thousands of rows takes longer to send."""
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
          AND sentence_memory.channel = {_CHANNEL.format("new.channel")}
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


def record(writer: Writer, collection_id: int, rows: AuditRows) -> None:
    """Write audit rows, in the transaction of the change they explain."""
    # In the order of their key, of which each row then goes to the page of the one before it.
    order = np.lexsort((rows.channels, rows.sentence_ids, rows.event_ids))
    writer.execute(
        f"""
        INSERT INTO memory_audit (collection_id, event_id, sentence_id, channel, target, observation_noise,
                                  gain, residual, perplexity_before, perplexity_after, process_noise, revision)
        SELECT %(collection)s, row.event_id, row.sentence_id, {_CHANNEL.format("row.channel")}, row.target,
               row.noise, row.gain, row.residual, row.before, row.after, row.process, row.revision
        FROM unnest(
            %(events)s::bigint[], %(sentences)s::bigint[], %(channels)s::bigint[], %(targets)s::bigint[],
            %(noises)s::float8[], %(gains)s::float8[], %(residuals)s::float8[], %(before)s::float8[],
            %(after)s::float8[], %(process)s::float8[], %(revisions)s::bigint[]
        ) AS row(event_id, sentence_id, channel, target, noise, gain, residual, before, after, process, revision)
        """,
        {
            "collection": collection_id,
            "events": Numbers(rows.event_ids[order]),
            "sentences": Numbers(rows.sentence_ids[order]),
            "channels": Numbers(rows.channels[order]),
            "targets": Numbers(rows.targets[order]),
            "noises": Numbers(rows.observation_noise[order]),
            "gains": Numbers(rows.gains[order]),
            "residuals": Numbers(rows.residuals[order]),
            "before": Numbers(rows.perplexities_before[order]),
            "after": Numbers(rows.perplexities_after[order]),
            "process": Numbers(rows.process_noise[order]),
            "revisions": Numbers(rows.revisions[order]),
        },
    )


def rewrite(writer: Writer, collection_id: int, rows: Sequence[Audit]) -> None:
    """Write what events do to their states now that another event is revoked; their rows are there already."""
    new = alias_rows(
        """
        unnest(
            %(events)s::bigint[], %(sentences)s::bigint[], %(channels)s::text[], %(gains)s::float8[],
            %(residuals)s::float8[], %(before)s::float8[], %(after)s::float8[]
        ) AS given(event_id, sentence_id, channel, gain, residual, perplexity_before, perplexity_after)
        """
    )
    writer.execute(
        f"""
        UPDATE memory_audit SET gain = new.gain, residual = new.residual,
            perplexity_before = new.perplexity_before, perplexity_after = new.perplexity_after
        FROM {new}
        WHERE memory_audit.collection_id = new.collection_id AND memory_audit.event_id = new.event_id
          AND memory_audit.sentence_id = new.sentence_id AND memory_audit.channel = new.channel
        """,
        {
            "collection": collection_id,
            "events": integers(row.event_id for row in rows),
            "sentences": integers(row.sentence_id for row in rows),
            "channels": [row.channel for row in rows],
            "gains": floats(row.gain for row in rows),
            "residuals": floats(row.residual for row in rows),
            "before": floats(row.perplexity_before for row in rows),
            "after": floats(row.perplexity_after for row in rows),
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


def withdraw(writer: Writer, collection_id: int, events: Sequence[int]) -> list[tuple[int, str]]:
    """Remove the events' audit rows; the (sentence, channel) that they were of, in order."""
    rows = writer.rows(
        f"""
        DELETE FROM memory_audit audit USING {id_rows("events")}
        WHERE audit.collection_id = wanted.collection_id AND audit.event_id = wanted.id
        RETURNING audit.sentence_id, audit.channel
        """,
        {"collection": collection_id, "events": list(events)},
    )
    return sorted({(row.sentence_id, row.channel) for row in rows})


def hold(writer: Writer, collection_id: int, sentences: Sequence[int]) -> None:
    """Keep these sentences from deletion until the transaction ends, locked in id order."""
    writer.rows(
        f"""
        SELECT s.id FROM {WANTED_IDS} JOIN sentence s ON s.collection_id = wanted.collection_id AND s.id = wanted.id
        ORDER BY s.id FOR KEY SHARE OF s
        """,
        {"collection": collection_id, "ids": integers(sorted(sentences))},
    )


def load_revisions(reader: Reader, collection_id: int, sentences: Sequence[int]) -> dict[int, SentenceRevisions]:
    """Sentence -> its revisions, of those that were revised."""
    rows = reader.rows(
        f"""
        SELECT s.id, s.revised_at, s.revision_likeness FROM {WANTED_IDS}
        {join_by_index("sentence s", "s.id = wanted.id AND s.revised_at IS NOT NULL")}
        """,
        {"collection": collection_id, "ids": integers(sentences)},
    )
    return {row.id: SentenceRevisions(row.revised_at, row.revision_likeness) for row in rows}


def delete_all_but(
    writer: Writer, collection_id: int, sentences: Sequence[int], remaining: Sequence[tuple[int, str]]
) -> None:
    """Take all channels of these sentences but the (sentence, channel) ``remaining`` back to before any verdict."""
    writer.execute(
        f"""
        DELETE FROM sentence_memory memory USING {id_rows("sentences")}
        WHERE memory.collection_id = wanted.collection_id AND memory.sentence_id = wanted.id
          AND (memory.sentence_id, memory.channel) NOT IN (
              SELECT * FROM unnest(%(kept)s::bigint[], %(channels)s::text[])
          )
        """,
        {
            "collection": collection_id,
            "sentences": list(sentences),
            "kept": [sentence for sentence, _ in remaining],
            "channels": [channel for _, channel in remaining],
        },
    )
