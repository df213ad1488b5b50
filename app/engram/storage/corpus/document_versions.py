"""Dates and versions of documents, as they are stored."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from engram.core.ranking.version_order import PassageVersion, read_words
from engram.core.text.document_versions import (
    READ_CHARACTERS,
    DocumentClaims,
    VersionedDocument,
    VersionPlace,
)
from engram.storage.column_parameters import integers
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, alias_rows, join_by_index


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A document whose claims are to be read: its first passage's title, metadata and language, and its text."""

    id: int
    source: str
    title: str | None
    metadata: dict[str, Any]
    language: str
    text: str


def list_written(reader: Reader, collection_id: int, job: UUID) -> list[WrittenDocument]:
    """List the documents that a job wrote whole and those that were never read, with the text to read of each."""
    written = "d.writing_job = %(job)s OR cardinality(d.word_sketch) = 0"
    return _load(reader, written, {"collection": collection_id, "job": job})


def find_written(reader: Reader, collection_id: int, document_id: int) -> WrittenDocument | None:
    """Find a document with the text to read of it; None: it has no passages."""
    documents = _load(reader, "d.id = %(document)s", {"collection": collection_id, "document": document_id})
    return documents[0] if documents else None


def _load(reader: Reader, condition: str, parameters: Mapping[str, Any]) -> list[WrittenDocument]:
    rows = reader.rows(
        f"""
        SELECT d.id, d.source, f.title, f.metadata, f.language, left(f.text, {READ_CHARACTERS}) AS text
        FROM document d CROSS JOIN LATERAL (
            SELECT (array_agg(p.title ORDER BY p.id))[1] AS title,
                   (array_agg(p.metadata ORDER BY p.id))[1] AS metadata,
                   (array_agg(p.language ORDER BY p.id))[1] AS language,
                   string_agg(p.text, E'\\n' ORDER BY p.id) AS text
            FROM passage p WHERE p.collection_id = d.collection_id AND p.document_id = d.id
        ) AS f
        WHERE d.collection_id = %(collection)s AND f.text IS NOT NULL AND ({condition})
        """,
        parameters,
    )
    return [WrittenDocument(**row._asdict()) for row in rows]


def store_claims(
    writer: Writer, collection_id: int, document_id: int, title: str | None, claims: DocumentClaims
) -> None:
    """Store what a document says of itself; a date that a person said stays."""
    writer.execute(
        """
        UPDATE document SET
            valid_from = CASE WHEN dated_by = 'hand' THEN valid_from ELSE %(valid_from)s END,
            dated_by = CASE WHEN dated_by = 'hand' THEN dated_by ELSE %(dated_by)s END,
            valid_until = %(valid_until)s, status = %(status)s,
            version_key = %(key)s, title = %(title)s, word_sketch = %(sketch)s::bigint[],
            supersedes = %(supersedes)s::text[], superseded_by = %(superseded_by)s::text[]
        WHERE collection_id = %(collection)s AND id = %(id)s
        """,
        {
            "collection": collection_id,
            "id": document_id,
            "title": title,
            "valid_from": claims.valid_from,
            "dated_by": claims.dated_by,
            "valid_until": claims.valid_until,
            "status": claims.status,
            "key": claims.version_key,
            "sketch": list(claims.sketch),
            "supersedes": list(claims.supersedes),
            "superseded_by": list(claims.superseded_by),
        },
    )


def list_all(reader: Reader, collection_id: int) -> list[VersionedDocument]:
    """All documents of a collection, in id order."""
    rows = reader.rows(
        """
        SELECT d.id, d.source, d.title, d.valid_from, d.status, d.version_key, d.word_sketch, d.supersedes,
               d.superseded_by, d.replaced_by, d.replaced_origin
        FROM document d WHERE d.collection_id = %(collection)s ORDER BY d.id
        """,
        {"collection": collection_id},
    )
    return [
        VersionedDocument(
            row.id,
            row.source,
            row.title or "",
            DocumentClaims(
                valid_from=row.valid_from,
                status=row.status,
                version_key=row.version_key,
                sketch=tuple(row.word_sketch),
                supersedes=tuple(row.supersedes),
                superseded_by=tuple(row.superseded_by),
            ),
            is_fixed=row.replaced_origin == "hand",
            replaced_by=row.replaced_by,
        )
        for row in rows
    ]


