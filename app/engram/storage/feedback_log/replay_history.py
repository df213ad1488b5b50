"""The log as a replay reads it: what applied events said of each state, in the order in which they were applied.

Everything here is read in pages that a key leads on from, so that a replay holds little at once.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.logged_verdict import LoggedVerdict
from engram.core.learning.state_replay import ReplayStep, SentenceJudgement
from engram.core.learning.states import Event
from engram.core.ranking.weight_beliefs import PriorIdentity, WeightEvidence
from engram.storage.database import Reader
from engram.storage.feedback_log import logged_verdicts
from engram.storage.feedback_log.audit_rows import AUDIT_COLUMNS, audit_of, read_evidence
from engram.storage.feedback_log.judged_queries import JUDGED_COLUMNS, JudgedVerdict, read_judged
from engram.storage.judge_days import CAPPED_AS, DAY
from engram.storage.row_lookups import WANTED_IDS, join_by_index

Vector = NDArray[np.float32]
PAGE = 1_000


EVENT_COLUMNS = f"""
    event.applied_sequence, event.question_id, {CAPPED_AS} AS judge, {DAY} AS day, event.daily_share,
    event.contested_share, event.observation_noise_positive, event.observation_noise_negative, event.confidence,
    event.standing, event.partial, event.retrieval_success, judged.sufficiency
"""
"""Of ``feedback_event event`` and its ``judged_query judged``, what ``read_event`` takes."""
EVENT_OF_AUDIT = "event.id = audit.event_id AND event.status = 'applied'"
_EVENT_OF_QUESTION = "event.question_id = wanted.id AND event.status = 'applied'"
_AUDIT_OF_EVENT = "audit.event_id = event.id AND audit.channel = 'recall'"


def support_steps(
    reader: Reader,
    collection_id: int,
    questions: Sequence[int],
    sentences: Sequence[int] | None,
    after: tuple[int, int, int],
) -> list[ReplayStep]:
    """The next steps of these questions' supports, by question, sentence and sequence, those after ``after``.

    Sentences that are gone are left out, and all but ``sentences`` unless that is None.
    """
    rows = reader.rows(
        f"""
        SELECT {AUDIT_COLUMNS}, {EVENT_COLUMNS} FROM {WANTED_IDS}
        {join_by_index("feedback_event event", _EVENT_OF_QUESTION)}
        {join_by_index("judged_query judged", "judged.id = event.query_id")}
        {join_by_index("memory_audit audit", _AUDIT_OF_EVENT)}
        {join_by_index("sentence s", "s.id = audit.sentence_id")}
        WHERE (%(sentences)s::bigint[] IS NULL OR audit.sentence_id = ANY(%(sentences)s))
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
    return [ReplayStep(row.applied_sequence, read_event(row), audit_of(row)) for row in rows]


