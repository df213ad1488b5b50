"""The log of verdicts. An event is accepted once, applied once, and everything learned follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.logged_verdict import LoggedVerdict
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.storage.column_parameters import floats, integers
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log import logged_verdicts
from engram.storage.feedback_log.judged_queries import JUDGED_COLUMNS, JudgedVerdict, read_judged
from engram.storage.judge_days import DAY
from engram.storage.row_lookups import NOT_DELETED, WANTED_IDS, join_by_index

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictEvent:
    """A verdict in the log of a collection, and what became of it.

    Attributes:
        idempotency_key: under which its principal brought it; ``body_hash`` recognises the verdict when it is sent
            again.
        judge: whose verdict it is.
        principal: who brought it.
        trusted: whether its judge counts in full by whose request it was.
        logged: the verdict itself; None where only the other fields were read.
        id: 0 until it is stored.
        status: ``pending``, ``applied``, ``parked`` or ``revoked``.
        attempts: tries to apply it that failed.
        error: why the last try failed, or what the event waits for.
        received_at: None until it is stored.
    """

    collection_id: int
    query_id: UUID
    idempotency_key: str
    body_hash: bytes
    judge: str
    principal: str = "local"
    trusted: bool = True
    logged: LoggedVerdict | None = None
    id: int = 0
    status: str = "pending"
    attempts: int = 0
    error: str | None = None
    received_at: datetime | None = None
    applied_at: datetime | None = None
    revoked_at: datetime | None = None

    @property
    def verdict(self) -> LoggedVerdict:
        """The verdict itself.

        Raises:
            LookupError: the event was read without it.
        """
        if self.logged is None:
            raise LookupError(f"event {self.id} was read without its verdict")
        return self.logged


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingEvent(JudgedVerdict):
    """A locked event with what its application needs of what it judges.

    ``day`` it came on (UTC), as 2026-05-01; ``trusted``: its judge counts in full by whose request it was;
    ``space``: of the embeddings, which are comparable with others only if it is the ``current_space``.
    ``answered_at``: when the judged answer was given.
    """

    id: int
    judge: str
    trusted: bool
    day: str
    question: str
    profile: str
    filter: dict[str, Any] | None
    embedding: Vector
    time_embedding: Vector | None
    sufficiency: float | None
    waited_seconds: float
    space: int
    current_space: int
    answered_at: datetime


def list_earlier_ratings(
    reader: Reader, collection_id: int, query: UUID, judge: str, event: int, principal: str | None
) -> list[int]:
    """Thumbs of the judge on the answer that came before the event and still count.

    Args:
        principal: only whose it brought; None: anybody's.
    """
    rows = reader.rows(
        """
        SELECT id FROM feedback_event
        WHERE collection_id = %(collection)s AND query_id = %(query)s AND id < %(event)s AND judge = %(judge)s
          AND rating IN ('up', 'down') AND status <> 'revoked'
          AND (%(principal)s::text IS NULL OR principal = %(principal)s)
        ORDER BY id
        """,
        {"collection": collection_id, "query": query, "judge": judge, "event": event, "principal": principal},
    )
    return [row.id for row in rows]


def has_replaced_rating(reader: Reader, event: VerdictEvent) -> bool:
    """Whether a thumb of the event's judge on the same answer came before it and is revoked."""
    return bool(
        reader.scalar(
            """
            SELECT EXISTS (
                SELECT FROM feedback_event
                WHERE collection_id = %(collection)s AND query_id = %(query)s AND id < %(event)s
                  AND judge = %(judge)s AND rating IN ('up', 'down') AND status = 'revoked'
            )
            """,
            {
                "collection": event.collection_id,
                "query": event.query_id,
                "event": event.id,
                "judge": event.judge,
            },
        )
    )


COLUMNS = """
    collection_id, id, query_id, idempotency_key, body_hash, judge, principal, trusted, status, attempts, error,
    received_at, applied_at, revoked_at
"""
"""Of the log, what ``build_event`` takes."""


