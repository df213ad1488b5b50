"""Caches of a process between questions: passages' keys, and the parts of graphs that it has read."""

import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from threading import Lock
from typing import TypeVar
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from engram.context import tenancy
from engram.core.ranking import duplicates, exact_search
from engram.providers.language import Vocabulary
from engram.storage.corpus import lexical_index, reader_sets
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.current_vectors import Current
from engram.storage.database import Database, Reader
from engram.storage.question import complementarity_links, graph_hops, passages_by_key
from engram.storage.question.complementarity_links import NamedEntity
from engram.storage.question.graph_hops import SelectedSentence
from engram.storage.question.passages_by_key import PassageKeys
from engram.storage.question.query_focus import Focus
from engram.telemetry import metrics

Row = TypeVar("Row")
NearestLookup = Callable[[int], Sequence[int] | None]
"""How many -> so many passages nearest to the question, best first; None where this process does not know them."""
LEAST_PASSAGES = 1_000
"""Of fewer Postgres finds the nearest in half a millisecond."""
QUESTIONS_BEFORE_READ = 12
"""Questions after which keys are read: to read them takes as long as Postgres searches for about as many."""
MOST_BYTES = 2**29
"""Of one collection: half of what one value of a statement may be."""
ENTRY_BYTES = 1_000
"""Memory that an entry takes, more or less: a sentence with its names, or the terms or entities of a passage."""
MOST_GRAPHS = 200
"""Graphs that a process keeps; one collection has several where its readers differ."""
MOST_COLLECTIONS = 1_000
"""Collections of which it is remembered how often they were asked."""
COUNTED_SECONDS = 10.0
"""How long what a caller sees is not counted again: an import changes the collection each second."""
MOST_CALLERS = 1_000
"""Callers of collections whose languages are kept."""
KNOWN_TERMS = 10_000
"""Terms and words that are known of a collection to a caller, more or less; then all are forgotten."""
KNOWN_COLLECTIONS = 100
"""Collections, each as a caller sees it, of which terms are known."""


@dataclass(frozen=True, slots=True)
class _CachedKeys:
    """Cached keys of one collection.

    Attributes:
        version: of these keys.
        request_count: how often they were asked for.
        keys: once they were read; None before.
    """

    version: tuple[str, str | None]
    request_count: int = 0
    keys: PassageKeys | None = None

    @property
    def bytes(self) -> int:
        """Size of the keys."""
        keys = self.keys
        return 0 if keys is None else keys.ids.nbytes + keys.keys.nbytes + keys.reader_sets.nbytes


