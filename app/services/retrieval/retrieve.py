"""Answering a query: analyse, embed, propagate or search, rank, and remember the episode."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import structlog
from numpy.typing import NDArray

from app.core.profiles import PROFILES
from app.core.temporal import TimeExpression, find_time_expressions
from app.errors import InvalidRequestError, LlmNotConfiguredError
from app.providers.embedder import Embedder
from app.providers.language import Language, normalise_entity
from app.providers.llm import Llm
from app.providers.prior import RankingPrior
from app.services.access.scope import Scope
from app.services.reasons.influence import Influences
from app.services.reasons.scoring import Came
from app.services.retrieval import present
from app.services.retrieval.explore import Explored, depth, explore
from app.services.retrieval.propagate import Propagation, Walk
from app.services.retrieval.query import Answer, EntityAnswer, Query, Sufficiency, Timings, Trace
from app.services.retrieval.rank import Ranker, Ranking, by_keys
from app.services.retrieval.search import Search, key_vector
from app.storage.corpus import collections, passages
from app.storage.corpus.collections import Collection
from app.storage.corpus.passages import StoredSentence
from app.storage.database import Database
from app.storage.retrieval import episodes, hops
from app.storage.retrieval.episodes import EpisodeRow, StoredEpisode
from app.storage.retrieval.hops import Focus, GraphLimits, Vector

log = structlog.get_logger(__name__)

PLAIN_DEPTH = 100
"""Passages, at least, among which a plain search is asked for a rank: as many as a query may want."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Everything a query came upon; ``times`` are the clock at its begin, after analysis, and after embedding."""

    collection: Collection
    focus: Focus
    constraint: str | None
    aligned: list[EntityAnswer]
    walk: Walk
    sufficiency: Sufficiency
    ranking: Ranking
    times: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Look:
    """What a question comes upon, answered or not.

    Attributes:
        ranked: passage and score of all that were ranked, best first.
    """

    focus: Focus
    walk: Walk
    sufficiency: Sufficiency
    ranked: list[tuple[int, float]]
    timings: Timings


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The embeddings of a query's texts, each (d,)."""

    question: Vector
    key: Vector | None
    time: Vector | None
    mentions: list[Vector]