def build_event(row: Any) -> VerdictEvent:
    """The event that a row of ``COLUMNS`` is."""
    return VerdictEvent(
        collection_id=row.collection_id,
        id=row.id,
        query_id=row.query_id,
        idempotency_key=row.idempotency_key,
        body_hash=row.body_hash,
        judge=row.judge,
        principal=row.principal,
        trusted=row.trusted,
        status=row.status,
        attempts=row.attempts,
        error=row.error,
        received_at=row.received_at,
        applied_at=row.applied_at,
        revoked_at=row.revoked_at,
    )


def find(reader: Reader, collection_id: int, event: int) -> VerdictEvent | None:
    """The event, or None."""
    row = reader.row(
        f"SELECT {COLUMNS} FROM feedback_event WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": event},
    )
    return None if row is None else build_event(row)


_NAMES_CHANGED = """
    EXISTS (
        SELECT FROM verdict_sentence named
        LEFT JOIN sentence s ON s.collection_id = named.collection_id AND s.id = named.sentence_id
        JOIN judged_query judged
          ON judged.collection_id = feedback_event.collection_id AND judged.id = feedback_event.query_id
        WHERE named.collection_id = feedback_event.collection_id AND named.event_id = feedback_event.id
          AND named.collection_id = %(collection)s AND (s.id IS NULL OR judged.answered_at < ANY (s.revised_at))
    )
"""


def page(
    reader: Reader,
    collection_id: int,
    *,
    status: str | None,
    after: int,
    limit: int,
    principal: str | None = None,
    before: int | None = None,
    query: UUID | None = None,
    stale: bool = False,
) -> list[VerdictEvent]:
    """Events in order of acceptance, those after event ``after``; ``principal``: only whose it brought.

    With ``before`` those accepted before that event, the latest first. With ``query`` only those on that answer.
    ``stale``: only those that name a sentence that is gone, or that was revised since.
    """
    rows = reader.rows(
        f"""
        SELECT {COLUMNS} FROM feedback_event WHERE collection_id = %(collection)s AND id > %(after)s
          AND id < coalesce(%(before)s::bigint, 9223372036854775807)
          AND (%(status)s::text IS NULL OR status = %(status)s)
          AND (%(principal)s::text IS NULL OR principal = %(principal)s)
          {"" if query is None else "AND query_id = %(query)s"} {f"AND {_NAMES_CHANGED}" if stale else ""}
        ORDER BY id {"" if before is None else "DESC"} LIMIT %(limit)s
        """,
        {
            "collection": collection_id,
            "status": status,
            "after": after,
            "before": before,
            "limit": limit,
            "principal": principal,
        }
        | ({} if query is None else {"query": query}),
    )
    return [build_event(row) for row in rows]


# Of an event that is looked up by its id. ``status = 'pending'`` could be answered by the index of what waits,
# which knows no ids: each event of a batch would be looked for among all that wait.
_PENDING = "status IS NOT DISTINCT FROM 'pending'"


def lock_pending(writer: Writer, collection_id: int, events: Sequence[int]) -> list[PendingEvent]:
    """Lock and return the pending ones of the events, in order of acceptance; locked ones are skipped.

    Raises:
        ValueError: a verdict is of a version that is not known here.
    """
    return _load_events(writer, collection_id, events, f"{_PENDING} FOR UPDATE SKIP LOCKED")


def load_applied(reader: Reader, collection_id: int, events: Sequence[int]) -> list[PendingEvent]:
    """Return the applied ones of the events, as they were applied, in order of acceptance.

    Raises:
        ValueError: a verdict is of a version that is not known here.
    """
    return _load_events(reader, collection_id, events, "status IS NOT DISTINCT FROM 'applied' OFFSET 0")


