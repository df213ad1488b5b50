"""Retrieval: carries out a plan, on one snapshot at a time. It explains, keeps and learns nothing."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engram.context import tenancy
from engram.context.errors import LlmError, LlmNotConfiguredError
from engram.core.ranking.profiles import Profile
from engram.core.ranking.same_need import ComparedQuestions
from engram.providers.llm import Llm
from engram.providers.ranking_prior import RankingPriors
from engram.services.retrieval import hop_loop
from engram.services.retrieval.answer_trace import EntityAnswer
from engram.services.retrieval.fallbacks import Fallback
from engram.services.retrieval.graph_cache import CachedGraph, GraphCache
from engram.services.retrieval.graph_walk import Frontier, Walk
from engram.services.retrieval.passage_key_cache import NearestLookup, PassageKeyCache
from engram.services.retrieval.passage_ranking import PassageRanking, rank
from engram.services.retrieval.passage_reranking import PassageReranker
from engram.services.retrieval.possible_names import add_possible_names
from engram.services.retrieval.query import Query
from engram.services.retrieval.query_plan import QueryPlan, QueryPlanner, milliseconds
from engram.services.retrieval.question_rule import QuestionRule
from engram.services.retrieval.question_spreads import QuestionSpreads
from engram.services.retrieval.shown_passages import ShownPassages, choose_best, depth
from engram.storage.corpus import current_vectors, passages, reader_sets
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.current_vectors import Current
from engram.storage.corpus.passages import StoredPassage, StoredSentence
from engram.storage.database import Database, Reader
from engram.storage.learning.question_supports import PastSupport
from engram.storage.learning.walk_opening import WalkOpening
from engram.storage.retrieval import entity_lookup
from engram.telemetry.stages import stage

MOST_SEEN = 5_000
"""Passages that a caller sees, up to which a collection with a vector index is searched exactly."""


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """Result of a query's retrieval.

    Attributes:
        entities: that its mentions were aligned to.
        shown: what its answer shows.
        passages: of these, of their duplicates and of the pool, as they can be read.
        sentences: passage -> all its sentences, if the query asked for them.
    """

    plan: QueryPlan
    entities: Sequence[EntityAnswer]
    walk: Walk
    ranking: PassageRanking
    shown: ShownPassages
    passages: Mapping[int, StoredPassage]
    sentences: Mapping[int, Sequence[StoredSentence]]
    search_ms: float

    @property
    def shown_passages(self) -> list[tuple[int, str, float]]:
        """Passage, external id and score, in the order of the answer."""
        return [
            (passage, self.passages[passage].external_id, score)
            for passage, score in self.shown.best
            if passage in self.passages
        ]


@dataclass(frozen=True, slots=True)
class _Search:
    """A search as far as it has come.

    Attributes:
        began: when it began, by ``time.perf_counter``. Time spent on embedding names does not count.
        entities: entities that the mentions were aligned to.
        walk: None until the mentions are aligned.
    """

    began: float
    entities: Sequence[EntityAnswer] = ()
    walk: Walk | None = None

    @classmethod
    def begin(cls, plan: QueryPlan) -> "_Search":
        """Begin a search. Any strategy but "graph" gets a walk without hops."""
        return cls(
            time.perf_counter(), walk=None if plan.query.strategy == "graph" else Walk(stop_reason="no_hops")
        )

    @property
    def begun_walk(self) -> Walk:
        """The walk, once mentions are aligned."""
        assert self.walk is not None  # noqa: S101 - the caller saw to it
        return self.walk


@dataclass(frozen=True, slots=True)
class _Found:
    """A search that has come to its end."""

    search: _Search
    walk: Walk
    ranking: PassageRanking


@dataclass(frozen=True, slots=True)
class _OtherVectors:
    """A search whose collection has changed its vectors since the plan was made."""

    search: _Search
    collection: Collection


@dataclass(frozen=True, slots=True)
class _UnknownNames:
    """A search that needs names embedded, because no entity bears them."""

    search: _Search
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class _UnjudgedWalk:
    """A search that has to ask the endpoint whether the evidence of its walk suffices."""

    search: _Search
    walk: Walk


@dataclass(frozen=True, slots=True)
class _UnreadCandidates:
    """A search whose best candidates the reranker has to read."""

    search: _Search
    passages: Sequence[tuple[int, StoredPassage]]


_Want = _OtherVectors | _UnknownNames | _UnjudgedWalk | _UnreadCandidates


class RetrievalService:
    """Finds what questions ask for."""

    def __init__(
        self,
        database: Database,
        planner: QueryPlanner,
        priors: RankingPriors,
        kept_keys: PassageKeyCache,
        graphs: GraphCache,
        spreads: QuestionSpreads,
        llm: Llm | None = None,
        *,
        threshold: float,
        reranker: PassageReranker | None = None,
        rules: Sequence[QuestionRule] = (),
    ) -> None:
        """Take the parts that a search uses.

        Args:
            kept_keys: passage keys that the process keeps in memory.
            graphs: what the process has read of the graphs.
            spreads: how near questions of each collection come to each other.
            threshold: probability of sufficiency from which on hops end (stop_rule "learned"), in [0, 1].
            reranker: reads the best candidates where features rank.
            rules: choose one after another which passages an answer shows.
        """
        self._reranker = reranker
        self._rules = rules
        self._threshold = threshold
        self._database = database
        self._kept_keys = kept_keys
        self._graphs = graphs
        self._spreads = spreads
        self._planner = planner
        self._priors = priors
        self._llm = llm

    def with_priors(self, priors: RankingPriors) -> "RetrievalService":
        """For the evaluation: return a service that ranks by other weights."""
        return RetrievalService(
            self._database,
            self._planner,
            priors,
            self._kept_keys,
            self._graphs,
            self._spreads,
            self._llm,
            threshold=self._threshold,
            reranker=self._reranker,
            rules=self._rules,
        )

    def plan(self, query: Query, profile: Profile | None = None) -> QueryPlan:
        """Plan the query: see ``QueryPlanner.plan``.

        Raises:
            InvalidRequestError, LlmNotConfiguredError: as ``QueryPlanner.plan``.
        """
        return self._narrow(self._planner.plan(query, profile))

    def _narrow(self, plan: QueryPlan) -> QueryPlan:
        """Have a caller who sees few passages search these exactly: an index would find others, and drop them."""
        if tenancy.get_visibility().readers is None or "passage" not in plan.collection.indexed:
            return plan
        with self._database.read() as reader:
            seen = reader_sets.list_visible(reader, plan.collection.id, MOST_SEEN)
        if seen is None:
            return plan
        among = seen if plan.focus.among is None else sorted(set(seen).intersection(plan.focus.among))
        return replace(plan, focus=replace(plan.focus, among=among))

    def find(self, plan: QueryPlan) -> RetrievalResult:
        """Execute the plan."""
        with self.on_snapshot(plan) as (_, retrieved):
            return retrieved

    @contextmanager
    def on_snapshot(self, plan: QueryPlan) -> Iterator[tuple[Reader, RetrievalResult]]:
        """Execute the plan, and keep its snapshot open for further reads.

        The search reads one snapshot and closes it while others work: names are embedded, the endpoint is asked
        whether the evidence suffices, a reranker reads. It then goes on with its walk on a new snapshot. If the
        endpoint fails, the walk goes on to its last hop; if the reranker does, the ranking without it answers. The
        plan's warnings say so.
        """
        search = _Search.begin(plan)
        while True:
            with self._database.snapshot() as reader:
                plan = add_possible_names(reader, plan)
                found = self._search(reader, plan, search)
                if isinstance(found, _Found):
                    yield reader, self._retrieve(reader, plan, found)
                    return
            plan, search = self._fetch(plan, found)

    def _search(self, reader: Reader, plan: QueryPlan, search: _Search) -> _Found | _Want:
        """Go on with a search on this snapshot: align, walk, rank. Return the result, or what is needed first.

        What is needed takes a while, so ``_fetch`` gets it when the snapshot is closed.
        """
        aligned = search.walk is not None
        with nullcontext() if aligned else stage("align"):
            opened = None if aligned else hop_loop.read_opening(reader, plan)
            current = current_vectors.find_current(reader, plan.collection.id) if opened is None else opened.current
            moved = current_vectors.load_if_moved(reader, plan.collection, current)
            if moved is not None:
                return _OtherVectors(search, moved)
            nearest_lookup = self._kept_keys.prepare_search(reader, plan.focus, current)
            graph = self._graphs.open(reader, plan.focus, current)
            if search.walk is None:
                entities, unknown, opened = _align_mentions(reader, plan, opened)
                if unknown:
                    return _UnknownNames(search, unknown)
                compare_questions = partial(self._compare_questions, reader, plan, current)
                frontier = build_first_frontier(entities)
                walk = hop_loop.begin(reader, plan, frontier, nearest_lookup, compare_questions, opened)
                search = replace(search, entities=entities, walk=walk)
        walk, ranking = self._advance_walk(reader, plan, search.begun_walk, nearest_lookup, graph)
        search = replace(search, walk=walk)
        if walk.stop_reason is None:
            return _UnjudgedWalk(search, walk)
        if self._is_reranking(plan):
            ranking = ranking or self._rank_passages(reader, plan, walk, nearest_lookup, graph)
            if unread := self._read_candidates(reader, plan, ranking):
                return _UnreadCandidates(search, unread)
        return _Found(search, walk, ranking or self._rank_passages(reader, plan, walk, nearest_lookup, graph))

    def _fetch(self, plan: QueryPlan, want: _Want) -> tuple[QueryPlan, _Search]:
        """Fetch what a search needs; no transaction is open. Return the plan and the search to go on with."""
        search = want.search
        match want:
            case _OtherVectors():  # they have taken the place of those that the plan was made for
                plan = self._narrow(self._planner.plan_again(plan, want.collection))
                return plan, _Search.begin(plan)
            case _UnreadCandidates():
                return self._rerank_plan(plan, want.passages), search
            case _UnknownNames():
                paused_at = time.perf_counter()
                plan = self._planner.embed_mentions(plan, want.names)
                return plan, replace(search, began=search.began + time.perf_counter() - paused_at)
            case _UnjudgedWalk():
                try:
                    if self._is_sufficient(plan, want.walk):
                        search = replace(search, walk=replace(want.walk, stop_reason="sufficient"))
                except LlmError as error:  # and it is not asked again: it took its tries
                    missed = Fallback("sufficiency-not-judged", error.detail)
                    plan = replace(plan, stop_rule="none", warnings=(*plan.warnings, missed))
                return plan, search

    def _compare_questions(
        self, reader: Reader, plan: QueryPlan, current: Current | None, past: Sequence[PastSupport]
    ) -> ComparedQuestions | None:
        return self._spreads.compare(reader, plan.collection, current, plan.query.text, plan.focus.vector, past)

    def features(self, query: Query) -> tuple[list[str], NDArray[np.float64]]:
        """External ids of the passages that are ranked for a question, (n,), and their features, (n, k)."""
        with self.on_snapshot(self.plan(query)) as (reader, retrieved):
            candidates = retrieved.ranking.candidates.tolist()
            stored = passages.load_by_id(reader, query.scope.collection.id, candidates)
        places = [at for at, passage in enumerate(candidates) if passage in stored]
        return [stored[candidates[at]].external_id for at in places], retrieved.ranking.features[places]

    def _advance_walk(
        self, reader: Reader, plan: QueryPlan, walk: Walk, nearest_lookup: NearestLookup, graph: CachedGraph
    ) -> tuple[Walk, PassageRanking | None]:
        """Make hops until the walk stops or an endpoint has to be asked; return the walk and its ranking.

        The ranking is None unless stop rule "learned", which ranks after every hop, ended the walk.
        """
        walk = self._walk_hops(reader, plan, walk, graph)
        while plan.stop_rule == "learned" and walk.stop_reason is None:
            ranking = self._rank_passages(reader, plan, walk, nearest_lookup, graph)
            if ranking.sufficiency is not None and ranking.sufficiency.probability >= self._threshold:
                return replace(walk, stop_reason="sufficient"), ranking
            walk = self._walk_hops(reader, plan, walk, graph)
        return walk, None

    def _walk_hops(self, reader: Reader, plan: QueryPlan, walk: Walk, graph: CachedGraph) -> Walk:
        with stage("walk"):
            return hop_loop.advance(reader, plan, walk, graph)

    def _rank_passages(
        self, reader: Reader, plan: QueryPlan, walk: Walk, nearest_lookup: NearestLookup, graph: CachedGraph
    ) -> PassageRanking:
        with stage("rank"):
            prior = self._priors.select_kind(plan.collection.corpus_kind)
            return rank(reader, plan, walk, prior, depth(plan), nearest_lookup, graph)

    def _retrieve(self, reader: Reader, plan: QueryPlan, found: _Found) -> RetrievalResult:
        """Read what the answer shows."""
        ranking = found.ranking
        with stage("read"):
            shown = self._choose_shown(reader, plan, ranking)
            shown_passages = [passage for passage, _ in shown.best]
            duplicates = {one for one, passage in ranking.stand_in_by_passage.items() if passage in shown_passages}
            sentences: dict[int, list[StoredSentence]] = {}
            if "sentences" in plan.query.include:
                for sentence in passages.list_sentences(reader, plan.collection.id, shown_passages):
                    sentences.setdefault(sentence.passage_id, []).append(sentence)
            return RetrievalResult(
                plan=plan,
                entities=found.search.entities,
                walk=found.walk,
                ranking=ranking,
                shown=shown,
                passages=passages.load_by_id(
                    reader, plan.collection.id, sorted({*shown_passages, *duplicates, *ranking.pooled})
                ),
                sentences=sentences,
                search_ms=milliseconds(found.search.began, time.perf_counter()),
            )

    def _choose_shown(self, reader: Reader, plan: QueryPlan, ranking: PassageRanking) -> ShownPassages:
        """The passages that the answer shows: the best, changed by the rules unless the answer is withheld."""
        shown = choose_best(plan, ranking)
        for rule in () if shown.withheld else self._rules:
            shown = rule.choose(reader, plan, ranking, shown)
        return shown

    def _is_reranking(self, plan: QueryPlan) -> bool:
        """Tell whether a reranker is still to read the best candidates."""
        by_features = plan.query.strategy == "graph" and plan.profile.by_features
        trusted = self._priors.select_kind(plan.collection.corpus_kind).reranker
        return self._reranker is not None and plan.reranked is None and by_features and trusted is not None

    def _read_candidates(
        self, reader: Reader, plan: QueryPlan, ranking: PassageRanking
    ) -> list[tuple[int, StoredPassage]]:
        """Read the best candidates that a reranker reads."""
        assert self._reranker is not None  # noqa: S101 - the caller saw to it
        best = ranking.candidates[: self._reranker.candidates].tolist()
        stored = passages.load_by_id(reader, plan.collection.id, sorted(best))
        return [(passage, stored[passage]) for passage in best if passage in stored]

    def _rerank_plan(self, plan: QueryPlan, unread: Sequence[tuple[int, StoredPassage]]) -> QueryPlan:
        """The plan with what the reranker says; no transaction is open."""
        assert self._reranker is not None  # noqa: S101 - else there is nothing unread
        odds = self._reranker.rerank(plan.query.text, unread)
        if isinstance(odds, Fallback):
            return replace(plan, reranked={}, warnings=(*plan.warnings, odds))
        return replace(plan, reranked=odds)

    def _is_sufficient(self, plan: QueryPlan, walk: Walk) -> bool:
        if self._llm is None:
            raise LlmNotConfiguredError("stop_rule 'llm' needs ENGRAM_LLM_BASE_URL to be set.")
        return self._llm.is_sufficient(plan.query.text, walk.texts)


def _align_mentions(
    reader: Reader, plan: QueryPlan, opened: WalkOpening | None
) -> tuple[list[EntityAnswer], list[str], WalkOpening | None]:
    """Align each mention to its most similar entity (Eq. 3).

    An equal name is the most similar by definition, and one that is only spelt otherwise is taken for equal.

    Returns:
        The entities, the names that must be embedded first, and the opening if every name was found by its words.
    """
    called: dict[str, tuple[int, str]] = {}
    if opened is not None:
        called = opened.called
    elif plan.mentions:
        called = entity_lookup.find_called_entities(reader, plan.collection, list(plan.mentions))
    entities = [EntityAnswer(plan.mentions[name], *called[name], 1.0) for name in plan.mentions if name in called]
    unmatched = [name for name in plan.mentions if name not in called]
    unknown = [name for name in unmatched if name not in plan.unknown]
    for name in unmatched if not unknown else ():
        nearest = entity_lookup.find_nearest_entity(reader, plan.collection, plan.unknown[name], plan.focus.limits)
        # A negative cosine is no likeness, and a negative activation has no place in Eqs. 5-8.
        if nearest is not None and nearest[2] > 0:
            entities.append(EntityAnswer(plan.mentions[name], *nearest))
    return entities, unknown, None if unmatched else opened


def build_first_frontier(entities: Sequence[EntityAnswer]) -> Frontier:
    """Return the frontier of the first hop; of several mentions of one entity the best counts."""
    ordered = sorted(entities, key=lambda entity: entity.similarity)
    return Frontier(
        {entity.entity_id: entity.similarity for entity in ordered},
        {entity.entity_id: entity.name for entity in ordered},
    )