class PassageKeyCache:
    """Keys of collections without a vector index, of which Postgres would read every one for each question.

    Here that takes a tenth of the time. They are read on a snapshot together with their version, and serve
    questions whose own snapshot has the same version, so that these find what Postgres would: what is found are
    ids, and how near they are is asked of Postgres. Safe to share between threads.
    """

    def __init__(self, most_bytes: int) -> None:
        """Keep ``most_bytes`` >= 0 of keys; those that were not asked for longest go first."""
        self._most = most_bytes
        self._lock = Lock()
        self._cached: OrderedDict[tuple[int, bool], _CachedKeys] = OrderedDict()
        self._reading: set[tuple[int, bool]] = set()
        self._size = 0

    @property
    def bytes(self) -> int:
        """Size of the cache."""
        return self._size

    def prepare_search(self, reader: Reader, focus: Focus, now: Current | None) -> NearestLookup:
        """Return the cached keys nearest to the question on this snapshot.

        Args:
            now: the vectors that the snapshot has.
        """

        @cache  # a walk that may end after each hop is ranked after each
        def find_nearest(count: int) -> Sequence[int] | None:
            cached = None if now is None or not self._serves(focus) else self._load_cached_keys(reader, focus, now)
            if cached is None or cached.keys is None:
                return None
            cached_keys = cached.keys
            vector = focus.vector if focus.key_vector is None else focus.key_vector
            nearest = exact_search.find_nearest(cached_keys.keys, vector, count, cached_keys.list_visible(reader))
            nearest_ids: list[int] = cached_keys.ids[nearest].tolist()
            return nearest_ids

        return find_nearest

    def _serves(self, focus: Focus) -> bool:
        """Whether keys are to be kept for such a question. A choice of passages is left to Postgres."""
        collection = focus.collection
        size = collection.passage_count * focus.vector.nbytes
        searched = "passage" not in collection.indexed and collection.passage_count >= LEAST_PASSAGES
        return searched and not focus.is_narrowed and size <= min(self._most, MOST_BYTES)

    def _load_cached_keys(self, reader: Reader, focus: Focus, now: Current) -> _CachedKeys | None:
        """Return the cached keys of this version, read now if they were asked for often enough."""
        cache_key = focus.collection.id, focus.evolved
        version = now.base_keys, now.evolved_keys if focus.evolved else None
        with self._lock:
            cached = self._cached.get(cache_key)
            if cached is None or cached.version != version:
                cached = _CachedKeys(version)
            cached = replace(cached, request_count=cached.request_count + 1)
            self._put(cache_key, cached)
            if (
                cached.keys is not None
                or cached.request_count < QUESTIONS_BEFORE_READ
                or cache_key in self._reading
                or (reader.distributed and reader.reader_sets is not None)  # whom a cluster's views show no more
            ):
                return cached
            self._reading.add(cache_key)
        try:
            keys = passages_by_key.load_all_keys(reader, cache_key[0], evolved=cache_key[1])
        finally:
            with self._lock:
                self._reading.remove(cache_key)
        metrics.KEYS_READ.inc()
        cached = replace(cached, keys=keys)
        with self._lock:
            self._put(cache_key, cached)
        return cached

    def _put(self, cache_key: tuple[int, bool], cached: _CachedKeys) -> None:
        """Have this be the latest that was asked for, and let go of the earliest as long as there is too much."""
        before = self._cached.pop(cache_key, None)
        self._cached[cache_key] = cached
        self._size += cached.bytes - (0 if before is None else before.bytes)
        while self._size > self._most or len(self._cached) > MOST_COLLECTIONS:
            _, earliest = self._cached.popitem(last=False)
            self._size -= earliest.bytes
        metrics.KEYS_KEPT.set(self._size)


class CachedGraph:
    """The parts read so far of one version of a collection's graph, as one set of readers sees it.

    Threads may read at the same time: entries are only added, and a version has one value for each.
    """

    def __init__(self, collection_id: int, hub_limit: int) -> None:
        """``hub_limit``: sentences that are counted of an entity at most."""
        self._collection_id = collection_id
        self._hub_limit = hub_limit
        self._terms: dict[int, NDArray[np.uint64] | None] = {}
        self._passage_entities: dict[int, NDArray[np.int64] | None] = {}
        self._entities: dict[int, NamedEntity | None] = {}
        self._sentences: dict[int, SelectedSentence | None] = {}
        self._sentence_counts: dict[int, int] = {}

    @property
    def bytes(self) -> int:
        """Size of the entries, more or less."""
        entries = len(self._terms) + len(self._passage_entities) + len(self._entities) + len(self._sentences)
        return ENTRY_BYTES * entries

    def read_terms(self, reader: Reader, passages: Sequence[int]) -> dict[int, NDArray[np.uint64]]:
        """Passage -> its terms, see ``duplicates.pack_terms``, of those of the passages that have any."""
        return _complete(
            self._terms,
            passages,
            lambda ids: duplicates.pack_terms(*lexical_index.term_rows(reader, self._collection_id, ids)),
        )

    def read_entities_of_passages(self, reader: Reader, passages: Sequence[int]) -> dict[int, NDArray[np.int64]]:
        """Passage -> the entities that it names, (n,), of those of the passages that name any."""
        return _complete(
            self._passage_entities,
            passages,
            lambda ids: complementarity_links.load_entities_of_passages(reader, self._collection_id, ids),
        )

    def read_entities(self, reader: Reader, entities: Sequence[int]) -> dict[int, NamedEntity]:
        """Read the entities that exist."""
        return _complete(
            self._entities,
            entities,
            lambda ids: complementarity_links.load_named_entities(
                reader, self._collection_id, ids, self._hub_limit
            ),
        )

    def read_sentences(
        self, reader: Reader, sentences: Sequence[int]
    ) -> tuple[dict[int, SelectedSentence], dict[int, int]]:
        """The sentences in id order, and entity that they name -> sentences that name it, in id order."""

        def load(ids: Sequence[int]) -> Mapping[int, SelectedSentence]:
            evidence, counts = graph_hops.load_sentences(reader, self._collection_id, ids, self._hub_limit)
            self._sentence_counts.update(counts)
            return evidence

        evidence = _complete(self._sentences, sorted(sentences), load)
        named = {entity for sentence in evidence.values() for entity in sentence.entities}
        return evidence, {entity: self._sentence_counts[entity] for entity in sorted(named)}


