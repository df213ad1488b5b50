"""The log as an explanation of an answer reads it: the strongest verdicts behind what a query came upon."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime

from engram.core.ranking.weight_beliefs import PriorIdentity, WeightEvidence
from engram.storage.database import Reader
from engram.storage.feedback_log.audit_rows import read_evidence
from engram.storage.half_vectors import HALVED_QUESTION
from engram.storage.judge_days import DAY
from engram.storage.learning.question_supports import build_seen_condition
from engram.storage.question.nearest_neighbours import nearness
from engram.storage.question.query_focus import Focus
from engram.storage.row_lookups import WANTED_IDS, join_by_index

_APPLIED = join_by_index("feedback_event event", "event.id = audit.event_id AND event.status = 'applied'")
_OF_SENTENCE = join_by_index("memory_audit audit", "audit.sentence_id = wanted.id")


@dataclass(frozen=True, slots=True)
class LoggedCause:
    """An applied event: whose it is, on which question, and when it was applied."""

    event_id: int
    judge: str
    question: str
    applied_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryCause:
    """An event that moved a sentence's memory; ``total`` is how many did."""

    sentence_id: int
    event_id: int
    total: int


@dataclass(frozen=True, slots=True)
class MovedSentence:
    """A sentence whose memory some of the given events moved, and how many steps its memories took in all."""

    sentence_id: int
    steps: int
    events: list[int]


@dataclass(frozen=True, slots=True)
class NearQuestion:
    """A past question near to the present one; ``events`` taught it, in ``steps`` steps of its supports."""

    question_id: int
    question: str
    similarity: float
    events: int
    steps: int


@dataclass(frozen=True, slots=True)
class SentencePlace:
    """Passage and position of a sentence.

    Attributes:
        similarity: cosine with the question.
        passing: whether the query's filter lets its passage through.
    """

    sentence_id: int
    passage_id: int
    similarity: float
    passing: bool


@dataclass(frozen=True, slots=True)
class LoggedTerm:
    """Term of an event in learned weights; ``cap`` is how many a judge's day counts, None for all.

    ``contested``: it goes against what other judges said, and does not count.
    """

    event_id: int
    judge: str
    day: str
    cap: int | None
    counted: bool
    contested: bool
    evidence: WeightEvidence


def list_strongest_events(
    reader: Reader, collection_id: int, sentences: Sequence[int], channels: Sequence[str], limit: int
) -> list[MemoryCause]:
    """The ``limit`` events of each sentence that moved its memory most as they came, the strongest of each first.

    By gain times residual; of equals the latest.
    """
    rows = reader.rows(
        f"""
        SELECT sentence_id, event_id, total FROM (
            SELECT moved.*, count(*) OVER (PARTITION BY sentence_id) AS total, row_number() OVER (
                PARTITION BY sentence_id ORDER BY strength DESC, applied_sequence DESC
            ) AS place
            FROM (
                SELECT audit.sentence_id, audit.event_id, event.applied_sequence,
                       sum(audit.gain * abs(audit.residual)) AS strength
                FROM {WANTED_IDS} {_OF_SENTENCE} {_APPLIED}
                WHERE audit.channel = ANY(%(channels)s)
                GROUP BY audit.sentence_id, audit.event_id, event.applied_sequence
            ) AS moved
        ) AS ranked WHERE place <= %(limit)s ORDER BY place, sentence_id
        """,
        {"collection": collection_id, "ids": list(sentences), "channels": list(channels), "limit": limit},
    )
    return [MemoryCause(**row._asdict()) for row in rows]


def list_moved_sentences(
    reader: Reader, collection_id: int, events: Sequence[int], sentences: Sequence[int]
) -> list[MovedSentence]:
    """Return those sentences whose memories the events moved, in id order."""
    rows = reader.rows(
        f"""
        SELECT audit.sentence_id, count(*) AS steps,
               array_agg(DISTINCT audit.event_id) FILTER (WHERE audit.event_id = ANY(%(events)s)) AS events
        FROM {WANTED_IDS} {_OF_SENTENCE} {_APPLIED}
        WHERE audit.channel IN ('task', 'time')
        GROUP BY audit.sentence_id HAVING bool_or(audit.event_id = ANY(%(events)s)) ORDER BY audit.sentence_id
        """,
        {"collection": collection_id, "ids": list(sentences), "events": list(events)},
    )
    return [MovedSentence(**row._asdict()) for row in rows]


