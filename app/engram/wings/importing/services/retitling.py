"""Documents whose title is the name of their file, moved to another name without the file."""

from collections.abc import Iterator, Sequence
from typing import Any

from engram.context.errors import NameTakenError
from engram.services.auth.scope import CollectionOpening, Scope
from engram.services.corpus.passage_intake import IngestService
from engram.storage.corpus import documents, passages
from engram.storage.corpus.documents import StoredDocument
from engram.storage.corpus.passages import StoredPassage
from engram.storage.database import Database
from engram.wings.importing.conversion.outline import stem

PASSAGES = 500
"""Passages that are read and staged at a time."""


def move_retitled(database: Database, ingest: IngestService, scope: Scope, before: str, source: str) -> None:
    """Begin a job that moves a document and makes its keys anew with the name of its file for a title.

    The job ingests the stored text as if the file had come again, so what was learned follows it.

    Raises:
        NameTakenError: another document has the new source.
        ConflictError: the caller does not see all of it.
    """
    collection = scope.collection
    with database.read() as reader:
        ids = documents.find_ids(reader, collection.id, [before, source])
        if source in ids or before not in ids:
            raise NameTakenError(f"A document has the name {source!r} already, or none has {before!r}.")
        (document,) = documents.page(reader, collection.id, None, 1, before)
        held = documents.list_passages(reader, collection.id, document.id)
    reception = ingest.receive(CollectionOpening(scope.principal, collection.name))
    described = [_describe(document, source), {"source": before, "missing": True, "digest": document.digest}]
    try:
        for start in range(0, len(held), PASSAGES):
            bodies = _read_bodies(database, collection.id, held[start : start + PASSAGES], before, source)
            reception.add(list(enumerate(bodies, start + 1)), [], described, whole=True)
            described = []
        reception.finish()
    except BaseException:
        reception.abort()
        raise


def _describe(document: StoredDocument, source: str) -> dict[str, Any]:
    notes = [note.replace(f"{document.source}:", f"{source}:", 1) for note in document.notes]
    return {
        "source": source,
        "missing": False,
        "folder": document.folder,
        "digest": document.digest,
        "pages": document.pages,
        "notes": notes,
        "titled_by_name": True,
    }


def _read_bodies(
    database: Database, collection_id: int, held: Sequence[int], before: str, source: str
) -> Iterator[dict[str, Any]]:
    """Yield passages of a document as an import of its file under the new name would send them."""
    with database.read() as reader:
        stored = passages.load_by_id(reader, collection_id, held)
        sentences = passages.list_sentences(reader, collection_id, held)
    texts: dict[int, list[str]] = {passage: [] for passage in held}
    for sentence in sentences:
        texts[sentence.passage_id].append(sentence.text)
    for passage in held:
        yield _build_body(stored[passage], texts[passage], before, source)


def _build_body(passage: StoredPassage, sentences: Sequence[str], before: str, source: str) -> dict[str, Any]:
    return {
        "id": source + passage.external_id.removeprefix(before),
        "document": source,
        "title": stem(source)[:500],
        "text": passage.text,
        "language": None,
        "metadata": passage.metadata | {"source": source},
        "sentences": sentences,
    }
