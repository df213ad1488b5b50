"""The log as a replay reads it: what applied events said of each state, in the order in which they were applied.

Everything here is read in pages that a key leads on from, so that a replay holds little at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.belief import Evidence
from app.core.replay import Step, Word
from app.core.states import Audit, Event, Memory
from app.core.verdict import LoggedVerdict
from app.storage.database import Reader
from app.storage.learning.memories import memory_of
from app.storage.log.days import DAY
from app.storage.log.verdicts import verdict_of

Vector = NDArray[np.float32]
PAGE = 1_000


_VERDICT = f"""
    event.applied_sequence, event.question_id, event.judge, {DAY} AS day,
    (event.constants ->> 'share')::float8 AS share, (event.constants ->> 'contested')::float8 AS contested_share
"""
_RECORDED = """
    audit.event_id, audit.sentence_id, audit.channel, audit.target, audit.observation_noise, audit.gain,
    audit.residual, audit.perplexity_before, audit.perplexity_after, audit.process_noise
"""
_APPLIED = """
    JOIN feedback_event event ON event.collection_id = audit.collection_id AND event.id = audit.event_id
        AND event.status = 'applied'
    JOIN episode ON episode.collection_id = event.collection_id AND episode.id = event.episode_id
"""


def bases(reader: Reader, collection_id: int, sentences: Sequence[int]) -> dict[tuple[int, str], Vector]:
    """(sentence, channel) -> what its memory begins as, (d,); a time memory as the expression that it began as."""
    rows = reader.rows(
        """
        SELECT s.id, s.embedding, began.embedding FROM sentence s
        LEFT JOIN sentence_memory memory ON memory.collection_id = s.collection_id AND memory.sentence_id = s.id
            AND memory.channel = 'time'
        LEFT JOIN time_expression began ON began.collection_id = s.collection_id
            AND began.id = coalesce(memory.time_expression_id, s.time_expression_id)
        WHERE s.collection_id = %(collection)s AND s.id = ANY(%(ids)s)
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    found = {(row[0], "task"): row[1].to_numpy() for row in rows}
    return found | {(row[0], "time"): row[2].to_numpy() for row in rows if row[2] is not None}


def memory_steps(
    reader: Reader, collection_id: int, sentences: Sequence[int], after: tuple[int, int, str]
) -> list[Step]:
    """The next steps of these sentences' memories, by sentence, sequence and channel, those after ``after``."""
    rows = reader.rows(
        f"""
        SELECT {_RECORDED}, {_VERDICT},
               CASE audit.channel WHEN 'task' THEN episode.embedding ELSE episode.time_embedding END AS direction
        FROM memory_audit audit {_APPLIED}
        WHERE audit.collection_id = %(collection)s AND audit.sentence_id = ANY(%(ids)s)
          AND audit.channel IN ('task', 'time')
          AND (audit.sentence_id, event.applied_sequence, audit.channel) > (%(sentence)s, %(sequence)s, %(channel)s)
        ORDER BY audit.sentence_id, event.applied_sequence, audit.channel LIMIT %(limit)s
        """,
        {
            "collection": collection_id,
            "ids": list(sentences),
            "sentence": after[0],
            "sequence": after[1],
            "channel": after[2],
            "limit": PAGE,
        },
    )
    return [Step(row.applied_sequence, _event(row), Audit(*row[:10]), row.direction.to_numpy()) for row in rows]