class RetrieveService:
    """Answers queries and reads episodes again."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        language: Language,
        *,
        limits: GraphLimits,
        recall_gate: float,
        prior: RankingPrior,
        llm: Llm | None = None,
        llm_times: bool = False,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._language = language
        self._limits = limits
        self._propagation = Propagation(database, limits, recall_gate)
        self._ranker = Ranker(limits, prior)
        self._plain = Search(limits)
        self._influences = Influences(database, prior, recall_gate)
        self._llm = llm
        self._llm_times = llm_times

    def query(self, query: Query) -> Answer:
        """Answer a question and keep the episode.

        Raises:
            NotFoundError: there is no such collection.
            InvalidRequestError: the query bounds hops that its strategy does not make.
            LlmNotConfiguredError: ``sufficiency`` is "llm" and no endpoint is configured.
            LlmError: the endpoint failed.
        """
        found = self._search(query)
        sentences: dict[int, list[StoredSentence]] = {}
        with self._database.read() as reader:
            explored = explore(reader, found.focus, query, found.ranking)
            shown = [passage for passage, _ in explored.best]
            stored = passages.by_id(reader, found.collection.id, shown)
            if "sentences" in query.include:
                for sentence in passages.sentences_of(reader, found.collection.id, shown):
                    sentences.setdefault(sentence.passage_id, []).append(sentence)
        walk, began, ended = found.walk, found.times[0], time.perf_counter()
        answer = Answer(
            query_id=uuid4() if query.served is None else query.served.query_id,
            collection=query.collection,
            query=query.text,
            memory=query.memory,
            profile=query.profile,
            strategy=query.strategy,
            expanded=bool(query.expansions),
            sufficiency=found.sufficiency,
            hops=len(walk.hops),
            stop_reason=walk.stop_reason,
            passages=[
                explored.shown(passage, present.passage(stored[passage], score, walk, sentences.get(passage)))
                for passage, score in explored.best
                if passage in stored
            ],
            arm=None if query.served is None else query.served.arm,
            shadow=query.served is not None and query.served.shadow,
            timings=Timings(
                analyse_ms=_ms(began, found.times[1]),
                embed_ms=_ms(found.times[1], found.times[2]),
                search_ms=_ms(found.times[2], ended),
                total_ms=_ms(began, ended),
            ),
        )
        learned_only = PROFILES[query.profile].learned_only
        trace = present.trace(walk, found.constraint, found.aligned, learned_only=learned_only)
        if "trace" in query.include and not query.ungated:
            names = {passage: held.external_id for passage, held in stored.items()}
            trace = self._explained(query, found, explored, names, trace)
        self._remember(found, explored, query, answer, trace)
        log.info(
            "query",
            query_id=str(answer.query_id),
            collection=query.collection,
            memory=query.memory,
            profile=query.profile,
            strategy=query.strategy,
            arm=answer.arm,
            explored=len(explored.passages),
            expansions=len(query.expansions),
            hops=answer.hops,
            stop_reason=answer.stop_reason,
            total_ms=answer.timings.total_ms,
        )
        return replace(
            answer,
            entities=found.aligned if "entities" in query.include else None,
            trace=trace if "trace" in query.include else None,
        )

    def features(self, query: Query) -> tuple[list[str], NDArray[np.float64]]:
        """External ids of the passages that are ranked for a question, (n,), and their features, (n, k).

        Leaves no episode.

        Raises:
            NotFoundError: there is no such collection.
        """
        found = self._search(query)
        with self._database.read() as reader:
            stored = passages.by_id(reader, found.collection.id, found.ranking.candidates.tolist())
        kept = [at for at, passage in enumerate(found.ranking.candidates.tolist()) if passage in stored]
        names = [stored[int(found.ranking.candidates[at])].external_id for at in kept]
        return names, found.ranking.features[kept]

    def episode(self, scope: Scope, query_id: UUID) -> StoredEpisode:
        """An answered query, read again.

        Raises:
            NotFoundError: there is no such query.
        """
        with self._database.read() as reader:
            return episodes.find(reader, scope.collection.id, query_id)

    def look(self, query: Query) -> Look:
        """What a question comes upon, whatever its collection is set to. Leaves no episode.

        Raises:
            NotFoundError, InvalidRequestError, LlmNotConfiguredError, LlmError: as ``query``.
        """
        found = self._search(query)
        ended = time.perf_counter()
        began, analysed, embedded = found.times
        return Look(
            focus=found.focus,
            walk=found.walk,
            sufficiency=found.sufficiency,
            ranked=[*found.ranking.best, *found.ranking.beyond],
            timings=Timings(_ms(began, analysed), _ms(analysed, embedded), _ms(embedded, ended), _ms(began, ended)),
        )

    def _explained(
        self, query: Query, found: _Found, explored: Explored, names: Mapping[int, str], trace: Trace
    ) -> Trace:
        """The trace with what memory did to what is shown; without memory the question is searched once more."""
        ranking = found.ranking
        if found.focus.use_memory:
            wanted = query.top_k if query.strategy == "graph" else max(query.top_k, PLAIN_DEPTH)
            constraint = found.constraint or ""
            alone = replace(query, memory="off", top_k=wanted, time_constraint=constraint, served=None)
            ranking = self._search(alone).ranking
        ordered = enumerate([*ranking.best, *ranking.beyond], start=1)
        came = Came(
            focus=found.focus,
            profile=PROFILES[query.profile],
            entities=[entity.entity_id for entity in found.aligned],
            walk=found.walk,
            ranking=found.ranking,
            shown=[(passage, names[passage], score) for passage, score in explored.best if passage in names],
            plain={passage: rank for rank, (passage, _) in ordered},
        )
        return self._influences.explained(came, trace)

    def _search(self, query: Query) -> _Found:
        if query.strategy == "graph":
            return self._walk(query)
        if query.max_hops is not None or query.sufficiency is not None:
            raise InvalidRequestError(
                f"Strategy {query.strategy!r} makes no hops: max_hops and sufficiency go with strategy 'graph'."
            )
        return self._by_keys(query)

    def _by_keys(self, query: Query) -> _Found:
        """What passage keys alone find. A time constraint has no say, but a given one is kept for verdicts."""
        began = time.perf_counter()
        constraint = query.time_constraint or None
        collection = self._collection(query)
        analysed = time.perf_counter()
        vectors = self._embed(query, constraint)
        embedded = time.perf_counter()
        focus = _focus(collection, query, vectors)
        with self._database.read() as reader:
            ranking = by_keys(self._plain.rank(reader, focus, replace(query, top_k=depth(query))), query.top_k)
        times = began, analysed, embedded
        return _Found(collection, focus, constraint, [], Walk(stop_reason="no_hops"), "none", ranking, times)

    def _walk(self, query: Query) -> _Found:
        began = time.perf_counter()
        profile = PROFILES[query.profile]
        sufficiency: Sufficiency = query.sufficiency or ("coverage" if profile.recalls else "none")
        if sufficiency == "llm" and self._llm is None:
            raise LlmNotConfiguredError("sufficiency 'llm' needs ENGRAM_LLM_BASE_URL to be set.")
        mentions, constraint = self._analyse(query)
        collection = self._collection(query)
        with self._database.read() as reader:
            exact = hops.exact_entities(reader, collection, list(mentions))
        analysed = time.perf_counter()
        unmatched = [name for name in mentions if name not in exact]
        vectors = self._embed(query, constraint, [mentions[name] for name in unmatched])
        embedded = time.perf_counter()
        asked = tuple(find_time_expressions(constraint)) if constraint and profile.by_features else ()
        focus = _focus(collection, query, vectors, asked)
        aligned = self._align(collection, mentions, exact, dict(zip(unmatched, vectors.mentions, strict=True)))
        walk = self._propagation.walk(
            focus,
            query.text,
            _activated(aligned),
            profile,
            query.max_hops or profile.max_hops,
            sufficiency,
            self._ask_llm,
        )
        with self._database.read() as reader:
            ranking = self._ranker.rank(reader, focus, query, profile, walk)
        return _Found(
            collection, focus, constraint, aligned, walk, sufficiency, ranking, (began, analysed, embedded)
        )

    def _collection(self, query: Query) -> Collection:
        if query.served is not None:
            return query.served.collection
        with self._database.read() as reader:
            return collections.find(reader, query.collection)

    def _analyse(self, query: Query) -> tuple[dict[str, str], str | None]:
        """Normalised name -> mention, and the time constraint."""
        analysis = self._language.analyse_question(query.text)
        mentions = {normalise_entity(mention): mention for mention in analysis.entities}
        if query.time_constraint is not None:
            return mentions, query.time_constraint or None
        if self._llm_times and self._llm is not None:
            return mentions, self._llm.extract_time_constraint(query.text)
        return mentions, analysis.time_expression

    def _embed(self, query: Query, constraint: str | None, mentions: Sequence[str] = ()) -> _Vectors:
        """All at once; expansions only where keys are compared by vectors."""
        units = [] if query.strategy == "lexical" else [expansion.text for expansion in query.expansions]
        texts = [query.text, *mentions, *units, *([constraint] if constraint else [])]
        vectors = self._embedder.embed(texts)
        first = 1 + len(mentions)
        return _Vectors(
            question=vectors[0],
            key=key_vector(vectors[0], vectors[first : first + len(units)]),
            time=vectors[-1] if constraint else None,
            mentions=list(vectors[1:first]),
        )

    def _align(
        self,
        collection: Collection,
        mentions: Mapping[str, str],
        exact: Mapping[str, tuple[int, str]],
        unmatched: Mapping[str, Vector],
    ) -> list[EntityAnswer]:
        """Each mention's most similar entity (Eq. 3); an equal name is the most similar by definition."""
        aligned = [EntityAnswer(mentions[name], *exact[name], 1.0) for name in mentions if name in exact]
        if unmatched:
            with self._database.read() as reader:
                for name, vector in unmatched.items():
                    nearest = hops.nearest_entity(reader, collection, vector, self._limits)
                    # A negative cosine is no likeness, and a negative activation has no place in Eqs. 5-8.
                    if nearest is not None and nearest[2] > 0:
                        aligned.append(EntityAnswer(mentions[name], *nearest))
        return aligned

    def _ask_llm(self, question: str, sentences: Sequence[str]) -> bool:
        if self._llm is None:
            raise LlmNotConfiguredError("sufficiency 'llm' needs ENGRAM_LLM_BASE_URL to be set.")
        return self._llm.is_sufficient(question, sentences)

    def _remember(self, found: _Found, explored: Explored, query: Query, answer: Answer, trace: Trace) -> None:
        stored = asdict(answer)
        del stored["entities"], stored["trace"]
        stored["query_id"] = str(answer.query_id)
        stored["filter"] = None if query.metadata is None else dict(query.metadata)
        stored["expansions"] = [asdict(expansion) for expansion in query.expansions]
        ranking = found.ranking
        kept = explored.recorded(ranking)
        row = EpisodeRow(
            id=answer.query_id,
            question=answer.query,
            embedding=found.focus.vector,
            time_constraint=found.constraint,
            time_embedding=found.focus.time_vector,
            memory=answer.memory,
            profile=answer.profile,
            activated=explored.activated(found.walk),
            answer=stored,
            trace=asdict(trace, dict_factory=_stored),
            ranked=ranking.candidates[kept] if ranking.teaches else None,
            features=ranking.features[kept].astype(np.float32) if ranking.teaches else None,
            strategy=answer.strategy,
            arm=answer.arm,
            explored=list(explored.passages),
        )
        with self._database.write_once() as writer:
            episodes.insert(writer, found.collection.id, row)


def _focus(
    collection: Collection, query: Query, vectors: _Vectors, asked: tuple[TimeExpression, ...] = ()
) -> Focus:
    return Focus(
        collection,
        vectors.question,
        vectors.time,
        query.memory == "read",
        PROFILES[query.profile].learned_only,
        query.metadata,
        ungated=query.ungated,
        asked=asked,
        key_vector=vectors.key,
    )


def _activated(aligned: Sequence[EntityAnswer]) -> dict[int, tuple[str, float]]:
    """Entity -> name and similarity; of several mentions of one entity the best counts."""
    ordered = sorted(aligned, key=lambda entity: entity.similarity)
    return {entity.entity_id: (entity.name, entity.similarity) for entity in ordered}


def _stored(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Attributes as JSON has them."""
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in pairs}


def _ms(start: float, end: float) -> float:
    return round((end - start) * 1000.0, 3)
