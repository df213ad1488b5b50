"""Reading when documents hold and which replace others, and linking them into chains of versions."""

from engram.core.text.document_versions import DocumentClaims, link_versions, read_claims
from engram.storage.corpus import document_versions
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.document_versions import WrittenDocument
from engram.storage.database import Writer
from engram.storage.jobs.jobs import Job


def read_written(writer: Writer, job: Job) -> None:
    """Read what the documents of an ingest job say of themselves, and link the collection's documents anew."""
    written = document_versions.list_written(writer, job.collection_id, job.id)
    with writer.ahead():
        for document in written:
            claims = _read(document, document.source)
            document_versions.store_claims(writer, job.collection_id, document.id, document.title, claims)
    if written:
        relink(writer, job.collection_id)


def read_renamed(writer: Writer, collection: Collection, document_id: int, before: str) -> None:
    """Read what a document says of itself under its new name, which may date it.

    Args:
        before: its earlier name.
    """
    document = document_versions.find_written(writer, collection.id, document_id)
    if document is None:
        return
    claims = _read(document, document.source)
    is_other = claims != _read(document, before)
    if is_other:
        document_versions.store_claims(writer, collection.id, document.id, document.title, claims)
    if is_other or collection.has_versions:
        relink(writer, collection.id)


def relink(writer: Writer, collection_id: int) -> None:
    """Link the documents of a collection into chains of versions."""
    documents = document_versions.list_all(writer, collection_id)
    document_versions.store_places(writer, collection_id, documents, link_versions(documents))


def _read(document: WrittenDocument, source: str) -> DocumentClaims:
    return read_claims(source, document.title, document.metadata, document.text, document.language)
