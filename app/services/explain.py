"""What was learned, to look at: sentence memories beside the vectors they began as."""

from collections.abc import Sequence

from app.providers.embedder import Embedder
from app.storage import collections, memories
from app.storage.database import Database
from app.storage.memories import Standing, Vector


class ExplainService:
    """Reads learned state and changes none of it."""

    def __init__(self, database: Database, embedder: Embedder) -> None:
        self._database = database
        self._embedder = embedder

    def memories(self, collection: str, sentences: Sequence[int]) -> dict[int, dict[str, Standing]]:
        """Sentence -> channel ("task", "time") -> its memory; sentences that do not exist are left out.

        Raises:
            NotFoundError: there is no such collection.
        """
        with self._database.read() as reader:
            found = memories.standing(reader, collections.find(reader, collection).id, sentences)
        states: dict[int, dict[str, Standing]] = {}
        for state in found:
            states.setdefault(state.sentence_id, {})[state.channel] = state
        return states

    def direction(self, question: str) -> Vector:
        """The unit vector, (d,), along which verdicts on a question move task memories."""
        vector: Vector = self._embedder.embed([question])[0]
        return vector
