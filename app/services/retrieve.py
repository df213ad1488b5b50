"""Answering a query: analyse, embed, propagate, rank, and remember the episode."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any
from uuid import UUID, uuid4

import numpy as np
import structlog

from app.core import propagation, ranking
from app.core.profiles import PROFILES, Profile
from app.errors import LlmNotConfiguredError
from app.providers.embedder import Embedder
from app.providers.language import Language, normalise_entity, title_entities
from app.providers.llm import Llm
from app.services.episode import (
    Answer,
    EntityAnswer,
    HopTrace,
    PassageAnswer,
    Query,
    RecallTrace,
    SentenceAnswer,
    SentenceTrace,
    Sufficiency,
    Timings,
    Trace,
)
from app.services.propagate import Hop, Propagation, Walk
from app.storage import collections, episodes, graph, passages
from app.storage.collections import Collection
from app.storage.database import Database
from app.storage.episodes import EpisodeRow, StoredEpisode
from app.storage.graph import Focus, GraphLimits, Keyed, Vector
from app.storage.passages import StoredPassage, StoredSentence

log = structlog.get_logger(__name__)


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
        llm: Llm | None = None,
        llm_times: bool = False,
    ) -> None:
        self._database = database
        self._embedder = embedder
        self._language = language
        self._limits = limits
        self._propagation = Propagation(database, limits, recall_gate)
        self._llm = llm
        self._llm_times = llm_times

    def query(self, query: Query) -> Answer:
        """Answer a question and keep the episode.

        Raises:
            NotFoundError: there is no such collection.
            LlmNotConfiguredError: ``sufficiency`` is "llm" and no endpoint is configured.
            LlmError: the endpoint failed.
        """
        began = time.perf_counter()
        profile = PROFILES[query.profile]
        sufficiency: Sufficiency = query.sufficiency or ("coverage" if profile.recalls else "none")
        if sufficiency == "llm" and self._llm is None:
            raise LlmNotConfiguredError("sufficiency 'llm' needs ENGRAM_LLM_BASE_URL to be set.")
        mentions, constraint = self._analyse(query)
        with self._database.read() as reader:
            collection = collections.find(reader, query.collection)
            exact = graph.exact_entities(reader, collection, list(mentions))
        analysed = time.perf_counter()
        vector, time_vector, unmatched = self._embed(query.text, constraint, mentions, exact)
        embedded = time.perf_counter()
        focus = Focus(
            collection,
            vector,
            time_vector,
            query.memory == "read",
            profile.learned_only,
            query.metadata,
            ungated=query.ungated,
        )
        aligned = self._align(collection, mentions, exact, unmatched)
        walk = self._propagation.walk(
            focus,
            query.text,
            _activated(aligned),
            profile,
            query.max_hops or profile.max_hops,
            sufficiency,
            self._ask_llm,
        )
        ranked, found, sentences = self._rank(focus, query, profile, walk, aligned)
        searched = time.perf_counter()
        trace = Trace(constraint, aligned, _recall_trace(walk), _hop_traces(walk, profile.learned_only))
        answer = Answer(
            query_id=uuid4(),
            collection=query.collection,
            query=query.text,
            memory=query.memory,
            profile=query.profile,
            sufficiency=sufficiency,
            hops=len(walk.hops),
            stop_reason=walk.stop_reason,
            passages=[
                _passage_answer(found[passage], score, walk, sentences.get(passage)) for passage, score in ranked
            ],
            timings=Timings(
                analyse_ms=_ms(began, analysed),
                embed_ms=_ms(analysed, embedded),
                search_ms=_ms(embedded, searched),
                total_ms=_ms(began, searched),
            ),
        )
        self._remember(collection, answer, trace, vector, time_vector, list(walk.evidence))
        log.info(
            "query",
            query_id=str(answer.query_id),
            collection=query.collection,
            memory=query.memory,
            profile=query.profile,
            hops=answer.hops,
            stop_reason=answer.stop_reason,
            total_ms=answer.timings.total_ms,
        )
        return replace(
            answer,
            entities=aligned if "entities" in query.include else None,
            trace=trace if "trace" in query.include else None,
        )

    def episode(self, collection: str, query_id: UUID) -> StoredEpisode:
        """An answered query, read again.

        Raises:
            NotFoundError: there is no such query or collection.
        """
        with self._database.read() as reader:
            return episodes.find(reader, collections.find(reader, collection).id, query_id)

    def _analyse(self, query: Query) -> tuple[dict[str, str], str | None]:
        """Normalised name -> mention, and the time constraint."""
        analysis = self._language.analyse_question(query.text)
        mentions = {normalise_entity(mention): mention for mention in analysis.entities}
        if query.time_constraint is not None:
            return mentions, query.time_constraint or None
        if self._llm_times and self._llm is not None:
            return mentions, self._llm.extract_time_constraint(query.text)
        return mentions, analysis.time_expression

    def _embed(
        self,
        question: str,
        constraint: str | None,
        mentions: Mapping[str, str],
        exact: Mapping[str, tuple[int, str]],
    ) -> tuple[Vector, Vector | None, dict[str, Vector]]:
        unmatched = [name for name in mentions if name not in exact]
        texts = [question, *(mentions[name] for name in unmatched), *([constraint] if constraint else [])]
        vectors = self._embedder.embed(texts)
        time_vector = vectors[-1] if constraint else None
        return vectors[0], time_vector, dict(zip(unmatched, vectors[1:], strict=False))

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
                    nearest = graph.nearest_entity(reader, collection, vector, self._limits)
                    # A negative cosine is no likeness, and a negative activation has no place in Eqs. 5-8.
                    if nearest is not None and nearest[2] > 0:
                        aligned.append(EntityAnswer(mentions[name], *nearest))
        return aligned

    def _ask_llm(self, question: str, sentences: Sequence[str]) -> bool:
        if self._llm is None:
            raise LlmNotConfiguredError("sufficiency 'llm' needs ENGRAM_LLM_BASE_URL to be set.")
        return self._llm.is_sufficient(question, sentences)

    def _rank(
        self, focus: Focus, query: Query, profile: Profile, walk: Walk, aligned: Sequence[EntityAnswer]
    ) -> tuple[list[tuple[int, float]], dict[int, StoredPassage], dict[int, list[StoredSentence]]]:
        """The best passages with their scores, what is stored of them, and their sentences if asked for."""
        evidence = walk.evidence
        touched = {passage for bonus in walk.bonuses for passage in bonus}
        touched.update(e.passage_id for e in evidence.values())
        with self._database.read() as reader:
            wanted = max(query.top_k, profile.ranked_passages)
            keyed = graph.nearest_passages(reader, focus, wanted, self._limits)
            missing = sorted((touched | walk.reached.keys()) - keyed.keys())
            if missing:
                keyed |= graph.keyed_passages(reader, focus, missing)
            similarities = {passage: key.similarity for passage, key in keyed.items()}
            if profile.weights is None:
                scores = ranking.passage_scores(similarities, walk.bonuses, profile.prior_weight)
            else:
                titled = _titled(keyed, aligned)
                scores = ranking.weighted_scores(similarities, walk.reached, titled, profile.weights)
            for sentence, prior in walk.priors.items():
                if sentence in evidence:
                    passage = evidence[sentence].passage_id
                    scores[passage] = scores.get(passage, 0.0) + profile.recall_weight * prior
            ranked = ranking.best(scores, query.top_k)
            shown = {passage for passage, _ in ranked}
            found = passages.by_id(reader, focus.collection.id, shown)
            sentences: dict[int, list[StoredSentence]] = {}
            if "sentences" in query.include:
                for stored in passages.sentences_of(reader, focus.collection.id, shown):
                    sentences.setdefault(stored.passage_id, []).append(stored)
        return [(passage, score) for passage, score in ranked if passage in found], found, sentences

    def _remember(
        self,
        collection: Collection,
        answer: Answer,
        trace: Trace,
        vector: Vector,
        time_vector: Vector | None,
        activated: Sequence[int],
    ) -> None:
        stored = asdict(answer)
        del stored["entities"], stored["trace"]
        stored["query_id"] = str(answer.query_id)
        row = EpisodeRow(
            id=answer.query_id,
            question=answer.query,
            embedding=vector,
            time_constraint=trace.time_constraint,
            time_embedding=time_vector,
            memory=answer.memory,
            profile=answer.profile,
            activated=activated,
            answer=stored,
            trace=asdict(trace),
        )
        with self._database.write() as writer:
            episodes.insert(writer, collection.id, row)


def _activated(aligned: Sequence[EntityAnswer]) -> dict[int, tuple[str, float]]:
    """Entity -> name and similarity; of several mentions of one entity the best counts."""
    ordered = sorted(aligned, key=lambda entity: entity.similarity)
    return {entity.entity_id: (entity.name, entity.similarity) for entity in ordered}


def _titled(keyed: Mapping[int, Keyed], aligned: Sequence[EntityAnswer]) -> set[int]:
    """Passages whose title is an entity of the question."""
    names = {normalise_entity(entity.name) for entity in aligned}
    return {
        passage
        for passage, key in keyed.items()
        if names.intersection(map(normalise_entity, title_entities(key.title)))
    }


def _ms(start: float, end: float) -> float:
    return round((end - start) * 1000.0, 3)


def _passage_answer(
    passage: StoredPassage, score: float, walk: Walk, sentences: Sequence[StoredSentence] | None
) -> PassageAnswer:
    """The passage with its selected sentences, or with all of them if ``sentences`` are given."""
    hops: dict[int, list[int]] = {}
    best: dict[int, float] = {}
    for number, hop in enumerate(walk.hops, start=1):
        score_of = dict(zip(hop.candidates.sentence_ids.tolist(), hop.scores.tolist(), strict=True))
        for sentence in hop.selected:
            hops.setdefault(sentence, []).append(number)
            best[sentence] = max(best.get(sentence, 0.0), score_of[sentence], walk.priors.get(sentence, 0.0))
    if sentences is None:
        chosen: list[Any] = [e for e in walk.evidence.values() if e.passage_id == passage.id]
        shown = [(e.sentence_id, e.position, e.text) for e in chosen]
    else:
        shown = [(sentence.id, sentence.position, sentence.text) for sentence in sentences]
    return PassageAnswer(
        passage.external_id,
        passage.title,
        passage.text,
        passage.metadata,
        score,
        [
            SentenceAnswer(identity, position, text, best.get(identity), hops.get(identity, []))
            for identity, position, text in sorted(shown, key=lambda row: row[1])
        ],
    )


def _recall_trace(walk: Walk) -> list[RecallTrace]:
    return [
        RecallTrace(
            past.sentence_id,
            past.question,
            past.similarity,
            past.support,
            past.perplexity,
            walk.priors.get(past.sentence_id, 0.0),
        )
        for past in walk.recalled
    ]


def _hop_traces(walk: Walk, learned_only: bool) -> list[HopTrace]:
    return [
        HopTrace(
            number,
            {hop.names[entity]: score for entity, score in hop.activation.items()},
            len(hop.candidates),
            _sentence_traces(hop, walk.priors if number == 1 else {}, learned_only),
            hop.coverage,
        )
        for number, hop in enumerate(walk.hops, start=1)
    ]


def _sentence_traces(hop: Hop, priors: Mapping[int, float], learned_only: bool) -> list[SentenceTrace]:
    rows = hop.candidates
    task = propagation.task_factor(rows, learned_only=learned_only)
    timed = propagation.time_factor(rows)
    traces = []
    for sentence in hop.selected:
        at = int(np.searchsorted(rows.sentence_ids, sentence))
        evidence = hop.evidence[sentence]
        traces.append(
            SentenceTrace(
                sentence,
                evidence.external_id,
                evidence.text,
                float(hop.scores[at]),
                float(rows.activation[at]),
                [hop.names[entity] for entity in evidence.entities if entity in hop.activation],
                float(rows.semantic[at]),
                float(task[at]),
                float(rows.task_perplexity[at]),
                float(timed[at]),
                float(rows.time_perplexity[at]),
                priors.get(sentence, 0.0),
            )
        )
    return traces
