"""What this process has read of collections' graphs: names, texts and terms, which many queries ask for."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import duplicates
from engram.storage.corpus import lexical_index
from engram.storage.corpus.current_vectors import Current
from engram.storage.database import Reader
from engram.storage.retrieval import complementarity_links, graph_hops
from engram.storage.retrieval.complementarity_links import NamedEntity
from engram.storage.retrieval.graph_hops import SelectedSentence
from engram.storage.retrieval.query_focus import Focus

ENTRY_BYTES = 1_000
"""Memory that an entry takes, more or less: a sentence with its names, or the terms or entities of a passage."""
MOST_COLLECTIONS = 200
"""Graphs that a process keeps; one collection has several where its readers differ."""

Row = TypeVar("Row")


class CachedGraph:
    """What was read of one version of a collection's graph, as one set of readers sees it.

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
        """Those of the entities that there are."""
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
    wanted = list(ids)
    missing = [one for one in wanted if one not in held]
    if missing:
        loaded = load(missing)
        held.update((one, loaded.get(one)) for one in missing)
    return {one: row for one in wanted if (row := held[one]) is not None}


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
            while self._held and (size > self._most or len(self._held) > MOST_COLLECTIONS):
                _, (_, earliest) = self._held.popitem(last=False)
                size -= earliest.bytes
        return graph
