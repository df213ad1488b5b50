"""First answers of keyed writes, replayed when the same principal sends the same request again: a key of another
tells nothing."""

from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from engram.context.errors import IdempotencyConflictError
from engram.storage.database import Reader, Writer


def find_first_answer(
    reader: Reader, collection_id: int, principal: str, key: str, body_hash: bytes
) -> dict[str, Any] | None:
    """Return the answer to the principal's first request with this key; None if there was none.

    Raises:
        IdempotencyConflictError: the first request had another body.
    """
    row = reader.row(
        """
        SELECT body_hash, answer FROM idempotency
        WHERE collection_id = %(collection)s AND principal = %(principal)s AND key = %(key)s
        """,
        {"collection": collection_id, "principal": principal, "key": key},
    )
    if row is None:
        return None
    if row.body_hash != body_hash:
        raise IdempotencyConflictError(f"Idempotency-Key {key!r} was used before with another body.")
    answer: dict[str, Any] = row.answer
    return answer


def remember(
    writer: Writer, collection_id: int, principal: str, key: str, body_hash: bytes, answer: dict[str, Any]
) -> bool:
    """Keep the answer, in the transaction of the write; False if another request was first."""
    return (
        writer.execute(
            """
            INSERT INTO idempotency (collection_id, principal, key, body_hash, answer)
            VALUES (%(collection)s, %(principal)s, %(key)s, %(hash)s, %(answer)s) ON CONFLICT DO NOTHING
            """,
            {
                "collection": collection_id,
                "principal": principal,
                "key": key,
                "hash": body_hash,
                "answer": Jsonb(answer),
            },
        )
        > 0
    )


def delete_before(writer: Writer, moment: datetime, limit: int) -> int:
    """Forget first answers from before the moment, at most ``limit``; how many."""
    return writer.execute(
        """
        DELETE FROM idempotency WHERE (collection_id, principal, key) IN (
            SELECT collection_id, principal, key FROM idempotency WHERE created_at < %(moment)s LIMIT %(limit)s
        )
        """,
        {"moment": moment, "limit": limit},
    )