def store_places(
    writer: Writer, collection_id: int, documents: Sequence[VersionedDocument], places: Mapping[int, VersionPlace]
) -> None:
    """Store where documents stand in chains of versions; those that stand in none leave theirs."""
    placed = [(one, places.get(one.id)) for one in documents]
    arrays = (
        "%(ids)s::bigint[], %(replaced)s::bigint[], %(origins)s::text[], %(chains)s::bigint[], %(steps)s::int[]"
    )
    rows = alias_rows(f"unnest({arrays}) AS given(id, replaced_by, replaced_origin, version_chain, version_steps)")
    writer.execute(
        f"""
        UPDATE document SET replaced_by = new.replaced_by, replaced_origin = new.replaced_origin,
            version_chain = new.version_chain, version_steps = new.version_steps
        FROM {rows}
        WHERE document.collection_id = new.collection_id AND document.id = new.id
          AND (document.replaced_by, document.replaced_origin, document.version_chain, document.version_steps)
              IS DISTINCT FROM (new.replaced_by, new.replaced_origin, new.version_chain, new.version_steps)
        """,
        {
            "collection": collection_id,
            "ids": [one.id for one, _ in placed],
            "replaced": [None if place is None else place.replaced_by for _, place in placed],
            "origins": [
                "hand" if one.is_fixed else None if place is None else place.origin for one, place in placed
            ],
            "chains": [None if place is None else place.chain for _, place in placed],
            "steps": [0 if place is None else place.steps for _, place in placed],
        },
    )
    writer.execute(
        """
        UPDATE collection SET has_versions = %(has)s WHERE id = %(collection)s AND has_versions <> %(has)s
        """,
        {"collection": collection_id, "has": bool(places)},
    )


def set_date(writer: Writer, collection_id: int, document_id: int, valid_from: date | None) -> None:
    """Store since when a document holds, as a person said it."""
    writer.execute(
        """
        UPDATE document SET valid_from = %(valid_from)s, dated_by = 'hand'
        WHERE collection_id = %(collection)s AND id = %(id)s
        """,
        {"collection": collection_id, "id": document_id, "valid_from": valid_from},
    )


def set_successor(writer: Writer, collection_id: int, document_id: int, replaced_by: int | None) -> None:
    """Store which document replaces another, or that none does, as a person said it."""
    writer.execute(
        """
        UPDATE document SET replaced_by = %(replaced_by)s, replaced_origin = 'hand'
        WHERE collection_id = %(collection)s AND id = %(id)s
        """,
        {"collection": collection_id, "id": document_id, "replaced_by": replaced_by},
    )


def load_chained(reader: Reader, collection_id: int, passages: Sequence[int]) -> dict[int, PassageVersion]:
    """Passage -> its version, for those of the passages whose documents are in a chain."""
    rows = reader.rows(
        f"""
        SELECT p.id, p.document_id, d.version_chain AS chain, d.version_steps AS steps, d.valid_from, d.valid_until,
               d.status,
               coalesce(
                   bool_or(d.replaced_origin IN ('statement', 'hand')) OVER (PARTITION BY d.version_chain), false
               ) AS is_stated, p.text
        FROM {WANTED_IDS} {join_by_index("passage p", "p.id = wanted.id")} CROSS JOIN LATERAL (
            SELECT d.id, d.version_chain, d.version_steps, d.valid_from, d.valid_until, d.status, d.replaced_origin
            FROM document d WHERE d.collection_id = %(collection)s AND d.id >= p.document_id ORDER BY d.id LIMIT 1
        ) AS d
        WHERE d.version_chain IS NOT NULL
        """,
        {"collection": collection_id, "ids": integers(passages)},
    )
    return {
        row.id: PassageVersion(
            row.document_id,
            row.chain,
            row.steps,
            row.valid_from,
            row.status,
            row.is_stated,
            read_words(row.text),
            row.valid_until,
        )
        for row in rows
    }


def load_dates(reader: Reader, collection_id: int, passages: Sequence[int]) -> dict[int, date]:
    """Passage -> since when its document holds, for those of which that is known."""
    rows = reader.rows(
        f"""
        SELECT p.id, d.valid_from
        FROM {WANTED_IDS} {join_by_index("passage p", "p.id = wanted.id")} CROSS JOIN LATERAL (
            SELECT d.valid_from FROM document d
            WHERE d.collection_id = %(collection)s AND d.id >= p.document_id ORDER BY d.id LIMIT 1
        ) AS d
        WHERE d.valid_from IS NOT NULL
        """,
        {"collection": collection_id, "ids": integers(passages)},
    )
    return {row.id: row.valid_from for row in rows}
