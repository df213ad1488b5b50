"""Rows beside the log that name a person: keys of writes, acts, quotas, jobs; and receipts of erasures."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote
from uuid import UUID

from psycopg.types.json import Jsonb

from engram.storage.database import Reader, Writer
from engram.storage.erasure.erased_log import Selection
from engram.storage.tables.table_base import NOBODY

_FIXED_FIELDS = "ARRAY['kind', 'key_building', 'stop_reason']"
"""Fields of payloads and results whose values are words of Engram's own, which name nobody."""
_VALUES_OF_TARGET = r"""
    CASE
        WHEN action IN ('clear wing', 'maintain') THEN ''
        WHEN action LIKE '%% key' THEN regexp_replace(target, '^(.*) of [^ ]+(: .*)?$', '\1')
        ELSE regexp_replace(
            regexp_replace(
                target, '^/(?:collections(/[^/?]+)(?:/[^/?]+)?|(?:access/)?[^/?]+(/[^/?]+)?(?:/[^/?]+)?)', '\1\2'
            ),
            '[?&][^=&]+=', ' ', 'g'
        )
    END
"""
"""The target of an act without words of Engram's own: of routes, parameters, scopes and wings. They name nobody."""
_VALUES_OF_BODY = r"""regexp_replace(body, '"scopes"\s*:\s*\{[^}]*|"[a-z_]+"\s*:', ' ', 'g')"""
"""The body of an act without the names of its fields and a key's scopes, which name nobody."""


def delete_traces(writer: Writer, collection_id: int, tenant: str, selection: Selection) -> dict[str, int]:
    """Delete what names the person, or came in the span; table -> rows. Acts stay, without who, where and what.

    Args:
        tenant: whose acts and quotas are looked at.
    """
    parameters = selection.parameters(collection_id) | {"tenant": tenant, "nobody": NOBODY}
    removed: dict[str, int] = {}
    if selection.kind == "principal":
        owned = "principal = %(name)s"
        removed["quota_usage"] = writer.execute(
            f"DELETE FROM quota_usage WHERE tenant = %(tenant)s AND {owned}", parameters
        )
        removed["access_key"] = writer.execute(
            """
            UPDATE access_key SET name = %(nobody)s || '-' || id, judge = %(nobody)s || '-' || id
            WHERE tenant = %(tenant)s AND name = %(name)s
            """,
            parameters,
        )
    elif selection.kind == "span":
        owned = selection.during("created_at")
    else:
        owned = "false"
    removed["idempotency"] = writer.execute(
        f"DELETE FROM idempotency WHERE collection_id = %(collection)s AND {owned}", parameters
    )
    if selection.kind == "query":
        spelled = [str(query) for query in selection.queries]
    else:
        spelled = [] if selection.name is None else [selection.name]
    words = "|".join(
        {re.escape(form) for word in spelled for form in (word, quote(word, safe=""), json.dumps(word)[1:-1])}
    )
    named = {"pattern": rf"(^|[^[:alnum:]_]){_to_postgres(words)}($|[^[:alnum:]_])", "words": bool(words)}
    acted = selection.during("begun_at") if selection.kind == "span" else "principal = %(name)s"
    removed["audit_log"] = writer.execute(
        f"""
        UPDATE audit_log SET principal = CASE WHEN {acted} THEN %(nobody)s ELSE principal END, client = NULL,
            request_id = NULL, body = NULL,
            target = CASE WHEN action IN ('backup', 'restore') THEN target ELSE %(nobody)s END
        WHERE tenant = %(tenant)s AND target <> %(nobody)s AND ({acted} OR (
            %(words)s AND concat_ws(' ', {_VALUES_OF_TARGET}, {_VALUES_OF_BODY}) ~ %(pattern)s
        ))
        """,
        parameters | named,
    )
    removed["job"] = writer.execute(
        f"""
        UPDATE job SET payload = '{{"erased": true}}', result = NULL, error = NULL
        WHERE collection_id = %(collection)s AND status NOT IN ('receiving', 'queued', 'running') AND %(words)s
          AND ({_texts_of("payload")} ~ %(pattern)s OR {_texts_of("result")} ~ %(pattern)s OR error ~ %(pattern)s)
        """,
        parameters | named,
    )
    return removed


