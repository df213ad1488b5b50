"""Documents as callers see them: listed, and deleted with their passages."""

from collections.abc import Sequence

import structlog

from engram.context import tenancy
from engram.context.errors import NotFoundError
from engram.services.auth.scope import Scope
from engram.services.corpus.passage_observer import PassageObserver
from engram.services.corpus.passage_removal import remove_passage
from engram.storage.corpus import collections, documents
from engram.storage.corpus.documents import StoredDocument
from engram.storage.database import Database

log = structlog.get_logger(__name__)

PIECE = 100
"""Passages that one transaction removes: the graph is locked for at most some seconds."""


class DocumentService:
    """Lists and deletes the documents of collections."""

    def __init__(self, database: Database, observers: Sequence[PassageObserver]) -> None:
        self._database = database
        self._observers = observers

    def page(self, scope: Scope, after: str | None, limit: int, prefix: str = "") -> list[StoredDocument]:
        """Documents in the order of their sources, those after ``after`` whose source begins with ``prefix``."""
        with self._database.read() as reader:
            return documents.page(reader, scope.collection.id, after, limit, prefix)

    def delete(self, scope: Scope, source: str) -> None:
        """Delete a document with its passages; if it is interrupted, a repetition goes on.

        Raises:
            NotFoundError: there is no such document, or the collection was deleted meanwhile.
        """
        target = scope.collection
        with self._database.read() as reader:
            is_seen = documents.sees(reader, target.id, source)
        if not is_seen:
            raise NotFoundError(f"There is no document {source!r} in collection {target.name!r}.")
        with tenancy.allow_all_readers():  # what hangs on its passages goes with them, whoever reads them
            while not self._delete_piece(target.id, target.name, source):
                pass
        log.info("document deleted", collection=target.name, source=source)

    def _delete_piece(self, collection_id: int, name: str, source: str) -> bool:
        """Remove some passages of a document; whether the document is gone now."""
        with self._database.write() as writer:
            if not collections.lock_graph(writer, collection_id):
                raise collections.build_gone_error(name)
            document = documents.find_ids(writer, collection_id, [source]).get(source)
            if document is None:  # another request deleted it meanwhile
                return True
            passages = documents.list_passages(writer, collection_id, document, PIECE)
            for passage in passages:
                remove_passage(writer, collection_id, passage, self._observers)
            if len(passages) == PIECE:
                return False
            documents.delete(writer, collection_id, document)
            return True
