"""Lines of an ingest: accepted ones wait in Postgres and leave in the transaction that ingests them."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from engram.core.text.sizes import count_fitting
from engram.storage.database import Reader, Writer

PAGE = 16
"""Lines that are read at once: each may have 4 MiB."""


def add(
    writer: Writer,
    collection_id: int,
    job: UUID,
    lines: Sequence[tuple[int, Mapping[str, Any]]],
    errors: Sequence[tuple[int, str]],
) -> None:
    """Stage accepted lines and record rejected ones with their reasons."""
    parameters = {"collection": collection_id, "job": job}
    if lines:
        writer.execute(
            """
            INSERT INTO ingest_line (collection_id, job_id, line, passage, document)
            SELECT %(collection)s, %(job)s, row.*
            FROM unnest(%(lines)s::bigint[], %(passages)s::jsonb[], %(documents)s::text[]) AS row
            """,
            parameters
            | {
                "lines": [line for line, _ in lines],
                "passages": [Jsonb(dict(body)) for _, body in lines],
                "documents": [body.get("document") for _, body in lines],
            },
        )
    if errors:
        writer.execute(
            """
            INSERT INTO ingest_error (collection_id, job_id, line, reason)
            SELECT %(collection)s, %(job)s, row.* FROM unnest(%(lines)s::bigint[], %(reasons)s::text[]) AS row
            """,
            parameters | {"lines": [line for line, _ in errors], "reasons": [reason for _, reason in errors]},
        )


def list_next(
    reader: Reader, collection_id: int, job: UUID, after: int, limit: int, characters: int
) -> list[tuple[int, dict[str, Any]]]:
    """The next staged lines after line ``after``, in line order: with ``characters`` in all at most, or one."""
    lines: list[tuple[int, dict[str, Any]]] = []
    sizes: list[int] = []
    while len(lines) < limit and count_fitting(sizes, characters) == len(sizes):
        rows = reader.rows(
            """
            SELECT line, passage, length(passage::text) AS size FROM ingest_line
            WHERE collection_id = %(collection)s AND job_id = %(job)s AND line > %(after)s
            ORDER BY line LIMIT %(limit)s
            """,
            {
                "collection": collection_id,
                "job": job,
                "after": lines[-1][0] if lines else after,
                "limit": min(PAGE, limit - len(lines)),
            },
        )
        lines += [(row.line, row.passage) for row in rows]
        sizes += [row.size for row in rows]
        if len(rows) < PAGE:
            break
    return lines[: count_fitting(sizes, characters)]


def sample(
    reader: Reader, collection_id: int, job: UUID, limit: int, characters: int
) -> list[tuple[str | None, str]]:
    """Title and text of at most ``limit`` evenly spaced lines of a job; texts are cut at ``characters``.

    Each line is looked up by itself: a job may have more lines than one statement has the time to read.
    """
    rows = reader.rows(
        """
        SELECT l.passage ->> 'title' AS title, left(l.passage ->> 'text', %(characters)s) AS text
        FROM (
            SELECT line AS first FROM ingest_line
            WHERE collection_id = %(collection)s AND job_id = %(job)s ORDER BY line LIMIT 1
        ) AS head
        CROSS JOIN (
            SELECT line AS last FROM ingest_line
            WHERE collection_id = %(collection)s AND job_id = %(job)s ORDER BY line DESC LIMIT 1
        ) AS tail
        CROSS JOIN LATERAL (SELECT (last - first) / %(limit)s + 1 AS step) AS spacing
        CROSS JOIN generate_series(0, %(limit)s - 1) AS place
        CROSS JOIN LATERAL (
            SELECT line, passage FROM ingest_line
            WHERE collection_id = %(collection)s AND job_id = %(job)s
              AND line >= first + step * place AND line < first + step * (place + 1)
            ORDER BY line LIMIT 1
        ) AS l
        ORDER BY l.line
        """,
        {"collection": collection_id, "job": job, "limit": limit, "characters": characters},
    )
    return [(row.title, row.text) for row in rows]


def list_of_document(
    reader: Reader, collection_id: int, job: UUID, document: str, after: int, limit: int
) -> list[tuple[int, dict[str, Any]]]:
    """The next staged lines of a document after line ``after``, in line order."""
    rows = reader.rows(
        """
        SELECT line, passage FROM ingest_line
        WHERE collection_id = %(collection)s AND job_id = %(job)s AND document = %(document)s AND line > %(after)s
        ORDER BY line LIMIT %(limit)s
        """,
        {"collection": collection_id, "job": job, "document": document, "after": after, "limit": limit},
    )
    return [(row.line, row.passage) for row in rows]


def set_readers(
    writer: Writer, collection_id: int, job: UUID, external_ids: Sequence[str], readers: Sequence[str]
) -> None:
    """Give these readers to the staged passages with these ids that name none themselves."""
    writer.execute(
        """
        UPDATE ingest_line SET passage = passage || %(readers)s
        WHERE collection_id = %(collection)s AND job_id = %(job)s AND passage ->> 'id' = ANY(%(ids)s::text[])
          AND NOT passage ? 'readers'
        """,
        {
            "collection": collection_id,
            "job": job,
            "ids": list(external_ids),
            "readers": Jsonb({"readers": list(readers)}),
        },
    )


def take(writer: Writer, collection_id: int, job: UUID, lines: Sequence[int]) -> None:
    """Take ingested lines off the job, in the transaction that ingested them."""
    writer.execute(
        """
        DELETE FROM ingest_line
        WHERE collection_id = %(collection)s AND job_id = %(job)s AND line = ANY(%(lines)s)
        """,
        {"collection": collection_id, "job": job, "lines": list(lines)},
    )


def let_go(writer: Writer, collection_id: int, job: UUID) -> None:
    """Forget the lines of a job that ended before it came to them."""
    writer.execute(
        "DELETE FROM ingest_line WHERE collection_id = %(collection)s AND job_id = %(job)s",
        {"collection": collection_id, "job": job},
    )


def errors(reader: Reader, collection_id: int, job: UUID, after: int, limit: int) -> list[tuple[int, str]]:
    """(line, reason) of rejected lines, in line order, those after line ``after``."""
    rows = reader.rows(
        """
        SELECT line, reason FROM ingest_error
        WHERE collection_id = %(collection)s AND job_id = %(job)s AND line > %(after)s
        ORDER BY line LIMIT %(limit)s
        """,
        {"collection": collection_id, "job": job, "after": after, "limit": limit},
    )
    return [(row.line, row.reason) for row in rows]