def list_near_questions(reader: Reader, focus: Focus, limit: int) -> list[NearQuestion]:
    """Return the ``limit`` nearest past questions, nearest first."""
    past = nearness(focus.collection, "question", "embedding", "%(q)s")
    rows = reader.rows(
        f"""
        SELECT near.id AS question_id, near.text AS question, near.similarity, (
                   SELECT count(*) FROM feedback_event event
                   WHERE event.collection_id = %(collection)s AND event.question_id = near.id
                     AND event.status = 'applied'
               ) AS events, (
                   SELECT count(*) FROM feedback_event event
                   {join_by_index("memory_audit audit", "audit.event_id = event.id AND audit.channel = 'recall'")}
                   WHERE event.collection_id = %(collection)s AND event.question_id = near.id
                     AND event.status = 'applied'
               ) AS steps
        FROM (
            SELECT id, text, -(embedding <#> %(q)s) AS similarity FROM question
            WHERE {past.rows} {build_seen_condition("question")} ORDER BY {past.order} LIMIT %(limit)s
        ) AS near
        ORDER BY near.similarity DESC, near.id
        """,
        focus.parameters(limit=limit),
    )
    return [NearQuestion(**row._asdict()) for row in rows]


def find_places(reader: Reader, focus: Focus, sentences: Sequence[int]) -> dict[int, SentencePlace]:
    """Sentence -> where it stands, of those that exist."""
    rows = reader.rows(
        f"""
        SELECT s.id AS sentence_id, s.passage_id, -(s.embedding <#> {HALVED_QUESTION}) AS similarity,
               {focus.passage_condition} AS passing
        FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
        {join_by_index("passage p", "p.id = s.passage_id")}
        """,
        focus.parameters(ids=list(sentences)),
    )
    return {row.sentence_id: SentencePlace(**row._asdict()) for row in rows}


def list_latest_terms(reader: Reader, collection_id: int, believed: PriorIdentity, limit: int) -> list[LoggedTerm]:
    """Return the terms of the ``limit`` latest events in a model's weights, in order of application."""
    rows = reader.rows(
        f"""
        SELECT audit.event_id, event.judge, {DAY} AS day,
               event.daily_weight_verdicts, audit.counted, audit.contested, audit.information,
               audit.precision
        FROM weight_audit audit {_APPLIED}
        WHERE audit.collection_id = %(collection)s AND audit.model = %(model)s AND audit.prior = %(prior)s
        ORDER BY event.applied_sequence DESC LIMIT %(limit)s
        """,
        {"collection": collection_id, "limit": limit, **asdict(believed)},
    )
    return [
        LoggedTerm(
            event_id=row.event_id,
            judge=row.judge,
            day=row.day,
            cap=row.daily_weight_verdicts,
            counted=row.counted,
            contested=row.contested,
            evidence=read_evidence(row),
        )
        for row in reversed(rows)
    ]


def find_questions(reader: Reader, collection_id: int, events: Sequence[int]) -> dict[int, int]:
    """Event -> the question that it taught, of applied events."""
    rows = reader.rows(
        f"""
        SELECT event.id, event.question_id
        FROM {WANTED_IDS} {join_by_index("feedback_event event", "event.id = wanted.id")}
        WHERE event.status = 'applied' AND event.question_id IS NOT NULL
        """,
        {"collection": collection_id, "ids": list(events)},
    )
    return {row.id: row.question_id for row in rows}


def causes(reader: Reader, collection_id: int, events: Sequence[int]) -> dict[int, LoggedCause]:
    """Event -> who judged which question when, of applied events."""
    rows = reader.rows(
        f"""
        SELECT event.id, event.judge, judged.question, event.applied_at FROM {WANTED_IDS}
        {join_by_index("feedback_event event", "event.id = wanted.id AND event.status = 'applied'")}
        {join_by_index("judged_query judged", "judged.id = event.query_id")}
        """,
        {"collection": collection_id, "ids": list(events)},
    )
    return {row.id: LoggedCause(row.id, row.judge, row.question, row.applied_at) for row in rows}


def list_text_since(reader: Reader, collection_id: int, passages: Sequence[int]) -> dict[int, datetime]:
    """Passage -> when its text became what it is."""
    rows = reader.rows(
        f"SELECT p.id, p.text_since FROM {WANTED_IDS} {join_by_index('passage p', 'p.id = wanted.id')}",
        {"collection": collection_id, "ids": list(passages)},
    )
    return {row.id: row.text_since for row in rows}
