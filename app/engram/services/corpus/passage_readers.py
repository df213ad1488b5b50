"""Readers of passages: who may read one, and changes of that. A change embeds nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import structlog

from engram.context import tenancy
from engram.context.errors import InvalidRequestError, NotFoundError
from engram.core.auth.reader_names import normalise_readers
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections, passages, reader_sets
from engram.storage.corpus.reader_sets import Readers
from engram.storage.database import Database, Writer

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ReaderExplanation:
    """Whether somebody sees a passage, and why.

    Attributes:
        readers: of the passage; None: everyone.
        matched: those of them that the somebody is.
    """

    passage_id: str
    visible: bool
    readers: Readers | None
    asked: Readers
    matched: Readers
    reason: str


class PassageReadersService:
    """Sets and explains who may read passages."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def set_of_passage(self, scope: Scope, external_id: str, readers: Sequence[str] | None) -> Readers | None:
        """Let these read a passage that the caller sees, from the next query on; None: everyone. Return them.

        Raises:
            NotFoundError: the caller sees no such passage, or the collection is gone.
            InvalidRequestError: a name is none of a reader.
        """
        names = _normalise(readers)
        with self._database.read() as reader:
            visible = passages.versions(reader, scope.collection.id, [external_id]).get(external_id)
        if visible is None:
            raise _build_missing_error(scope, external_id)
        target = scope.collection
        # What belongs to the passage follows it, whoever reads it now.
        with tenancy.allow_all_readers(), self._database.write() as writer:
            if not collections.lock_graph(writer, target.id):
                raise collections.build_gone_error(target.name)
            changed = assign_readers(writer, target.id, names, [visible[0]])
        log.info("readers set", collection=target.name, passages=changed)
        return names

    def explain(self, scope: Scope, external_id: str, names: Sequence[str]) -> ReaderExplanation:
        """Say whether somebody who is these among the readers sees a passage, and why.

        Raises:
            NotFoundError: there is no such passage.
            InvalidRequestError: a name is none of a reader.
        """
        wanted_names = _normalise(names) or ()
        collection = scope.collection.id
        with self._database.read() as reader:
            version = passages.versions(reader, collection, [external_id]).get(external_id)
            if version is None:
                raise _build_missing_error(scope, external_id)
            readers = reader_sets.load(reader, collection, [version[0]])[version[0]]
        matched = tuple(name for name in wanted_names if name in (readers or ()))
        return ReaderExplanation(
            external_id, readers is None or bool(matched), readers, wanted_names, matched, _reason(readers, matched)
        )


def assign_readers(writer: Writer, collection_id: int, readers: Readers | None, passage_ids: Sequence[int]) -> int:
    """Let these read the passages; of how many it had others before. Whoever calls it holds the graph's lock."""
    set_ids = reader_sets.make(writer, collection_id, [] if readers is None else [readers])
    return len(
        reader_sets.assign(writer, collection_id, None if readers is None else set_ids[readers], passage_ids)
    )


def _normalise(names: Sequence[str] | None) -> Readers | None:
    try:
        return None if names is None else normalise_readers(names)
    except ValueError as error:
        raise InvalidRequestError(f"{error}.") from error


def _reason(readers: Readers | None, matched: Readers) -> str:
    if readers is None:
        return "It has no readers: everyone who may query the collection sees it."
    if not readers:
        return "Its list of readers is empty: only `admin` sees it."
    if matched:
        return f"Among its readers is {', '.join(matched)}."
    return "None of these is among its readers."


def _build_missing_error(scope: Scope, external_id: str) -> NotFoundError:
    return NotFoundError(f"There is no passage {external_id!r} in collection {scope.collection.name!r}.")