def support_steps(
    reader: Reader,
    collection_id: int,
    questions: Sequence[int],
    sentences: Sequence[int] | None,
    after: tuple[int, int, int],
) -> list[Step]:
    """The next steps of these questions' supports, by question, sentence and sequence, those after ``after``.

    Sentences that are gone are left out, and all but ``sentences`` unless that is None.
    """
    rows = reader.rows(
        f"""
        SELECT {_RECORDED}, {_VERDICT},
               (event.verdict -> 'partial')::boolean AS partial,
               (event.verdict ->> 'retrieval_success')::boolean AS retrieval_success
        FROM memory_audit audit {_APPLIED}
        JOIN sentence s ON s.collection_id = audit.collection_id AND s.id = audit.sentence_id
        WHERE audit.collection_id = %(collection)s AND event.question_id = ANY(%(ids)s)
          AND audit.channel = 'recall'
          AND (%(sentences)s::bigint[] IS NULL OR audit.sentence_id = ANY(%(sentences)s))
          AND (event.question_id, audit.sentence_id, event.applied_sequence)
              > (%(question)s, %(sentence)s, %(sequence)s)
        ORDER BY event.question_id, audit.sentence_id, event.applied_sequence LIMIT %(limit)s
        """,
        {
            "collection": collection_id,
            "ids": list(questions),
            "sentences": None if sentences is None else list(sentences),
            "question": after[0],
            "sentence": after[1],
            "sequence": after[2],
            "limit": PAGE,
        },
    )
    return [Step(row.applied_sequence, _event(row, complete=_complete(row)), Audit(*row[:10])) for row in rows]


def words(reader: Reader, collection_id: int, questions: Sequence[int], after: tuple[int, int, int]) -> list[Word]:
    """The next words on these questions, by question, sentence and sequence, those after ``after``."""
    rows = reader.rows(
        """
        SELECT event.question_id, audit.sentence_id, event.applied_sequence, event.id, event.judge, audit.target
        FROM feedback_event event
        JOIN memory_audit audit ON audit.collection_id = event.collection_id AND audit.event_id = event.id
        WHERE event.collection_id = %(collection)s AND event.question_id = ANY(%(ids)s)
          AND event.status = 'applied' AND audit.channel = 'recall'
          AND (event.question_id, audit.sentence_id, event.applied_sequence)
              > (%(question)s, %(sentence)s, %(sequence)s)
        ORDER BY event.question_id, audit.sentence_id, event.applied_sequence LIMIT %(limit)s
        """,
        {
            "collection": collection_id,
            "ids": list(questions),
            "question": after[0],
            "sentence": after[1],
            "sequence": after[2],
            "limit": PAGE,
        },
    )
    return [Word(*row) for row in rows]


def _event(row: Any, *, complete: bool = False) -> Event:
    return Event(
        id=row.event_id,
        question_id=row.question_id,
        judge=row.judge,
        day=row.day,
        share=row.share,
        contested_share=row.contested_share,
        process_noise=row.process_noise,
        complete=complete,
    )


def _complete(row: Any) -> bool:
    return LoggedVerdict(partial=row.partial, retrieval_success=row.retrieval_success).complete


@dataclass(frozen=True, slots=True)
class Asked:
    """How a question was put by the first event that taught it."""

    text: str
    embedding: Vector


def first_asked(reader: Reader, collection_id: int, questions: Sequence[int]) -> dict[int, Asked]:
    """Question -> how the first applied event put it; those that none is left of are left out."""
    rows = reader.rows(
        """
        SELECT DISTINCT ON (event.question_id) event.question_id, episode.question, episode.embedding
        FROM feedback_event event
        JOIN episode ON episode.collection_id = event.collection_id AND episode.id = event.episode_id
        WHERE event.collection_id = %(collection)s AND event.question_id = ANY(%(ids)s)
          AND event.status = 'applied'
        ORDER BY event.question_id, event.applied_sequence
        """,
        {"collection": collection_id, "ids": list(questions)},
    )
    return {row[0]: Asked(row[1], row[2].to_numpy()) for row in rows}


@dataclass(frozen=True, slots=True)
class Term:
    """What one event added to the ranking weights, with what it can be computed from again.

    ``ranked`` and ``features``, (n, k), are None where the episode has none. ``counted`` is whether the sum holds
    it: of a judge's terms of a day (UTC), as many as ``cap``, and none that is ``contested``.
    """

    sequence: int
    event_id: int
    prior: str
    noise: float
    surprise: float
    evidence: Evidence
    verdict: LoggedVerdict
    activated: list[int]
    ranked: list[int] | None
    features: NDArray[np.float32] | None
    judge: str
    day: str
    cap: int | None
    counted: bool
    contested: bool


