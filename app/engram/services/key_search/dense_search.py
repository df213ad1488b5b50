"""Plain dense retrieval over passage keys, searched exactly: the baseline that everything else must beat."""

from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.storage.corpus import current_vectors, passages
from engram.storage.database import Database
from engram.storage.question import passages_by_key
from engram.storage.question.query_focus import Focus, GraphLimits

EXACT = GraphLimits(hub_limit=1, candidate_limit=1, exact=True)


class DenseService:
    """Ranks passages by the cosine of their key with the question; leaves no episode."""

    def __init__(self, database: Database, encoder: Encoder) -> None:
        self._database = database
        self._encoder = encoder

    def search(self, scope: Scope, text: str, limit: int) -> list[tuple[str, float]]:
        """(external id, cosine) of the ``limit`` nearest passages, best first.

        Raises:
            InvalidRequestError: the text has too many tokens.
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
        """
        self._encoder.check_question(text)
        vector = self._encoder.embed_questions(scope.collection, [text])[0]
        with self._database.snapshot() as reader:
            current_vectors.check_space(reader, scope.collection)
            focus = Focus(scope.collection, vector, limits=EXACT)
            nearest = passages_by_key.find_nearest_passages(reader, focus, limit)
            stored = passages.load_by_id(reader, scope.collection.id, nearest)
        return [(stored[key].external_id, near.similarity) for key, near in nearest.items() if key in stored]
