"""The question encoder that a collection's verdicts taught, as queries use it."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from engram.providers.embedder.question_tuning import LoadedAdapter, QuestionTuning
from engram.services.encoders.encoder import Encoder
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database
from engram.wings.tuning.core.learn_adapter import Adapter
from engram.wings.tuning.storage import tuning_generations

MOST_ADAPTERS = 100
"""Adapters that a process keeps, of at most 0.7 MB each; those that were not asked for longest go first."""


class TunedQuestions:
    """Embeds questions by the generation that serves. Safe to share between threads."""

    def __init__(
        self, database: Database, encoder: Callable[[], Encoder], *, most_adapters: int = MOST_ADAPTERS
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._most = most_adapters
        self._lock = Lock()
        self._serving: dict[int, int] = {}
        self._adapters: OrderedDict[tuple[int, int], LoadedAdapter] = OrderedDict()

    def find_generation(self, collection_id: int) -> int:
        """Return the generation that this process last saw serve; 0: none."""
        return self._serving.get(collection_id, 0)

    def embed(self, collection: Collection, generation: int, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Embed questions by a generation that serves, unit vectors (n, d).

        None if it is 0 or was withdrawn, or if this process cannot use adapters of the collection's encoder.
        """
        with self._lock:
            if generation:
                self._serving[collection.id] = generation
            else:
                self._serving.pop(collection.id, None)
        tuning = self._encoder().find_question_tuning(collection) if generation else None
        adapter = None if tuning is None else self._load(collection, generation, tuning)
        return None if tuning is None or adapter is None else tuning.embed(texts, adapter)

    def _load(self, collection: Collection, generation: int, tuning: QuestionTuning) -> LoadedAdapter | None:
        """Return the adapter of a generation, read from the database on first use."""
        key = collection.id, generation
        with self._lock:
            if key in self._adapters:
                self._adapters.move_to_end(key)
                return self._adapters[key]
        with self._database.read() as reader:
            stored = tuning_generations.load_adapter(reader, collection.id, generation)
        if stored is None or stored.encoder_fingerprint != collection.encoder_fingerprint:
            return None
        adapter = Adapter.from_bytes(stored.content)
        if adapter.fingerprint != tuning.fingerprint:
            return None
        loaded = tuning.load_adapter(dict(adapter.arrays))
        with self._lock:
            self._adapters[key] = loaded
            while len(self._adapters) > self._most:
                self._adapters.popitem(last=False)
        return loaded
