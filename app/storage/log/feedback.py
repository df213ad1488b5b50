"""The log of verdicts. An event is accepted once, applied once, and everything learned follows from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from app.core.states import Audit
from app.core.verdict import Expansion, LoggedVerdict
from app.storage.database import Reader, Writer
from app.storage.log.days import DAY
from app.storage.log.verdicts import expansions_of, verdict_of, written
from app.storage.parameters import Documents, integers

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An accepted verdict and what became of it."""

    id: int
    query_id: UUID
    idempotency_key: str
    body_hash: bytes
    judge: str
    status: str
    attempts: int
    error: str | None
    received_at: datetime
    applied_at: datetime | None
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """A locked event with what its application needs of the episode.

    ``day`` it came on (UTC), as 2026-05-01. ``filter`` is read where it is needed: for an event with expansions.
    """

    id: int
    judge: str
    day: str
    verdict: LoggedVerdict
    question: str
    profile: str
    filter: dict[str, Any] | None
    embedding: Vector
    time_embedding: Vector | None
    activated: list[int]
    ranked: list[int] | None
    features: NDArray[np.float32] | None


_COLUMNS = """
    id, episode_id, idempotency_key, body_hash, judge, status, attempts, error, received_at, applied_at, revoked_at
"""
_SELECT = f"SELECT {_COLUMNS} FROM feedback_event"


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A verdict to append to the log of the collection of this name.

    ``sentences``, distinct, must exist for that; those of whom it is known are left out.
    """

    collection: str
    query_id: UUID
    idempotency_key: str
    body_hash: bytes
    judge: str
    verdict: LoggedVerdict
    sentences: Sequence[int]


def accept(writer: Writer, events: Sequence[NewEvent]) -> list[tuple[int, StoredEvent] | None]:
    """Append events, in one statement; of each its collection and itself as it is stored.

    None for one that cannot be appended: the key was used before, there is no such collection or episode, not each
    of its sentences exists, or, of several events, its collection is held by somebody who may delete it. Keys are
    taken in order, so that whoever waits for a key holds none but earlier ones.
    """
    named = [(at, sentence) for at, event in enumerate(events, start=1) for sentence in event.sentences]
    rows = writer.rows(
        f"""
        WITH c AS MATERIALIZED ( -- before any row in it, as collections.keep says
            SELECT id, name FROM collection WHERE name = ANY(%(collections)s) ORDER BY id
            FOR KEY SHARE {"SKIP LOCKED" if len(events) > 1 else ""}
        )
        INSERT INTO feedback_event (collection_id, episode_id, idempotency_key, body_hash, judge, verdict)
        SELECT c.id, new.episode, new.key, new.hash, new.judge, new.verdict
        FROM unnest(%(collections)s::text[], %(episodes)s::uuid[], %(keys)s::text[], %(hashes)s::bytea[],
                    %(judges)s::text[], %(verdicts)s::jsonb[])
            WITH ORDINALITY AS new(collection, episode, key, hash, judge, verdict, n)
        JOIN c ON c.name = new.collection
        WHERE EXISTS (SELECT FROM episode WHERE collection_id = c.id AND id = new.episode)
          AND NOT EXISTS (
              SELECT FROM unnest(%(places)s::bigint[], %(sentences)s::bigint[]) AS named(n, id)
              WHERE named.n = new.n
                AND (SELECT s.id FROM sentence s WHERE s.collection_id = c.id AND s.id = named.id) IS NULL
          )
        ORDER BY c.id, new.key, new.n
        ON CONFLICT (collection_id, idempotency_key) DO NOTHING
        RETURNING (SELECT name FROM collection WHERE id = collection_id), collection_id, {_COLUMNS}
        """,
        {
            "collections": [event.collection for event in events],
            "episodes": [event.query_id for event in events],
            "keys": [event.idempotency_key for event in events],
            "hashes": [event.body_hash for event in events],
            "judges": [event.judge for event in events],
            "verdicts": Documents([written(event.verdict) for event in events]),
            "places": integers(at for at, _ in named),
            "sentences": integers(sentence for _, sentence in named),
        },
    )
    stored = {(row[0], row[4]): (row[1], StoredEvent(*row[2:])) for row in rows}
    # Of several with one key one was stored, and the others will meet it.
    return [stored.pop((event.collection, event.idempotency_key), None) for event in events]


@dataclass(frozen=True, slots=True)
class Arrival:
    """What a verdict meets when it arrives: its collection, the event first accepted under its key, its episode."""

    collection_id: int
    first: StoredEvent | None
    has_episode: bool


def arrival(reader: Reader, collection: str, key: str, episode: UUID) -> Arrival | None:
    """What a verdict meets, in one statement; None if there is no such collection."""
    row = reader.row(
        f"""
        SELECT c.id, event.*, EXISTS (SELECT FROM episode WHERE collection_id = c.id AND id = %(episode)s)
        FROM collection c LEFT JOIN LATERAL (
            {_SELECT} WHERE collection_id = c.id AND idempotency_key = %(key)s
        ) AS event ON true
        WHERE c.name = %(name)s
        """,
        {"name": collection, "key": key, "episode": episode},
    )
    if row is None:
        return None
    return Arrival(row[0], None if row[1] is None else StoredEvent(*row[1:12]), row[12])


def by_key(reader: Reader, collection_id: int, key: str) -> StoredEvent | None:
    """The event accepted under this Idempotency-Key, or None."""
    row = reader.row(
        f"{_SELECT} WHERE collection_id = %(collection)s AND idempotency_key = %(key)s",
        {"collection": collection_id, "key": key},
    )
    return None if row is None else StoredEvent(*row)


def find(reader: Reader, collection_id: int, event: int) -> StoredEvent | None:
    """The event, or None."""
    row = reader.row(
        f"{_SELECT} WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": event},
    )
    return None if row is None else StoredEvent(*row)


def verdict(reader: Reader, collection_id: int, event: int) -> LoggedVerdict:
    """What the event says; there is such an event."""
    return verdict_of(
        reader.scalar(
            "SELECT verdict FROM feedback_event WHERE collection_id = %(collection)s AND id = %(id)s",
            {"collection": collection_id, "id": event},
        )
    )


def page(reader: Reader, collection_id: int, *, status: str | None, after: int, limit: int) -> list[StoredEvent]:
    """Events in order of acceptance, those after event ``after``."""
    rows = reader.rows(
        f"""
        {_SELECT} WHERE collection_id = %(collection)s AND id > %(after)s
          AND (%(status)s::text IS NULL OR status = %(status)s)
        ORDER BY id LIMIT %(limit)s
        """,
        {"collection": collection_id, "status": status, "after": after, "limit": limit},
    )
    return [StoredEvent(*row) for row in rows]


def audit(reader: Reader, collection_id: int, event: int) -> list[Audit]:
    """What the event did, sentence by sentence."""
    rows = reader.rows(
        """
        SELECT event_id, sentence_id, channel, target, observation_noise, gain, residual, perplexity_before,
               perplexity_after, process_noise
        FROM memory_audit WHERE collection_id = %(collection)s AND event_id = %(event)s
        ORDER BY sentence_id, channel
        """,
        {"collection": collection_id, "event": event},
    )
    return [Audit(*row) for row in rows]


def lock_pending(writer: Writer, collection_id: int, events: Sequence[int]) -> list[PendingEvent]:
    """Those of the events that still wait, locked, in order of acceptance; others' locks are stepped over."""
    rows = writer.rows(
        f"""
        SELECT event.id, event.judge, {DAY} AS day,
               event.verdict, e.question, e.profile, e.embedding, e.time_embedding, e.activated, e.ranked,
               e.features,
               CASE WHEN jsonb_array_length(event.verdict -> 'expansions') > 0 THEN e.answer -> 'filter' END
                   AS filter
        FROM feedback_event event
        JOIN episode e ON e.collection_id = event.collection_id AND e.id = event.episode_id
        WHERE event.collection_id = %(collection)s AND event.id = ANY(%(ids)s) AND event.status = 'pending'
        ORDER BY event.id FOR UPDATE OF event SKIP LOCKED
        """,
        {"collection": collection_id, "ids": sorted(events)},
    )
    return [
        PendingEvent(
            row.id,
            row.judge,
            row.day,
            verdict_of(row.verdict),
            row.question,
            row.profile,
            row.filter,
            row.embedding.to_numpy(),
            None if row.time_embedding is None else row.time_embedding.to_numpy(),
            row.activated,
            row.ranked,
            None if not row.ranked else np.frombuffer(row.features, dtype="<f4").reshape(len(row.ranked), -1),
        )
        for row in rows
    ]


