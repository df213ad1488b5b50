"""Documents of an ingest: those that the job has whole, and those that their importer no longer has."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from engram.storage.corpus.documents import DocumentDescription
from engram.storage.database import Reader, Writer


@dataclass(frozen=True, slots=True)
class StagedDocument:
    """A document that a job has whole.

    Attributes:
        missing: the importer no longer has it. It stays, unless another document of the job is its new version.
    """

    description: DocumentDescription
    missing: bool = False

    @property
    def source(self) -> str:
        """The document's name."""
        return self.description.source


def add(writer: Writer, collection_id: int, job: UUID, documents: Sequence[Mapping[str, Any]]) -> None:
    """Stage documents, each with the fields of ``DocumentDescription`` and ``missing``.

    Of two with one source the later one counts.
    """
    by_source = {document["source"]: dict(document) for document in documents}
    if not by_source:
        return
    writer.execute(
        """
        INSERT INTO ingest_document (collection_id, job_id, source, missing, description)
        SELECT %(collection)s, %(job)s, row.*
        FROM unnest(%(sources)s::text[], %(missing)s::bool[], %(descriptions)s::jsonb[]) AS row
        ON CONFLICT (collection_id, job_id, source) DO UPDATE SET
            missing = excluded.missing, description = excluded.description
        """,
        {
            "collection": collection_id,
            "job": job,
            "sources": list(by_source),
            "missing": [document.pop("missing") for document in by_source.values()],
            "descriptions": [Jsonb(document) for document in by_source.values()],
        },
    )


def forget_digests(writer: Writer, collection_id: int, job: UUID, sources: Sequence[str]) -> None:
    """Forget the hashes of documents that did not come whole, so that their importer sends them again."""
    writer.execute(
        """
        UPDATE ingest_document SET description = jsonb_set(description, '{digest}', 'null')
        WHERE collection_id = %(collection)s AND job_id = %(job)s AND source = ANY(%(sources)s::text[])
        """,
        {"collection": collection_id, "job": job, "sources": list(sources)},
    )


def list_all(reader: Reader, collection_id: int, job: UUID) -> list[StagedDocument]:
    """The documents that the job has not taken yet, in the order of their sources."""
    rows = reader.rows(
        """
        SELECT description, missing FROM ingest_document
        WHERE collection_id = %(collection)s AND job_id = %(job)s ORDER BY source
        """,
        {"collection": collection_id, "job": job},
    )
    return [StagedDocument(DocumentDescription(**row.description), row.missing) for row in rows]


def take(writer: Writer, collection_id: int, job: UUID, sources: Sequence[str] | None = None) -> None:
    """Take documents off the job: all of them without ``sources``."""
    writer.execute(
        """
        DELETE FROM ingest_document WHERE collection_id = %(collection)s AND job_id = %(job)s
          AND (%(sources)s::text[] IS NULL OR source = ANY(%(sources)s::text[]))
        """,
        {"collection": collection_id, "job": job, "sources": None if sources is None else list(sources)},
    )