def _load_events(reader: Reader, collection_id: int, events: Sequence[int], condition: str) -> list[PendingEvent]:
    rows = reader.rows(
        f"""
        SELECT event.id, event.judge, event.trusted, {DAY} AS day, judged.question, judged.profile, judged.filter,
               judged.embedding, judged.time_embedding, judged.sufficiency, {JUDGED_COLUMNS},
               extract(epoch FROM clock_timestamp() - event.received_at)::float8 AS waited,
               judged.space, judged.answered_at,
               (SELECT space FROM collection WHERE id = %(collection)s) AS current_space
        FROM unnest(%(ids)s::bigint[]) AS wanted(id)
        CROSS JOIN LATERAL (
            SELECT id, judge, trusted, received_at, query_id FROM feedback_event
            WHERE collection_id = %(collection)s AND id = wanted.id AND {condition}
        ) AS event
        {join_by_index("judged_query judged", "judged.id = event.query_id")}
        ORDER BY event.id
        """,
        {"collection": collection_id, "ids": integers(sorted(events))},
    )
    verdicts = logged_verdicts.read(reader, collection_id, [row.id for row in rows])
    return [
        PendingEvent(
            id=row.id,
            judge=row.judge,
            trusted=row.trusted,
            day=row.day,
            question=row.question,
            profile=row.profile,
            filter=row.filter,
            embedding=row.embedding.to_numpy(),
            time_embedding=None if row.time_embedding is None else row.time_embedding.to_numpy(),
            sufficiency=row.sufficiency,
            waited_seconds=row.waited,
            space=row.space,
            current_space=row.current_space,
            answered_at=row.answered_at,
            **read_judged(row, verdicts[row.id]),
        )
        for row in rows
    ]


def mark_applied(
    writer: Writer,
    collection_id: int,
    questions: Mapping[int, int],
    constants: Mapping[int, NoiseAndCaps],
) -> None:
    """The events took effect in this transaction, in the given order.

    The sequence is drawn after all locks are held, so it orders any two events that touch the same state.

    Args:
        questions: event -> the question that it taught.
        constants: event -> by which noises and caps it was applied.
    """
    drawn = "nextval('feedback_applied')"
    sequences: list[int] = []
    if writer.distributed:  # no node can draw it
        statement = f"SELECT {drawn} AS sequence FROM generate_series(1, %(count)s)"
        sequences = [row.sequence for row in writer.rows(statement, {"count": len(questions)})]
        drawn = "(%(sequences)s::bigint[])[event.n]"
    writer.execute(
        f"""
        UPDATE feedback_event SET status = 'applied', applied_at = now(), error = NULL,
            applied_sequence = drawn.sequence, question_id = drawn.question,
            observation_noise_positive = drawn.positive, observation_noise_negative = drawn.negative,
            process_noise = drawn.process, daily_share = drawn.share, contested_share = drawn.contested,
            daily_weight_verdicts = drawn.weight_verdicts, standing = drawn.standing
        FROM (
            SELECT %(collection)s::bigint AS collection_id, event.*, {drawn} AS sequence
            FROM unnest(%(ids)s::bigint[], %(questions)s::bigint[], %(positive)s::float8[], %(negative)s::float8[],
                        %(process)s::float8[], %(share)s::float8[], %(contested)s::float8[],
                        %(weight_verdicts)s::integer[], %(standing)s::float8[])
                WITH ORDINALITY AS event(id, question, positive, negative, process, share, contested,
                                         weight_verdicts, standing, n)
            ORDER BY n
        ) AS drawn
        WHERE feedback_event.collection_id = drawn.collection_id AND feedback_event.id = drawn.id
        """,
        {
            "collection": collection_id,
            "ids": integers(questions),
            "sequences": sequences,
            "questions": integers(questions.values()),
            "positive": floats(constants[event].positive for event in questions),
            "negative": floats(constants[event].negative for event in questions),
            "process": floats(constants[event].process for event in questions),
            "share": floats(constants[event].share for event in questions),
            "contested": floats(constants[event].contested for event in questions),
            "weight_verdicts": [constants[event].weight_verdicts for event in questions],
            "standing": floats(constants[event].standing for event in questions),
        },
    )


