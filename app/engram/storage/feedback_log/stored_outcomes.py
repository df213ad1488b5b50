"""Stored outcomes of verdicts, to compare a replay with, and the ids that page through them.

Read in pages, as ``history`` is, so that nobody holds much at once.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.states import Audit
from engram.core.ranking.weight_beliefs import PriorIdentity
from engram.storage.database import Reader
from engram.storage.feedback_log import audit_rows, logged_verdicts
from engram.storage.row_lookups import WANTED_IDS, join_by_index

Vector = NDArray[np.float32]


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
    return [row.id for row in rows]


def load_questions(reader: Reader, collection_id: int, questions: Sequence[int]) -> dict[int, StoredQuestion]:
    """The questions as they stand, in id order."""
    rows = reader.rows(
        f"""
        SELECT question.id, question.text_hash, question.text, question.embedding
        FROM {WANTED_IDS} {join_by_index("question", "question.id = wanted.id")} ORDER BY question.id
        """,
        {"collection": collection_id, "ids": list(questions)},
    )
    return {
        row.id: StoredQuestion(row.id, bytes(row.text_hash), row.text, row.embedding.to_numpy()) for row in rows
    }


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An applied event: sentence -> y of its verdict, and its audit rows, by sentence and channel.

    ``answered_at``: when the judged answer was given.
    """

    id: int
    applied_at: datetime
    question_id: int
    question: str
    targets: dict[int, int]
    audit: list[Audit]
    answered_at: datetime

    def list_unaudited(self, channel: str, alive: Set[int], returned: Mapping[int, datetime]) -> list[int]:
        """List the sentences that it judged and that lack its audit row of a channel, in id order.

        Args:
            alive: sentences that exist.
            returned: see ``find_returned``. One that returned later may have been absent, and needs no row.
        """
        audited = {row.sentence_id for row in self.audit if row.channel == channel}
        return [
            sentence
            for sentence in sorted(self.targets.keys() & alive - audited)
            if sentence not in returned or returned[sentence] <= self.applied_at
        ]


def events(reader: Reader, collection_id: int, after: int, limit: int) -> list[LoggedEvent]:
    """The next applied events, in order of acceptance, those after event ``after``."""
    rows = reader.rows(
        f"""
        SELECT event.id, event.applied_at, event.question_id, judged.question, judged.activated, judged.answered_at
        FROM feedback_event event
        {join_by_index("judged_query judged", "judged.id = event.query_id")}
        WHERE event.collection_id = %(collection)s AND event.id > %(after)s AND event.status = 'applied'
        ORDER BY event.id LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after, "limit": limit},
    )
    ids = [row.id for row in rows]
    verdicts, audit = logged_verdicts.read(reader, collection_id, ids), audit_rows.read(reader, collection_id, ids)
    return [
        LoggedEvent(
            id=row.id,
            applied_at=row.applied_at,
            question_id=row.question_id,
            question=row.question,
            targets=verdicts[row.id].targets(row.activated),
            audit=audit[row.id],
            answered_at=row.answered_at,
        )
        for row in rows
    ]


def find_existing(reader: Reader, collection_id: int, sentences: Sequence[int]) -> set[int]:
    """Return those sentences that still exist."""
    rows = reader.rows(
        f"SELECT s.id FROM {WANTED_IDS} {join_by_index('sentence s', 's.id = wanted.id')}",
        {"collection": collection_id, "ids": list(sentences)},
    )
    return {row.id for row in rows}


def find_returned(reader: Reader, collection_id: int, sentences: Sequence[int]) -> dict[int, datetime]:
    """Sentence -> when its removed passage last came again, of those whose passage did."""
    returned = "s.id = wanted.id AND s.returned_at IS NOT NULL"
    rows = reader.rows(
        f"SELECT s.id, s.returned_at FROM {WANTED_IDS} {join_by_index('sentence s', returned)}",
        {"collection": collection_id, "ids": list(sentences)},
    )
    return {row.id: row.returned_at for row in rows}


def list_left_behind(reader: Reader, collection_id: int, table: str, limit: int) -> list[tuple[int, str]]:
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
    return [(row.id, row.status) for row in rows]


def beliefs(reader: Reader, collection_id: int) -> list[PriorIdentity]:
    """Return the priors with stored sums or terms, in order."""
    rows = reader.rows(
        """
        SELECT model, prior FROM learned_weights WHERE collection_id = %(collection)s
        UNION SELECT model, prior FROM weight_audit WHERE collection_id = %(collection)s ORDER BY 1, 2
        """,
        {"collection": collection_id},
    )
    return [PriorIdentity(row.model, row.prior) for row in rows]