def words(
    reader: Reader, collection_id: int, questions: Sequence[int], after: tuple[int, int, int]
) -> list[SentenceJudgement]:
    """The next words on these questions, by question, sentence and sequence, those after ``after``."""
    rows = reader.rows(
        f"""
        SELECT event.question_id, audit.sentence_id, event.applied_sequence, event.id, {CAPPED_AS} AS judge,
               audit.target, audit.revision
        FROM {WANTED_IDS}
        {join_by_index("feedback_event event", _EVENT_OF_QUESTION)}
        {join_by_index("memory_audit audit", _AUDIT_OF_EVENT)}
        WHERE (event.question_id, audit.sentence_id, event.applied_sequence)
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
    return [
        SentenceJudgement(
            question_id=row.question_id,
            sentence_id=row.sentence_id,
            sequence=row.applied_sequence,
            event_id=row.id,
            judge=row.judge,
            target=row.target,
            revision=row.revision,
        )
        for row in rows
    ]


def read_event(row: Any) -> Event:
    """Read the event of a row of ``EVENT_COLUMNS``."""
    certainty = row.confidence * row.standing
    return Event(
        id=row.event_id,
        question_id=row.question_id,
        judge=row.judge,
        day=row.day,
        share=row.daily_share,
        contested_share=row.contested_share,
        process_noise=row.process_noise,
        noise=(row.observation_noise_negative / certainty, row.observation_noise_positive / certainty),
        complete=LoggedVerdict(partial=row.partial, retrieval_success=row.retrieval_success).complete,
        sufficiency=row.sufficiency,
    )


def find_questions_about(reader: Reader, collection_id: int, sentences: Sequence[int]) -> list[int]:
    """The questions for which applied events judged one of the sentences, in id order."""
    rows = reader.rows(
        f"""
        SELECT DISTINCT event.question_id FROM {WANTED_IDS}
        {join_by_index("memory_audit audit", "audit.sentence_id = wanted.id AND audit.channel = 'recall'")}
        {join_by_index("feedback_event event", EVENT_OF_AUDIT)}
        ORDER BY event.question_id
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    return [row.question_id for row in rows]


@dataclass(frozen=True, slots=True)
class FirstQuestion:
    """Wording of a question in the first event that taught it."""

    text: str
    embedding: Vector


def find_first_questions(reader: Reader, collection_id: int, questions: Sequence[int]) -> dict[int, FirstQuestion]:
    """Question -> how the first applied event put it; those that none is left of are left out."""
    rows = reader.rows(
        f"""
        SELECT DISTINCT ON (event.question_id) event.question_id, judged.question, judged.embedding
        FROM {WANTED_IDS}
        {join_by_index("feedback_event event", _EVENT_OF_QUESTION)}
        {join_by_index("judged_query judged", "judged.id = event.query_id")}
        ORDER BY event.question_id, event.applied_sequence
        """,
        {"collection": collection_id, "ids": list(questions)},
    )
    return {row.question_id: FirstQuestion(row.question, row.embedding.to_numpy()) for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class Term(JudgedVerdict):
    """Term that one event added to a model's weights, with the inputs to recompute it.

    ``counted`` is whether the sum holds it: of a judge's terms of a day (UTC), as many as ``cap``, and none that is
    ``contested``.
    """

    sequence: int
    event_id: int
    applied_at: datetime
    surprise: float
    evidence: WeightEvidence
    judge: str
    day: str
    cap: int | None
    counted: bool
    contested: bool


def terms(reader: Reader, collection_id: int, believed: PriorIdentity, after: int, limit: int = 500) -> list[Term]:
    """The next terms of a belief, in the order of application, those after sequence ``after``, counted or not."""
    rows = reader.rows(
        f"""
        SELECT event.applied_sequence, event.applied_at, audit.event_id, audit.observation_noise, audit.surprise,
               audit.information, audit.precision, {JUDGED_COLUMNS}, event.judge,
               {DAY} AS day, event.daily_weight_verdicts, audit.counted, audit.contested
        FROM weight_audit audit
        {join_by_index("feedback_event event", EVENT_OF_AUDIT)}
        {join_by_index("judged_query judged", "judged.id = event.query_id")}
        WHERE audit.collection_id = %(collection)s AND audit.model = %(model)s AND audit.prior = %(prior)s
          AND event.applied_sequence > %(after)s
        ORDER BY event.applied_sequence LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after, "limit": limit, **asdict(believed)},
    )
    verdicts = logged_verdicts.read(reader, collection_id, [row.event_id for row in rows])
    return [
        Term(
            sequence=row.applied_sequence,
            event_id=row.event_id,
            applied_at=row.applied_at,
            noise=row.observation_noise,
            surprise=row.surprise,
            evidence=read_evidence(row),
            judge=row.judge,
            day=row.day,
            cap=row.daily_weight_verdicts,
            counted=row.counted,
            contested=row.contested,
            **read_judged(row, verdicts[row.event_id]),
        )
        for row in rows
    ]


def term_sums(
    reader: Reader, collection_id: int, believed: PriorIdentity, after: int, limit: int = 2_000
) -> list[tuple[int, WeightEvidence]]:
    """Return the counting ones of ``terms`` as (sequence, evidence)."""
    rows = reader.rows(
        f"""
        SELECT event.applied_sequence, audit.information, audit.precision FROM weight_audit audit
        {join_by_index("feedback_event event", "event.id = audit.event_id AND event.status = 'applied'")}
        WHERE audit.collection_id = %(collection)s AND audit.model = %(model)s AND audit.prior = %(prior)s
          AND audit.counted AND event.applied_sequence > %(after)s
        ORDER BY event.applied_sequence LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after, "limit": limit, **asdict(believed)},
    )
    return [(row.applied_sequence, read_evidence(row)) for row in rows]
