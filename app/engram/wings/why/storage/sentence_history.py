"""History of a sentence's memory: its place, and page by page the events that moved it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from engram.storage.database import Reader
from engram.storage.feedback_log.judged_queries import JUDGED_QUERY_JOIN
from engram.storage.row_lookups import join_by_index


@dataclass(frozen=True, slots=True)
class FoundSentence:
    """A sentence and the passage it stands in; the passage by its external id."""

    id: int
    text: str
    position: int
    passage_id: str
    title: str | None


@dataclass(frozen=True, slots=True)
class QuestionSupport:
    """Support of a past question by a sentence; ``support`` and ``perplexity`` lie in [0, 1]."""

    question_id: int
    question: str
    support: float
    perplexity: float
    update_count: int
    complete: bool


@dataclass(frozen=True, slots=True)
class MemoryMoveRow:
    """Effect of one event on one channel of a sentence, by the audit.

    Attributes:
        sequence: the event's place in the order of application.
        similarity_now: cosine of the memory as it stands and the event's question, or its time constraint; None for
            channel "recall".
    """

    sequence: int
    event_id: int
    judge: str
    query_id: UUID
    question: str
    applied_at: datetime
    channel: str
    target: int
    gain: float
    residual: float
    perplexity_before: float
    perplexity_after: float
    similarity_now: float | None


def load_sentence(reader: Reader, collection_id: int, sentence_id: int) -> FoundSentence | None:
    """Load a sentence with its passage; None if it does not exist."""
    row = reader.row(
        f"""
        SELECT s.id, s.text, s.position, p.external_id AS passage_id, p.title
        FROM sentence s {join_by_index("passage p", "p.id = s.passage_id")}
        WHERE s.collection_id = %(collection)s AND s.id = %(id)s
        """,
        {"collection": collection_id, "id": sentence_id},
    )
    return None if row is None else FoundSentence(**row._asdict())


def supports(reader: Reader, collection_id: int, sentence_id: int, limit: int) -> tuple[list[QuestionSupport], int]:
    """Return the ``limit`` past questions that the sentence supports most surely, and the number of all."""
    rows = reader.rows(
        f"""
        SELECT question.id, question.text, qs.support, qs.perplexity, qs.update_count, qs.complete,
               count(*) OVER () AS total
        FROM question_support qs {join_by_index("question", "question.id = qs.question_id")}
        WHERE qs.collection_id = %(collection)s AND qs.sentence_id = %(id)s
        ORDER BY qs.support DESC, question.id LIMIT %(limit)s
        """,
        {"collection": collection_id, "id": sentence_id, "limit": limit},
    )
    question_supports = [
        QuestionSupport(
            question_id=row.id,
            question=row.text,
            support=row.support,
            perplexity=row.perplexity,
            update_count=row.update_count,
            complete=row.complete,
        )
        for row in rows
    ]
    return question_supports, rows[0].total if rows else 0


def moves(reader: Reader, collection_id: int, sentence_id: int, after: int, limit: int) -> list[MemoryMoveRow]:
    """Return the next ``limit`` counting events after sequence ``after`` that moved the sentence, in order."""
    memory = "memory.sentence_id = %(id)s AND memory.channel = audit.channel"
    rows = reader.rows(
        f"""
        WITH page AS (
            SELECT DISTINCT event.applied_sequence AS sequence, event.id
            FROM memory_audit audit
            {join_by_index("feedback_event event", "event.id = audit.event_id AND event.status = 'applied'")}
            WHERE audit.collection_id = %(collection)s AND audit.sentence_id = %(id)s
              AND event.applied_sequence > %(after)s
            ORDER BY event.applied_sequence LIMIT %(limit)s
        )
        SELECT page.sequence, event.id AS event_id, event.judge, judged.id AS query_id, judged.question,
               event.applied_at, audit.channel, audit.target, audit.gain, audit.residual, audit.perplexity_before,
               audit.perplexity_after,
               -(memory.vector <#> CASE audit.channel WHEN 'task' THEN judged.embedding
                                                      ELSE judged.time_embedding END) AS similarity_now
        FROM page {join_by_index("feedback_event event", "event.id = page.id")} {JUDGED_QUERY_JOIN}
        {join_by_index("memory_audit audit", "audit.event_id = event.id AND audit.sentence_id = %(id)s")}
        {join_by_index("sentence_memory memory", memory, outer=True)}
        ORDER BY page.sequence, audit.channel
        """,
        {"collection": collection_id, "id": sentence_id, "after": after, "limit": limit},
    )
    return [MemoryMoveRow(**row._asdict()) for row in rows]