def expansions(reader: Reader, collection_id: int, events: Sequence[int]) -> list[tuple[Expansion, ...]]:
    """The expansions that each of these events carries, of those that wait and carry any."""
    rows = reader.rows(
        """
        SELECT verdict -> 'expansions' FROM feedback_event
        WHERE collection_id = %(collection)s AND id = ANY(%(ids)s) AND status = 'pending'
          AND jsonb_array_length(verdict -> 'expansions') > 0
        ORDER BY id
        """,
        {"collection": collection_id, "ids": list(events)},
    )
    return [expansions_of(row[0]) for row in rows]


def mark_applied(
    writer: Writer,
    collection_id: int,
    questions: Mapping[int, int],
    constants: Mapping[int, Mapping[str, float | int | None]],
) -> None:
    """The events took effect in this transaction, in the given order.

    The sequence is drawn after all locks are held, so it orders any two events that touch the same state.

    Args:
        questions: event -> the question that it taught.
        constants: event -> by which noises and caps it was applied.
    """
    writer.execute(
        """
        UPDATE feedback_event SET status = 'applied', applied_at = now(), error = NULL,
            applied_sequence = drawn.sequence, question_id = drawn.question, constants = drawn.constants
        FROM (
            SELECT id, question, constants, nextval('feedback_applied') AS sequence
            FROM unnest(%(ids)s::bigint[], %(questions)s::bigint[], %(constants)s::jsonb[])
                WITH ORDINALITY AS event(id, question, constants, n)
            ORDER BY n
        ) AS drawn
        WHERE collection_id = %(collection)s AND feedback_event.id = drawn.id
        """,
        {
            "collection": collection_id,
            "ids": list(questions),
            "questions": list(questions.values()),
            "constants": Documents([constants[event] for event in questions]),
        },
    )


