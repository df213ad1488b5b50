"""Access keys: what is known of each but the key itself."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb

from engram.storage.database import Reader, Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """A key to store.

    Attributes:
        name: of its principal, in the tenant.
        judge: whose verdicts come with it.
        trusted: whether that judge counts in full from the first verdict on.
        digest: SHA-256 of the key, 32 bytes.
        hint: its last characters.
        scopes: collection, or "*" -> what is allowed there.
        llm_tokens: what a day's calls of a language model may read and write; None: any number.
        expires_at: from when on it does not count; None: never.
        reads_as: what it is among the readers of passages.
    """

    tenant: str
    name: str
    judge: str
    trusted: bool
    digest: bytes
    hint: str
    scopes: Mapping[str, Any]
    llm_tokens: int | None
    expires_at: datetime | None
    reads_as: Sequence[str]


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A key as it is known; see ``NewKey``."""

    id: int
    tenant: str
    name: str
    judge: str
    trusted: bool
    hint: str
    scopes: dict[str, list[str]]
    llm_tokens: int | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    reads_as: list[str]


_COLUMNS = (
    "id, tenant, name, judge, trusted, hint, scopes, llm_tokens, created_at, expires_at, revoked_at, reads_as"
)
_COUNTS = "revoked_at IS NULL AND (expires_at IS NULL OR expires_at > now())"


def insert(writer: Writer, key: NewKey) -> StoredKey:
    """Store a key.

    Raises:
        NotFoundError: there is no such tenant.
    """
    row = writer.row(
        f"""
        INSERT INTO access_key (tenant, name, judge, trusted, digest, hint, scopes, llm_tokens, expires_at,
                                reads_as)
        VALUES (%(tenant)s, %(name)s, %(judge)s, %(trusted)s, %(digest)s, %(hint)s, %(scopes)s, %(llm_tokens)s,
                %(expires_at)s, %(reads_as)s)
        RETURNING {_COLUMNS}
        """,
        asdict(key) | {"scopes": Jsonb(dict(key.scopes)), "reads_as": list(key.reads_as)},
    )
    return StoredKey(**row._asdict())


def find_counting(reader: Reader, digest: bytes) -> StoredKey | None:
    """The key of this digest, if it counts now."""
    row = reader.row(
        f"SELECT {_COLUMNS} FROM access_key WHERE digest = %(digest)s AND {_COUNTS}", {"digest": digest}
    )
    return None if row is None else StoredKey(**row._asdict())


def has_counting_key(reader: Reader) -> bool:
    """Whether any key counts now."""
    return bool(reader.scalar(f"SELECT EXISTS (SELECT FROM access_key WHERE {_COUNTS})"))


def find(reader: Reader, tenant: str, key: int) -> StoredKey | None:
    """The tenant's key of this id, whether or not it counts."""
    row = reader.row(
        f"SELECT {_COLUMNS} FROM access_key WHERE tenant = %(tenant)s AND id = %(id)s",
        {"tenant": tenant, "id": key},
    )
    return None if row is None else StoredKey(**row._asdict())


def is_judge_name_taken(reader: Reader, tenant: str, judge: str, name: str) -> bool:
    """Whether a key of another principal judges under this name."""
    return bool(
        reader.scalar(
            """
            SELECT EXISTS (
                SELECT FROM access_key WHERE tenant = %(tenant)s AND judge = %(judge)s AND name <> %(name)s
            )
            """,
            {"tenant": tenant, "judge": judge, "name": name},
        )
    )


def page(reader: Reader, tenant: str, after: int, limit: int) -> list[StoredKey]:
    """The tenant's keys in the order in which they were made, those after ``after``."""
    rows = reader.rows(
        f"""
        SELECT {_COLUMNS} FROM access_key WHERE tenant = %(tenant)s AND id > %(after)s ORDER BY id LIMIT %(limit)s
        """,
        {"tenant": tenant, "after": after, "limit": limit},
    )
    return [StoredKey(**row._asdict()) for row in rows]


def revoke(writer: Writer, tenant: str, key: int) -> StoredKey | None:
    """Have the key count no more; when it was revoked first stays."""
    row = writer.row(
        f"""
        UPDATE access_key SET revoked_at = now()
        WHERE tenant = %(tenant)s AND id = %(id)s AND revoked_at IS NULL RETURNING {_COLUMNS}
        """,
        {"tenant": tenant, "id": key},
    )
    return find(writer, tenant, key) if row is None else StoredKey(**row._asdict())


def expire(writer: Writer, key: int, seconds: float) -> None:
    """Have the key count for so many seconds more at most."""
    writer.execute(
        """
        UPDATE access_key SET expires_at = least(expires_at, now() + make_interval(secs => %(seconds)s))
        WHERE id = %(id)s
        """,
        {"id": key, "seconds": seconds},
    )
