"""Overview of a collection's learning by the log: its memories, and how they became surer over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engram.storage.database import Reader
from engram.storage.row_lookups import WANTED_IDS, join_by_index


@dataclass(frozen=True, slots=True)
class Span:
    """Counts of verdicts applied in a span of time.

    Attributes:
        ended_at: when its last verdict was applied.
        verdicts: that were applied.
        states: memories that were moved for the first time.
        change: by how much the perplexities of all memories together changed, those that were new from 1.
    """

    ended_at: datetime
    verdicts: int
    states: int
    change: float


@dataclass(frozen=True, slots=True)
class MovedState:
    """A channel, "task" or "time", of a sentence's memory as its last verdict left it."""

    sentence_id: int
    text: str
    passage_id: str
    title: str | None
    channel: str
    perplexity: float
    update_count: int
    moved_at: datetime
    event_id: int


_APPLIED = """
    event.collection_id = %(collection)s AND event.status = 'applied'
    AND (%(until)s::timestamptz IS NULL OR event.applied_at <= %(until)s)
"""
_MOVED = """
    LEFT JOIN memory_audit audit ON audit.collection_id = event.collection_id AND audit.event_id = event.id
        AND audit.channel IN ('task', 'time')
"""


def spans(reader: Reader, collection_id: int, until: datetime | None, most: int) -> list[Span]:
    """The time from the first verdict that counts to the last in ``most`` equal parts, but those of nothing."""
    rows = reader.rows(
        f"""
        WITH moved AS (
            SELECT event.id, event.applied_at, audit.perplexity_after - audit.perplexity_before AS change,
                   audit.event_id IS NOT NULL AND row_number() OVER (
                       PARTITION BY audit.sentence_id, audit.channel ORDER BY event.applied_sequence
                   ) = 1 AS fresh
            FROM feedback_event event {_MOVED} WHERE {_APPLIED}
        ), reach AS (
            SELECT extract(epoch FROM min(applied_at))::float8 AS low,
                   extract(epoch FROM max(applied_at))::float8 + 0.001 AS high FROM moved
        )
        SELECT max(moved.applied_at) AS ended_at, count(DISTINCT moved.id) AS verdicts,
               count(*) FILTER (WHERE moved.fresh) AS states, coalesce(sum(moved.change), 0)::float8 AS change
        FROM moved, reach
        GROUP BY width_bucket(extract(epoch FROM moved.applied_at)::float8, reach.low, reach.high, %(most)s)
        ORDER BY ended_at
        """,
        {"collection": collection_id, "until": until, "most": most},
    )
    return [Span(**row._asdict()) for row in rows]


def list_moved_states(reader: Reader, collection_id: int, until: datetime | None, limit: int) -> list[MovedState]:
    """The memories that were moved last, as they were left by then; of sentences that are still there."""
    rows = reader.rows(
        f"""
        WITH left_by AS (
            SELECT DISTINCT ON (audit.sentence_id, audit.channel)
                   audit.sentence_id AS id, audit.channel, audit.perplexity_after AS perplexity,
                   count(*) OVER (PARTITION BY audit.sentence_id, audit.channel) AS update_count,
                   event.applied_at AS moved_at, event.applied_sequence AS sequence, event.id AS event_id
            FROM feedback_event event {_MOVED} WHERE {_APPLIED} AND audit.event_id IS NOT NULL
            ORDER BY audit.sentence_id, audit.channel, event.applied_sequence DESC
        )
        SELECT s.id AS sentence_id, s.text, p.external_id AS passage_id, p.title, left_by.channel,
               left_by.perplexity, left_by.update_count, left_by.moved_at, left_by.event_id
        FROM left_by {join_by_index("sentence s", "s.id = left_by.id")}
        {join_by_index("passage p", "p.id = s.passage_id")}
        ORDER BY left_by.sequence DESC, s.id, left_by.channel LIMIT %(limit)s
        """,
        {"collection": collection_id, "until": until, "limit": limit},
    )
    return [MovedState(**row._asdict()) for row in rows]


def find_names(reader: Reader, collection_id: int, sentences: Sequence[int]) -> dict[int, Any]:
    """Sentence -> its ``text``, and its passage's ``passage_id`` and ``title``; what is gone is left out."""
    rows = reader.rows(
        f"""
        SELECT s.id, s.text, p.external_id AS passage_id, p.title
        FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
        {join_by_index("passage p", "p.id = s.passage_id")}
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    return {row.id: row for row in rows}


def list_taught_models(reader: Reader, collection_id: int, event: int) -> list[str]:
    """The models ("sufficiency", "reranker", "round") whose weights the event counts in."""
    rows = reader.rows(
        """
        SELECT DISTINCT model FROM weight_audit
        WHERE collection_id = %(collection)s AND event_id = %(id)s AND counted ORDER BY model
        """,
        {"collection": collection_id, "id": event},
    )
    return [row.model for row in rows]
