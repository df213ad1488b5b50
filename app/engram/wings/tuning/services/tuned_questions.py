"""The question encoder that a collection's verdicts taught, as queries use it."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class _Serving:
    """The generation that serves a collection.

    Attributes:
        encoder_fingerprint: of the collection's encoder.
        adapter: None until it was loaded.
    """

    generation: int
    encoder_fingerprint: str
    adapter: LoadedAdapter | None


class TunedQuestions:
    """Embeds questions by the generation that serves. Safe to share between threads."""

    def __init__(
        self, database: Database, encoder: Callable[[], Encoder], *, most_adapters: int = MOST_ADAPTERS
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._most = most_adapters
        self._lock = Lock()
        self._serving: OrderedDict[int, _Serving] = OrderedDict()
        """The generation that serves each collection, those that were asked for longest ago first."""

    def find_generation(self, collection_id: int) -> int:
        """Return the generation that this process last saw serve; 0: none."""
        serving = self._serving.get(collection_id)
        return 0 if serving is None else serving.generation

    def embed(self, collection: Collection, generation: int, texts: Sequence[str]) -> NDArray[np.float32] | None:
        """Embed questions by a generation that serves, unit vectors (n, d).

        None if it is 0 or was withdrawn, or if this process cannot use adapters of the collection's encoder.
        """
        if not generation:
            with self._lock:
                self._serving.pop(collection.id, None)
            return None
        adapter = self._find_kept(collection, generation)
        tuning = self._encoder().find_question_tuning(collection)
        if tuning is None:
            return None
        if adapter is None:
            adapter = self._load(collection, generation, tuning)
        return None if adapter is None else tuning.embed(texts, adapter)

    def _find_kept(self, collection: Collection, generation: int) -> LoadedAdapter | None:
        """Note which generation serves, and return its adapter if this process has it."""
        with self._lock:
            kept = self._serving.get(collection.id)
            if kept is None or (kept.generation, kept.encoder_fingerprint) != (
                generation,
                collection.encoder_fingerprint,
            ):
                kept = _Serving(generation, collection.encoder_fingerprint, None)
            self._keep(collection.id, kept)
            return kept.adapter

    def _keep(self, collection_id: int, serving: _Serving) -> None:
        """Put a generation last, and drop the first one if there are too many. The lock is held."""
        self._serving[collection_id] = serving
        self._serving.move_to_end(collection_id)
        while len(self._serving) > self._most:
            self._serving.popitem(last=False)

    def _load(self, collection: Collection, generation: int, tuning: QuestionTuning) -> LoadedAdapter | None:
        """Read the adapter of a generation from the database, and keep it."""
        with self._database.read() as reader:
            stored = tuning_generations.load_adapter(reader, collection.id, generation)
        if stored is None or stored.encoder_fingerprint != collection.encoder_fingerprint:
            return None
        adapter = Adapter.from_bytes(stored.content)
        if adapter.fingerprint != tuning.fingerprint:
            return None
        loaded = tuning.load_adapter(dict(adapter.arrays))
        with self._lock:
            self._keep(collection.id, _Serving(generation, collection.encoder_fingerprint, loaded))
        return loaded
