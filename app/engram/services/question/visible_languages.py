"""Languages of a collection's passages, as a caller sees them."""

from collections import OrderedDict
from collections.abc import Hashable, Mapping
from dataclasses import replace
from threading import Lock

from engram.context import tenancy
from engram.storage.corpus import reader_sets
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database

MOST_CALLERS = 1_000
"""Callers of collections whose languages are kept."""


class VisibleLanguages:
    """Counts passages by language for callers who do not see all. Safe to share between threads.

    How a question is read depends on these counts. Those of all passages would tell the languages of hidden ones.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._counts: OrderedDict[Hashable, tuple[str, Mapping[str, int]]] = OrderedDict()

    def restrict(self, collection: Collection) -> Collection:
        """Return the collection with the languages that the caller sees."""
        readers = tenancy.get_visibility().readers
        if readers is None:
            return collection
        caller = collection.id, readers
        with self._database.read() as reader:
            version = reader_sets.find_bound_version(reader, collection.id)
            if version is None:
                return collection
            with self._lock:
                known = self._counts.get(caller)
            if known is None or known[0] != version:
                known = version, reader_sets.count_languages(reader, collection.id)
        with self._lock:
            self._counts[caller] = known
            self._counts.move_to_end(caller)
            if len(self._counts) > MOST_CALLERS:
                self._counts.popitem(last=False)
        return replace(collection, languages=known[1])
