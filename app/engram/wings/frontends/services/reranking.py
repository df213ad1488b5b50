"""Ranking texts that a caller brings: those that are passages of the collection by all that it has learned."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from engram.context import deadline
from engram.services.encoders.encoder import Encoder
from engram.services.question.answer import PassageAnswer
from engram.services.question.pipeline import QuestionPipeline
from engram.services.question.query import Query
from engram.storage.database import Database
from engram.telemetry.stages import stage
from engram.wings.frontends.services.relevance import compute_relevance_scores, merge_scores
from engram.wings.frontends.storage import texts_of_passages

EMBEDDED_AT_ONCE = 32
"""Texts that are embedded between two looks at the request's deadline."""


@dataclass(frozen=True, slots=True)
class RankedText:
    """A text of the caller's: its place in the request, from 0, and its score in [0, 1].

    ``passage``: the passage of the collection that has this text; None if none has.
    """

    index: int
    relevance: float
    passage: PassageAnswer | None


@dataclass(frozen=True, slots=True)
class RerankedTexts:
    """The texts, best first, and the query that verdicts on them name."""

    query_id: UUID
    texts: list[RankedText]


class RerankingService:
    """Ranks texts for a question."""

    def __init__(self, database: Database, encoder: Encoder, question: QuestionPipeline) -> None:
        self._database = database
        self._encoder = encoder
        self._question = question

    def rerank(self, query: Query, texts: Sequence[str]) -> RerankedTexts:
        """The texts in the order of their relevance to the question of the query.

        A known text is the text of a passage, as it stands or without white space around it. Known texts are ranked
        by a query among their passages, which is kept as an episode. If all are known, that query scores them.
        Otherwise the encoder compares all texts, and the known ones take the places that it gives to them together.

        Raises:
            NotFoundError, InvalidRequestError: as ``QuestionPipeline.answer``.
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
            DeadlineError: the texts take too long to embed.
        """
        collection = query.scope.collection
        self._encoder.check(collection)
        encoded = self._similarities(query, texts)  # first: what fails here leaves no episode
        with self._database.snapshot() as reader:
            stored = texts_of_passages.find_passages(reader, collection.id, {*texts, *map(str.strip, texts)})
        holders_by_text = {
            text: holders for text in texts if (holders := stored.get(text) or stored.get(text.strip()))
        }
        among = sorted({passage for holders in holders_by_text.values() for passage in holders})
        answer = self._question.serve(
            replace(query, among=among, top_k=max(len(among), 1), collapse_duplicates=False, min_sufficiency=None)
        )
        ranks = {passage.passage_id: rank for rank, passage in enumerate(answer.passages)}
        best = {
            text: answer.passages[min(ranks[name] for name in shown)]
            for text, holders in holders_by_text.items()
            if (shown := [name for name in holders.values() if name in ranks])
        }
        ranked = [place for place, text in enumerate(texts) if text in best]
        ranked.sort(key=lambda place: ranks[best[texts[place]].passage_id])
        if len(ranked) == len(texts):
            relevance = compute_relevance_scores(answer.passages, answer.strategy)
            scores = [relevance[ranks[best[text].passage_id]] for text in texts]
        else:
            scores = merge_scores(encoded, ranked)
        order = {place: position for position, place in enumerate(ranked)}
        places = sorted(range(len(texts)), key=lambda place: (-scores[place], order.get(place, len(texts)), place))
        return RerankedTexts(
            answer.query_id, [RankedText(place, scores[place], best.get(texts[place])) for place in places]
        )

    def _similarities(self, query: Query, texts: Sequence[str]) -> list[float]:
        """Cosine of the question and each text, (n,)."""
        collection = query.scope.collection
        distinct = list(dict.fromkeys(texts))
        similarities: dict[str, float] = {}
        with stage("embed"):
            question = self._encoder.embed(collection, [query.text])[0]
            for start in range(0, len(distinct), EMBEDDED_AT_ONCE):
                deadline.check()
                some = distinct[start : start + EMBEDDED_AT_ONCE]
                cosines = self._encoder.embed(collection, some) @ question
                similarities.update(zip(some, cosines.tolist(), strict=True))
        return [similarities[text] for text in texts]