def _complete(
    held: dict[int, Row | None], ids: Iterable[int], load: Callable[[Sequence[int]], Mapping[int, Row]]
) -> dict[int, Row]:
    """Load what is not held yet, hold it, and return what there is of these ids, in their order."""
    requested = list(ids)
    missing = [one for one in requested if one not in held]
    if missing:
        loaded = load(missing)
        held.update((one, loaded.get(one)) for one in missing)
    return {one: row for one in requested if (row := held[one]) is not None}


class GraphCache:
    """Cached graphs of the collections that were asked last. Safe to share between threads.

    A graph is read on snapshots that have its version, and serves queries whose snapshot has the same, under
    connections that see the passages of the same readers.
    """

    def __init__(self, most_bytes: int) -> None:
        """Keep ``most_bytes`` >= 0; the graphs that were not asked for longest go first."""
        self._most = most_bytes
        self._lock = Lock()
        self._held: OrderedDict[tuple[int, int, frozenset[int] | None], tuple[str, CachedGraph]] = OrderedDict()

    def open(self, reader: Reader, focus: Focus, current: Current | None) -> CachedGraph:
        """Return the graph of the snapshot, empty if nothing is kept of it.

        Args:
            current: the versions that the snapshot has; None if the collection is gone.
        """
        collection_id, hub_limit = focus.collection.id, focus.limits.hub_limit
        graph = CachedGraph(collection_id, hub_limit)
        if current is None or not self._most:
            return graph
        key = collection_id, hub_limit, reader.reader_sets
        with self._lock:
            held = self._held.pop(key, None)
            if held is not None and held[0] == current.base_keys:
                graph = held[1]
            self._held[key] = current.base_keys, graph
            size = sum(one.bytes for _, one in self._held.values())
            while self._held and (size > self._most or len(self._held) > MOST_GRAPHS):
                _, (_, earliest) = self._held.popitem(last=False)
                size -= earliest.bytes
        return graph


@dataclass(frozen=True, slots=True)
class _VisibleCounts:
    """Passages by language that a caller saw at a moment of ``time.monotonic``."""

    version: str
    counted_at: float
    languages: Mapping[str, int]


class VisibleLanguages:
    """Counts passages by language for callers who do not see all. Safe to share between threads.

    How a question is read depends on these counts, and so does its sufficiency. Those of all passages would tell
    the languages of hidden ones, and how many there are.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = Lock()
        self._counts: OrderedDict[Hashable, _VisibleCounts] = OrderedDict()

    def restrict(self, collection: Collection) -> Collection:
        """Return the collection with the languages, and the number of passages, that the caller sees."""
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
            now = time.monotonic()
            if known is None or (known.version != version and now > known.counted_at + COUNTED_SECONDS):
                known = _VisibleCounts(version, now, reader_sets.count_languages(reader, collection.id))
        with self._lock:
            self._counts[caller] = known
            self._counts.move_to_end(caller)
            if len(self._counts) > MOST_CALLERS:
                self._counts.popitem(last=False)
        return replace(collection, languages=known.languages, passage_count=sum(known.languages.values()))


class VocabularyCache:
    """Vocabularies of collections, as callers see them. Safe to share between threads.

    So words that are asked again and again are not looked up again. A word that left the collection since is just
    not corrected; a word that came is looked up, since the collection has another version then.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._vocabularies: OrderedDict[Hashable, tuple[UUID | None, Vocabulary]] = OrderedDict()

    def open(self, collection: Collection) -> Vocabulary:
        """Return what is known of it; what the caller adds is kept."""
        caller = collection.id, tenancy.get_visibility().readers
        with self._lock:
            version, vocabulary = self._vocabularies.pop(caller, (None, Vocabulary()))
            if len(vocabulary) >= KNOWN_TERMS:
                vocabulary = Vocabulary()
            elif version != collection.keys_version:
                vocabulary = replace(vocabulary, alone=set())
            self._vocabularies[caller] = collection.keys_version, vocabulary
            if len(self._vocabularies) > KNOWN_COLLECTIONS:
                self._vocabularies.popitem(last=False)
        return vocabulary
