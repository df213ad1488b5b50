"""Plain dense retrieval over passage keys, searched exactly: the baseline that everything else must beat."""

from app.services.access.encoder import Encoder
from app.services.access.scope import Scope
from app.storage.corpus import current, passages
from app.storage.database import Database
from app.storage.retrieval import keyed
from app.storage.retrieval.focus import Focus, GraphLimits

EXACT = GraphLimits(hub_limit=1, candidate_limit=1, exact=True)


class DenseService:
    """Ranks passages by the cosine of their key with the question; leaves no episode."""

    def __init__(self, database: Database, encoder: Encoder) -> None:
        self._database = database
        self._encoder = encoder

    def search(self, scope: Scope, text: str, limit: int) -> list[tuple[str, float]]:
        """(external id, cosine) of the ``limit`` nearest passages, best first.

        Raises:
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
        """
        vector = self._encoder.embed(scope.collection, [text])[0]
        with self._database.snapshot() as reader:
            current.same_space(reader, scope.collection)
            focus = Focus(scope.collection, vector)
            nearest = keyed.nearest_passages(reader, focus, limit, EXACT)
            found = passages.by_id(reader, scope.collection.id, nearest)
        return [(found[key].external_id, near.similarity) for key, near in nearest.items() if key in found]