def _texts_of(column: str) -> str:
    """Return the texts in a JSON column without the names of its fields, which name nobody."""
    return f"""jsonb_path_query_array({column} - {_FIXED_FIELDS}, '$.** ? (@.type() == "string")')::text"""


def _to_postgres(words: str) -> str:
    return f"({words})" if words else "$^"


def has_live_key(reader: Reader, tenant: str, name: str) -> bool:
    """Whether the principal has an access key that still counts."""
    found: bool = reader.scalar(
        """
        SELECT EXISTS (
            SELECT FROM access_key WHERE tenant = %(tenant)s AND name = %(name)s AND revoked_at IS NULL
              AND (expires_at IS NULL OR expires_at > now())
        )
        """,
        {"tenant": tenant, "name": name},
    )
    return found


@dataclass(frozen=True, slots=True)
class ErasureReceipt:
    """Receipt of an erasure, without personal data: see table ``erasure``."""

    id: UUID
    kind: str
    salt: bytes | None
    digest: bytes | None
    queries: list[UUID]
    since: datetime | None
    before: datetime | None
    anonymised: bool
    removed: Mapping[str, int]
    backups: list[Mapping[str, str]]
    erased_at: datetime


def add_receipt(
    writer: Writer,
    collection_id: int,
    job: UUID,
    selection: Selection,
    *,
    salt: bytes | None,
    digest: bytes | None,
    anonymised: bool,
    removed: Mapping[str, int],
) -> None:
    """Store the receipt, with the backups that were made before, and take the names out of the job."""
    parameters: dict[str, Any] = selection.parameters(collection_id) | {
        "job": job,
        "kind": selection.kind,
        "salt": salt,
        "digest": digest,
        "anonymised": anonymised,
        "removed": Jsonb(dict(removed)),
    }
    writer.execute(
        """
        INSERT INTO erasure (collection_id, id, kind, salt, digest, queries, since, before, anonymised, removed,
                             backups)
        SELECT %(collection)s, %(job)s, %(kind)s, %(salt)s, %(digest)s, %(queries)s::uuid[], %(since)s, %(before)s,
               %(anonymised)s, %(removed)s, coalesce((
                   SELECT jsonb_agg(jsonb_build_object('folder', target, 'made_at', begun_at) ORDER BY id)
                   FROM audit_log WHERE action = 'backup' AND status < 400
               ), '[]')
        ON CONFLICT (collection_id, id) DO NOTHING
        """,
        parameters,
    )
    forget_payload(writer, collection_id, job)


def forget_payload(writer: Writer, collection_id: int, job: UUID) -> None:
    """Take the name out of the job of an erasure."""
    writer.execute(
        """
        UPDATE job SET payload = jsonb_set('{}', '{kind}', coalesce(payload -> 'kind', 'null'))
        WHERE collection_id = %(collection)s AND id = %(id)s
        """,
        {"collection": collection_id, "id": job},
    )


def list_all_receipts(reader: Reader) -> dict[tuple[str, str], list[ErasureReceipt]]:
    """(Tenant, collection) -> its receipts, of the collections that have any."""
    rows = reader.rows(
        """
        SELECT id, tenant, name FROM collection
        WHERE EXISTS (SELECT FROM erasure WHERE erasure.collection_id = collection.id) ORDER BY id
        """
    )
    return {(row.tenant, row.name): list_receipts(reader, row.id) for row in rows}


def list_receipts(reader: Reader, collection_id: int) -> list[ErasureReceipt]:
    """The receipts of a collection, oldest first."""
    rows = reader.rows(
        """
        SELECT id, kind, salt, digest, queries, since, before, anonymised, removed, backups, erased_at
        FROM erasure WHERE collection_id = %(collection)s ORDER BY erased_at, id
        """,
        {"collection": collection_id},
    )
    return [ErasureReceipt(**row._asdict()) for row in rows]