def terms(reader: Reader, collection_id: int, prior: str, after: int, limit: int = 500) -> list[Term]:
    """The next terms for a prior, in the order of application, those after sequence ``after``, counted or not."""
    rows = reader.rows(
        f"""
        SELECT event.applied_sequence, audit.event_id, audit.prior, audit.observation_noise, audit.surprise,
               audit.information, audit.precision, event.verdict, episode.activated, episode.ranked,
               episode.features, event.judge, {DAY},
               (event.constants ->> 'comparisons')::int, audit.counted, audit.contested
        FROM ranking_audit audit
        JOIN feedback_event event ON event.collection_id = audit.collection_id AND event.id = audit.event_id
            AND event.status = 'applied'
        JOIN episode ON episode.collection_id = event.collection_id AND episode.id = event.episode_id
        WHERE audit.collection_id = %(collection)s AND audit.prior = %(prior)s
          AND event.applied_sequence > %(after)s
        ORDER BY event.applied_sequence LIMIT %(limit)s
        """,
        {"collection": collection_id, "prior": prior, "after": after, "limit": limit},
    )
    return [
        Term(
            row[0],
            row[1],
            row[2],
            row[3],
            row[4],
            Evidence(np.array(row[5]), np.array(row[6]).reshape(len(row[5]), -1)),
            verdict_of(row[7]),
            row[8],
            row[9],
            np.frombuffer(row[10], dtype="<f4").reshape(len(row[9]), -1) if row[9] and row[10] else None,
            *row[11:],
        )
        for row in rows
    ]


def term_sums(
    reader: Reader, collection_id: int, prior: str, after: int, limit: int = 2_000
) -> list[tuple[int, Evidence]]:
    """Those of ``terms`` that count, the evidence alone: (sequence, evidence)."""
    rows = reader.rows(
        """
        SELECT event.applied_sequence, audit.information, audit.precision FROM ranking_audit audit
        JOIN feedback_event event ON event.collection_id = audit.collection_id AND event.id = audit.event_id
            AND event.status = 'applied'
        WHERE audit.collection_id = %(collection)s AND audit.prior = %(prior)s AND audit.counted
          AND event.applied_sequence > %(after)s
        ORDER BY event.applied_sequence LIMIT %(limit)s
        """,
        {"collection": collection_id, "prior": prior, "after": after, "limit": limit},
    )
    return [(row[0], Evidence(np.array(row[1]), np.array(row[2]).reshape(len(row[1]), -1))) for row in rows]


# What ``engram verify`` holds a replay against: stored rows, and the ids that lead through them.


def judged_sentences(reader: Reader, collection_id: int, after: int, limit: int) -> list[int]:
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
    return [row[0] for row in rows]


def stored_memories(reader: Reader, collection_id: int, sentences: Sequence[int]) -> list[Memory]:
    """The memories of these sentences as they stand, by sentence and channel."""
    rows = reader.rows(
        """
        SELECT sentence_id, channel, vector, perplexity, update_count, pulled FROM sentence_memory
        WHERE collection_id = %(collection)s AND sentence_id = ANY(%(ids)s) ORDER BY sentence_id, channel
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    return [memory_of(row) for row in rows]


@dataclass(frozen=True, slots=True)
class StoredQuestion:
    """A question as it stands; ``embedding`` is (d,)."""

    id: int
    text_hash: bytes
    text: str
    embedding: Vector


def question_ids(reader: Reader, collection_id: int, after: int, limit: int) -> list[int]:
    """The next questions, in id order, that are stored or that an applied event is said to have taught."""
    rows = reader.rows(
        """
        SELECT id FROM (
            (SELECT id FROM question
             WHERE collection_id = %(collection)s AND id > %(after)s ORDER BY 1 LIMIT %(limit)s)
            UNION
            (SELECT DISTINCT question_id FROM feedback_event
             WHERE collection_id = %(collection)s AND question_id > %(after)s AND status = 'applied'
             ORDER BY 1 LIMIT %(limit)s)
        ) AS asked ORDER BY id LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after, "limit": limit},
    )
    return [row[0] for row in rows]