def lock_standing(writer: Writer, collection_id: int, events: Sequence[int]) -> dict[int, str]:
    """Event -> status, of those that are not revoked, locked in order of acceptance, each waited for.

    Called under ``collections.lock_learning``: no worker that holds an event needs what this transaction holds.
    """
    rows = writer.rows(
        """
        SELECT id, status FROM feedback_event
        WHERE collection_id = %(collection)s AND id = ANY(%(ids)s) AND status <> 'revoked'
        ORDER BY id FOR UPDATE
        """,
        {"collection": collection_id, "ids": sorted(events)},
    )
    return {row[0]: row[1] for row in rows}


def mark_revoked(writer: Writer, collection_id: int, events: Sequence[int]) -> None:
    """The locked events count no more; they stay in the log with their verdicts."""
    writer.execute(
        """
        UPDATE feedback_event SET status = 'revoked', revoked_at = now()
        WHERE collection_id = %(collection)s AND id = ANY(%(ids)s)
        """,
        {"collection": collection_id, "ids": list(events)},
    )


def record_failure(writer: Writer, collection_id: int, event: int, error: str, max_attempts: int) -> bool:
    """Note a failed try; whether it was the last one, which parks the event, so that it holds nobody else back."""
    status = writer.scalar(
        """
        UPDATE feedback_event SET attempts = attempts + 1, error = %(error)s,
            status = CASE WHEN attempts + 1 >= %(max)s THEN 'parked' ELSE status END
        WHERE collection_id = %(collection)s AND id = %(id)s AND status = 'pending' RETURNING status
        """,
        {"collection": collection_id, "id": event, "error": error, "max": max_attempts},
    )
    return bool(status == "parked")


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
    return sorted(row[0] for row in rows)


def overdue(reader: Reader, age_seconds: float, limit: int) -> list[tuple[int, int]]:
    """(collection, event) that have waited longer than ``age_seconds``: their wake-up was lost."""
    rows = reader.rows(
        """
        SELECT collection_id, id FROM feedback_event
        WHERE status = 'pending' AND received_at < now() - make_interval(secs => %(age)s)
        ORDER BY received_at LIMIT %(limit)s
        """,
        {"age": age_seconds, "limit": limit},
    )
    return [(row[0], row[1]) for row in rows]
