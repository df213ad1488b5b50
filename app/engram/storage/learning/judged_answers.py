"""Judgements of earlier answers to the same question, by the log: enough or not."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engram.core.learning.ratings import REASONS
from engram.core.learning.states import question_hash
from engram.core.ranking.denied_answers import AnswerJudgement
from engram.storage.carried_statements import CarriedStatement
from engram.storage.database import Reader
from engram.storage.judge_days import CAPPED_AS
from engram.storage.row_lookups import join_by_index

# See ``ratings.denies_answer``. A verdict that supports a sentence confirms; one that does neither says nothing.
_DENIES = """
    event.retrieval_success IS FALSE OR NOT event.partial
    OR event.rating = 'down' AND coalesce(event.reason, '') <> ALL(%(reasons)s::text[])
"""


_OF_QUESTION = "event.question_id = asked.id AND event.status = 'applied'"
_JUDGEMENTS = f"""
    (
        SELECT spoken.*,
               CASE WHEN spoken.enough THEN spoken.positive ELSE spoken.negative END / spoken.weight AS noise
        FROM (
            SELECT event.id AS event_id, {CAPPED_AS} AS judge, event.applied_sequence,
                   event.confidence * event.standing AS weight, event.observation_noise_positive AS positive,
                   event.observation_noise_negative AS negative, event.daily_share AS share, ({_DENIES}) AS denies,
                   EXISTS (
                       SELECT audit.event_id FROM (SELECT event.id) AS judged
                       {join_by_index("memory_audit audit", "audit.event_id = judged.id")}
                       WHERE audit.channel = 'recall' AND audit.target = 1
                   ) AS enough
            FROM (
                SELECT id FROM question
                WHERE collection_id = %(collection)s AND text_hash = %(question_hash)s
            ) AS asked
            {join_by_index("feedback_event event", _OF_QUESTION)}
        ) AS spoken
        WHERE spoken.enough OR spoken.denies
    ) AS judged
"""


@dataclass(frozen=True, slots=True)
class LoggedJudgement:
    """A judgement with its verdict, and whose it counts as."""

    event_id: int
    judge: str
    judgement: AnswerJudgement


def build_judgement_query(question: str) -> CarriedStatement:
    """The statement whose rows ``collect_judgements`` takes: the last judgement of each judge."""
    return CarriedStatement(
        f"""
        SELECT DISTINCT ON (judged.judge) judged.enough, judged.noise, judged.share FROM {_JUDGEMENTS}
        ORDER BY judged.judge, judged.applied_sequence DESC
        """,
        _build_parameters(question),
    )


def _build_parameters(question: str) -> dict[str, Any]:
    return {"question_hash": question_hash(question), "reasons": list(REASONS)}


def collect_judgements(rows: Sequence[Mapping[str, Any]]) -> list[AnswerJudgement]:
    """Return the judgements in these rows."""
    return [AnswerJudgement(row["enough"], row["noise"], row["share"]) for row in rows]


def list_judgements(reader: Reader, collection_id: int, question: str) -> list[AnswerJudgement]:
    """List each judge's last judgement of the answers to this question."""
    statement = build_judgement_query(question)
    rows = reader.rows(statement.statement, {"collection": collection_id, **statement.parameters})
    return collect_judgements([row._asdict() for row in rows])


def list_every_judgement(reader: Reader, collection_id: int, question: str) -> list[LoggedJudgement]:
    """List all judgements of the answers to this question, in the order of application."""
    rows = reader.rows(
        f"""
        SELECT judged.event_id, judged.judge, judged.enough, judged.noise, judged.share FROM {_JUDGEMENTS}
        ORDER BY judged.applied_sequence
        """,
        {"collection": collection_id, **_build_parameters(question)},
    )
    return [
        LoggedJudgement(row.event_id, row.judge, AnswerJudgement(row.enough, row.noise, row.share)) for row in rows
    ]
