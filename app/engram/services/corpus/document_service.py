"""Documents as callers see them: listed, compared with a folder, changed, and deleted with their passages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

import structlog

from engram.context import tenancy
from engram.context.errors import ConflictError, InvalidRequestError, NameTakenError, NotFoundError
from engram.core.auth.access_keys import INGEST
from engram.core.text.document_manifest import ListedDocument, Steps, compare_documents
from engram.core.text.document_versions import closes_circle
from engram.services.auth.scope import Scope
from engram.services.corpus.document_sight import find_seen_in_part
from engram.services.corpus.document_versions import read_renamed, relink
from engram.services.corpus.passage_observer import PassageObserver
from engram.services.corpus.passage_readers import assign_readers
from engram.services.corpus.passage_removal import remove_passages
from engram.storage.corpus import collections, document_manifest, document_versions, documents
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.documents import StoredDocument
from engram.storage.corpus.reader_sets import Readers
from engram.storage.database import Database, Reader, Writer

log = structlog.get_logger(__name__)

PIECE = 100
"""Passages that one transaction removes: the graph is locked for at most some seconds."""


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """Changes to a document besides its text.

    Attributes:
        source: its new source.
        folder: the folder that it is imported from now.
        forgets_digest: whether the next comparison asks for its file again.
        sets_readers: whether ``readers`` may read it from now on.
        readers: in order; None: everyone.
        sets_date: whether it holds since ``valid_from``; None: since when is not known.
        sets_successor: whether the document with source ``replaced_by`` replaces it; None: none does.
    """

    source: str | None = None
    folder: str | None = None
    forgets_digest: bool = False
    sets_readers: bool = False
    readers: Readers | None = None
    sets_date: bool = False
    valid_from: date | None = None
    sets_successor: bool = False
    replaced_by: str | None = None


class DocumentService:
    """Lists, compares, changes and deletes the documents of collections."""

    def __init__(self, database: Database, observers: Sequence[PassageObserver]) -> None:
        self._database = database
        self._observers = observers

    def page(self, scope: Scope, after: str | None, limit: int, prefix: str = "") -> list[StoredDocument]:
        """Documents in the order of their sources, those after ``after`` whose source begins with ``prefix``.

        What is known of a file as a whole, its hash for one, is shown to those who see all of its passages. The
        folder is a path of the importer's machine; it and the readers are shown to those who may import.
        """
        with self._database.read() as reader:
            page = documents.page(reader, scope.collection.id, after, limit, prefix)
        if not scope.is_allowed(INGEST):
            page = [replace(one, folder=None, readers=None) for one in page]
        in_part = find_seen_in_part(self._database, scope.collection.id, {one.id: one.passages for one in page})
        return [replace(one, digest=None, pages=None, notes=[]) if one.id in in_part else one for one in page]

    def compare(
        self, scope: Scope, folder: str, earlier_folders: Sequence[str], listed: Sequence[ListedDocument]
    ) -> Steps:
        """Say what brings the documents of a folder in step with what the folder has; nothing is changed.

        A document that the caller sees in part is taken to have another file: who could try digests until one fits
        would learn what the rest says.

        Args:
            earlier_folders: folders that this one was before.

        Raises:
            InvalidRequestError: a source is listed twice.
        """
        sources = {one.source for one in listed}
        if len(sources) < len(listed):
            raise InvalidRequestError("documents: a source is listed twice")
        with self._database.read() as reader:
            held = document_manifest.list_held(
                reader,
                scope.collection.id,
                [folder, *earlier_folders],
                list(sources),
                [one.digest for one in listed if one.digest],
                with_readers=any(one.names_readers for one in listed),
            )
            names = [one.source for one in held] if tenancy.get_visibility().readers is not None else []
            ids = documents.find_ids(reader, scope.collection.id, names)
            counts = documents.count_passages(reader, scope.collection.id, list(ids.values()))
        in_part = find_seen_in_part(self._database, scope.collection.id, counts)
        folders = {folder, *earlier_folders}
        held = [
            replace(one, digest=None) if ids.get(one.source) in in_part else one
            for one in held
            if ids.get(one.source) not in in_part or one.source in sources or one.folder in folders
        ]
        with self._database.read() as reader:
            held_folders = {one.folder for one in held if one.folder is not None}
            sizes = document_manifest.count_by_folder(reader, scope.collection.id, held_folders)
        return compare_documents(folder, earlier_folders, listed, held, sizes)

    def change(self, scope: Scope, source: str, change: DocumentChange) -> int:
        """Change the source, folder, readers, date or successor of a document in one transaction.

        A caller who sees a part of it cannot change its source, date or successor, which are those of the rest too.

        Returns:
            How many of its passages that the caller sees had other readers before.

        Raises:
            NotFoundError: there is no such document or successor, or the collection was deleted meanwhile.
            InvalidRequestError: it would replace itself, or a document that replaces it.
            ConflictError: the change concerns passages that the caller does not see.
            NameTakenError: another document has the new source, or another passage an id that begins with it.
        """
        target = scope.collection
        with self._database.read() as reader:
            self._check_seen(reader, scope, source)
            if change.replaced_by is not None:
                self._check_seen(reader, scope, change.replaced_by)
            document = documents.find_ids(reader, target.id, [source])[source]
            visible = documents.list_passages(reader, target.id, document)
        is_renamed = change.source not in (None, source)
        if is_renamed or change.sets_date or change.sets_successor:
            self._check_seen_whole(scope, source, document, len(visible))
        with tenancy.allow_all_readers(), self._database.write() as writer:
            if not collections.lock_graph(writer, target.id):
                raise collections.build_gone_error(target.name)
            if documents.find_ids(writer, target.id, [source]).get(source) != document:
                raise _build_missing_error(scope, source)
            if change.source is not None and change.source != source:
                _rename(writer, target.id, document, source, change.source)
                read_renamed(writer, target, document, source)
            if change.folder is not None:
                documents.set_folder(writer, target.id, document, change.folder)
            if change.forgets_digest:
                documents.forget_digest(writer, target.id, document)
            if change.sets_date:
                document_versions.set_date(writer, target.id, document, change.valid_from)
            if change.sets_successor:
                _set_successor(writer, scope, document, change.replaced_by)
            if change.sets_date or change.sets_successor:
                relink(writer, target.id)
            changed = assign_readers(writer, target.id, change.readers, visible) if change.sets_readers else 0
        log.info("document changed", collection=target.name, source=source, renamed_to=change.source)
        return changed

    def delete(self, scope: Scope, source: str) -> None:
        """Delete the passages of a document that the caller sees, and the document if none is left.

        If it is interrupted, a repetition goes on.

        Raises:
            NotFoundError: there is no such document, or the collection was deleted meanwhile.
        """
        target = scope.collection
        with self._database.read() as reader:
            self._check_seen(reader, scope, source)
            document = documents.find_ids(reader, target.id, [source]).get(source)
            if document is None:
                raise _build_missing_error(scope, source)
            visible = documents.list_passages(reader, target.id, document)
        with tenancy.allow_all_readers():  # what hangs on its passages goes with them, whoever reads them
            for start in range(0, max(len(visible), 1), PIECE):
                self._delete_piece(target, document, visible[start : start + PIECE])
        log.info("document deleted", collection=target.name, source=source)

    def _check_seen_whole(self, scope: Scope, source: str, document: int, visible_count: int) -> None:
        if find_seen_in_part(self._database, scope.collection.id, {document: visible_count}):
            raise ConflictError(
                f"You do not see all of {source!r}. Its source, date and successor are changed by who does."
            )

    @staticmethod
    def _check_seen(reader: Reader, scope: Scope, source: str) -> None:
        if not documents.sees(reader, scope.collection.id, source):
            raise _build_missing_error(scope, source)

    def _delete_piece(self, target: Collection, document: int, piece: Sequence[int]) -> None:
        """Remove these passages of a document, and the document if it has no others."""
        with self._database.write() as writer:
            if not collections.lock_graph(writer, target.id):
                raise collections.build_gone_error(target.name)
            held = set(documents.list_passages(writer, target.id, document))
            removed = [passage for passage in piece if passage in held]
            remove_passages(writer, target.id, removed, self._observers)
            if held <= set(removed):
                documents.delete(writer, target.id, document)
                if target.has_versions:
                    relink(writer, target.id)


def _rename(writer: Writer, collection_id: int, document: int, before: str, source: str) -> None:
    existing = documents.find_ids(writer, collection_id, [source])
    if existing or not documents.name_passages(writer, collection_id, document, before, source):
        raise NameTakenError(f"A document or a passage has the name {source!r} already, or it is too long.")
    documents.rename(writer, collection_id, document, source)


def _set_successor(writer: Writer, scope: Scope, document: int, replaced_by: str | None) -> None:
    """Store which document replaces another, unless that closes a circle of such links."""
    collection_id = scope.collection.id
    successor = None
    if replaced_by is not None:
        successor = documents.find_ids(writer, collection_id, [replaced_by]).get(replaced_by)
        if successor is None:
            raise _build_missing_error(scope, replaced_by)
        fixed = {
            one.id: one.replaced_by
            for one in document_versions.list_all(writer, collection_id)
            if one.is_fixed and one.replaced_by is not None
        }
        if closes_circle(fixed, document, successor):
            raise InvalidRequestError("replaced_by: a document cannot replace itself, nor one that replaces it")
    document_versions.set_successor(writer, collection_id, document, successor)


def _build_missing_error(scope: Scope, source: str) -> NotFoundError:
    return NotFoundError(f"There is no document {source!r} in collection {scope.collection.name!r}.")