def lock_unrevoked(writer: Writer, collection_id: int, event_ids: Sequence[int]) -> dict[int, str]:
    """Lock those of the events that are not revoked, in id order, waiting for each; return their status by id.

    The caller holds ``collections.lock_learning``, so no worker that holds an event waits for this transaction.
    """
    rows = writer.rows(
        f"""
        SELECT event.id, event.status FROM {WANTED_IDS} JOIN feedback_event event
          ON event.collection_id = wanted.collection_id AND event.id = wanted.id
        WHERE event.status <> 'revoked' ORDER BY event.id FOR UPDATE OF event
        """,
        {"collection": collection_id, "ids": sorted(event_ids)},
    )
    return {row.id: row.status for row in rows}


def mark_revoked(writer: Writer, collection_id: int, events: Sequence[int]) -> None:
    """The locked events count no more; they stay in the log with their verdicts."""
    writer.execute(
        f"""
        UPDATE feedback_event event SET status = 'revoked', revoked_at = now() FROM {WANTED_IDS}
        WHERE event.collection_id = wanted.collection_id AND event.id = wanted.id
        """,
        {"collection": collection_id, "ids": list(events)},
    )


def record_failure(writer: Writer, collection_id: int, event: int, error: str, max_attempts: int) -> bool:
    """Note a failed try; whether it was the last one, which parks the event, so that it holds nobody else back."""
    status = writer.scalar(
        f"""
        UPDATE feedback_event SET attempts = attempts + 1, error = %(error)s,
            status = CASE WHEN attempts + 1 >= %(max)s THEN 'parked' ELSE status END
        WHERE collection_id = %(collection)s AND id = %(id)s AND {_PENDING}
        RETURNING status
        """,
        {"collection": collection_id, "id": event, "error": error, "max": max_attempts},
    )
    return bool(status == "parked")


def say_why(writer: Writer, collection_id: int, event: int, reason: str) -> None:
    """Note why an event goes on waiting, without counting a try."""
    writer.execute(
        f"""
        UPDATE feedback_event SET error = %(reason)s
        WHERE collection_id = %(collection)s AND id = %(id)s AND {_PENDING}
        """,
        {"collection": collection_id, "id": event, "reason": reason},
    )


def unpark(writer: Writer, collection_id: int, *, event: int | None = None, judge: str | None = None) -> list[int]:
    """Let parked events wait again with all their tries; which, in order of acceptance.

    Args:
        event: only this one.
        judge: only this judge's.
    """
    # Locked in order, as whoever revokes locks them as well.
    rows = writer.rows(
        """
        WITH parked AS (
            SELECT id FROM feedback_event
            WHERE collection_id = %(collection)s AND status = 'parked'
              AND (%(event)s::bigint IS NULL OR id = %(event)s) AND (%(judge)s::text IS NULL OR judge = %(judge)s)
            ORDER BY id FOR UPDATE
        )
        UPDATE feedback_event event SET status = 'pending', attempts = 0 FROM parked
        WHERE event.collection_id = %(collection)s AND event.id = parked.id RETURNING event.id
        """,
        {"collection": collection_id, "event": event, "judge": judge},
    )
    return sorted(row.id for row in rows)


def list_overdue(
    reader: Reader, age_seconds: float, limit: int, fingerprints: Sequence[str]
) -> list[tuple[int, int]]:
    """(collection, event) that have waited longer than ``age_seconds``: their wake-up was lost.

    Args:
        fingerprints: of the encoders that there are. Verdicts with expansions in collections of others are left
            out: enough of them would keep all that came after them waiting.
    """
    rows = reader.rows(
        f"""
        SELECT event.collection_id, event.id FROM feedback_event event
        WHERE event.status = 'pending' AND event.received_at < now() - make_interval(secs => %(age)s)
          AND (SELECT {NOT_DELETED} FROM collection WHERE id = event.collection_id) AND (
              (SELECT encoder_fingerprint FROM collection WHERE id = event.collection_id) = ANY(%(fingerprints)s)
              OR NOT EXISTS (
                  SELECT FROM verdict_expansion brought
                  WHERE brought.collection_id = event.collection_id AND brought.event_id = event.id
              )
          )
        ORDER BY event.received_at LIMIT %(limit)s
        """,
        {"age": age_seconds, "limit": limit, "fingerprints": list(fingerprints)},
    )
    return [(row.collection_id, row.id) for row in rows]