def stored_questions(reader: Reader, collection_id: int, questions: Sequence[int]) -> dict[int, StoredQuestion]:
    """The questions as they stand, in id order."""
    rows = reader.rows(
        """
        SELECT id, text_hash, text, embedding FROM question
        WHERE collection_id = %(collection)s AND id = ANY(%(ids)s) ORDER BY id
        """,
        {"collection": collection_id, "ids": list(questions)},
    )
    return {row[0]: StoredQuestion(row[0], bytes(row[1]), row[2], row[3].to_numpy()) for row in rows}


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An applied event: what its verdict speaks of, and its audit rows, by sentence and channel."""

    id: int
    question_id: int | None
    question: str
    verdict: LoggedVerdict
    activated: list[int]
    audit: list[Audit]


def events(reader: Reader, collection_id: int, after: int, limit: int) -> list[LoggedEvent]:
    """The next applied events, in order of acceptance, those after event ``after``."""
    parameters = {"collection": collection_id, "after": after, "limit": limit}
    rows = reader.rows(
        """
        SELECT event.id, event.question_id, episode.question, event.verdict, episode.activated
        FROM feedback_event event
        JOIN episode ON episode.collection_id = event.collection_id AND episode.id = event.episode_id
        WHERE event.collection_id = %(collection)s AND event.id > %(after)s AND event.status = 'applied'
        ORDER BY event.id LIMIT %(limit)s
        """,
        parameters,
    )
    audit: dict[int, list[Audit]] = {row[0]: [] for row in rows}
    for row in reader.rows(
        f"""
        SELECT {_RECORDED} FROM memory_audit audit
        WHERE audit.collection_id = %(collection)s AND audit.event_id = ANY(%(ids)s)
        ORDER BY audit.event_id, audit.sentence_id, audit.channel
        """,
        parameters | {"ids": list(audit)},
    ):
        audit[row[0]].append(Audit(*row))
    return [LoggedEvent(row[0], row[1], row[2], row[3], row[4], audit[row[0]]) for row in rows]


def existing(reader: Reader, collection_id: int, sentences: Sequence[int]) -> set[int]:
    """Those of the sentences that there still are."""
    rows = reader.rows(
        "SELECT id FROM sentence WHERE collection_id = %(collection)s AND id = ANY(%(ids)s)",
        {"collection": collection_id, "ids": list(sentences)},
    )
    return {row[0] for row in rows}


def left_behind(reader: Reader, collection_id: int, table: str, limit: int) -> list[tuple[int, str]]:
    """(event, status) of events that do not count and still have rows in ``table``."""
    rows = reader.rows(
        f"""
        SELECT id, status FROM feedback_event event
        WHERE collection_id = %(collection)s AND status <> 'applied' AND EXISTS (
            SELECT FROM {table} held WHERE held.collection_id = %(collection)s AND held.event_id = event.id
        ) ORDER BY id LIMIT %(limit)s
        """,
        {"collection": collection_id, "limit": limit},
    )
    return [(row[0], row[1]) for row in rows]


def priors(reader: Reader, collection_id: int) -> list[str]:
    """Priors that there are sums or terms of, in order."""
    rows = reader.rows(
        """
        SELECT prior FROM ranking_belief WHERE collection_id = %(collection)s
        UNION SELECT prior FROM ranking_audit WHERE collection_id = %(collection)s ORDER BY 1
        """,
        {"collection": collection_id},
    )
    return [row[0] for row in rows]
