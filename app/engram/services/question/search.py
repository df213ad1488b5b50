"""Step 3: carry out the plan: align, walk, rank, choose. It alone opens snapshots, one at a time."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import LlmError
from engram.core.ranking.profiles import Profile
from engram.providers.ranking_prior import RankingPriors
from engram.services.question.align import add_possible_names, align_mentions, build_first_frontier
from engram.services.question.caches import GraphCache, PassageKeyCache
from engram.services.question.plan import QueryPlan, QueryPlanner, Search
from engram.services.question.query import Fallback, Query
from engram.services.question.question_spreads import QuestionSpreads
from engram.services.question.ranking import PassageRanking, rank
from engram.services.question.reranking import PassageReranker
from engram.services.question.shown import QuestionRule, ShownPassages, choose_best
from engram.services.question.trace import EntityAnswer, VersionTrace
from engram.services.question.versions import prefer_newer, put_asked_version_first
from engram.services.question.walk import Walk, advance, begin, read_opening
from engram.storage.corpus import current_vectors, passages
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.current_vectors import Current
from engram.storage.corpus.passages import StoredPassage, StoredSentence
from engram.storage.database import Database, Reader
from engram.telemetry.stages import milliseconds, stage


@dataclass(frozen=True, slots=True)
class RetrievalResult:
    """Result of a query's retrieval.

    Attributes:
        entities: that its mentions were aligned to.
        shown: what its answer shows.
        passages: of these, of their duplicates and of the pool, as they can be read.
        sentences: passage -> all its sentences, if the query asked for them.
        versions: which version the question was taken to be about; None where nothing has another version.
    """

    plan: QueryPlan
    entities: Sequence[EntityAnswer]
    walk: Walk
    ranking: PassageRanking
    shown: ShownPassages
    passages: Mapping[int, StoredPassage]
    sentences: Mapping[int, Sequence[StoredSentence]]
    search_ms: float
    versions: VersionTrace | None = None

    @property
    def shown_passages(self) -> list[tuple[int, str, float]]:
        """Passage, external id and score, in the order of the answer."""
        return [
            (passage, self.passages[passage].external_id, score)
            for passage, score in self.shown.best
            if passage in self.passages
        ]


_Fetch = Callable[[], None]
"""Fetches what a search needs before it can go on. It takes a while, so it is called while no snapshot is open."""


@dataclass(slots=True)
class _Progress:
    """Progress of a search, which outlasts its snapshots.

    Attributes:
        began: when it began, by ``time.perf_counter``. Time spent on embedding names does not count.
        entities: entities that the mentions were aligned to; None until they are.
        search: what its steps share on the present snapshot.
        ranking: once the walk has stopped.
    """

    plan: QueryPlan
    began: float = field(init=False)
    entities: Sequence[EntityAnswer] | None = field(init=False)
    walk: Walk = field(init=False)
    search: Search = field(init=False)
    ranking: PassageRanking = field(init=False)

    def __post_init__(self) -> None:
        self.begin(self.plan)

    def begin(self, plan: QueryPlan) -> None:
        """Begin the search, or begin again. Any strategy but "graph" gets a walk without hops."""
        walks = plan.query.strategy == "graph"
        self.plan, self.began = plan, time.perf_counter()
        self.entities, self.walk = (None, Walk()) if walks else ((), Walk(stop_reason="no_hops"))


@dataclass(frozen=True, slots=True)
class RetrievalService:
    """Finds what questions ask for.

    Attributes:
        kept_keys: passage keys that the process keeps in memory.
        graphs: what the process has read of the graphs.
        spreads: how near questions of each collection come to each other.
        threshold: probability of sufficiency from which on hops end (stop_rule "learned"), in [0, 1].
        reranker: reads the best candidates where features rank.
        rules: choose one after another which passages an answer shows.
    """

    database: Database
    planner: QueryPlanner
    priors: RankingPriors
    kept_keys: PassageKeyCache
    graphs: GraphCache
    spreads: QuestionSpreads
    threshold: float
    reranker: PassageReranker | None = None
    rules: Sequence[QuestionRule] = ()

    def plan(self, query: Query, profile: Profile | None = None, like: QueryPlan | None = None) -> QueryPlan:
        """Plan the query, see ``QueryPlanner.plan``."""
        return self.planner.plan(query, profile, like=like)

    def find(self, plan: QueryPlan) -> RetrievalResult:
        """Carry out the plan."""
        with self.on_snapshot(plan) as (_, retrieved):
            return retrieved

    @contextmanager
    def on_snapshot(self, plan: QueryPlan) -> Iterator[tuple[Reader, RetrievalResult]]:
        """Carry out the plan, and keep its snapshot open for further reads.

        The search reads one snapshot and closes it while others work: names are embedded, the endpoint is asked
        whether the evidence suffices, a reranker reads. It then goes on with its walk on a new snapshot. If the
        endpoint fails, the walk goes on to its last hop; if the reranker does, the ranking without it answers. The
        plan's warnings say so.
        """
        progress = _Progress(plan)
        while True:
            with self.database.snapshot() as reader:
                progress.plan = add_possible_names(reader, progress.plan)
                fetch = self._align(reader, progress) or self._rank(progress)
                if fetch is None:
                    yield reader, self._read_result(progress)
                    return
            fetch()

    def _align(self, reader: Reader, progress: _Progress) -> _Fetch | None:
        """Open the search on this snapshot, and begin the walk if none has begun; what has to be fetched first."""
        plan = progress.plan
        if progress.entities is not None:
            return self._open_search(reader, progress, current_vectors.find_current(reader, plan.collection.id))
        with stage("align"):
            opened = read_opening(reader, plan)
            current = current_vectors.find_current(reader, plan.collection.id) if opened is None else opened.current
            if fetch := self._open_search(reader, progress, current):
                return fetch
            entities, unknown, opened = align_mentions(reader, plan, opened)
            if unknown:
                return partial(self._embed_names, progress, unknown)
            compare_questions = partial(
                self.spreads.compare, reader, plan.collection, current, plan.question, plan.focus.vector
            )
            progress.walk = begin(progress.search, build_first_frontier(entities), compare_questions, opened)
            progress.entities = entities
            return None

    def _open_search(self, reader: Reader, progress: _Progress, current: Current | None) -> _Fetch | None:
        """Open the search; what plans again first, if the collection is compared by other vectors now."""
        plan = progress.plan
        reembedded = current_vectors.load_if_moved(reader, plan.collection, current)
        if reembedded is not None:
            return partial(self._plan_again, progress, reembedded, current)
        if current is not None and plan.question_generation not in {None, current.question_generation}:
            return partial(self._plan_again, progress, plan.collection, current)
        progress.search = Search(
            reader,
            plan,
            prior=self.priors.select_kind(plan.collection.corpus_kind),
            keys=self.kept_keys.prepare_search(reader, plan.focus, current),
            graph=self.graphs.open(reader, plan.focus, current),
        )
        return None

    def _rank(self, progress: _Progress) -> _Fetch | None:
        """Walk on and rank; what has to be fetched before the walk or the ranking is complete."""
        search = progress.search
        progress.walk, ranking = self._advance_walk(search, progress.walk)
        if progress.walk.stop_reason is None:
            return partial(self._judge_walk, progress)
        progress.ranking = ranking or rank(search, progress.walk)
        unread = self._read_candidates(search, progress.ranking) if self._is_reranking(search) else ()
        return partial(self._rerank, progress, unread) if unread else None

    def _plan_again(self, progress: _Progress, collection: Collection, current: Current | None) -> None:
        """Plan for what the collection is compared by now, and begin again."""
        generation = 0 if current is None else current.question_generation
        progress.begin(self.planner.plan_again(progress.plan, collection, generation))

    def _embed_names(self, progress: _Progress, names: Sequence[str]) -> None:
        """Embed names that no entity bears."""
        paused_at = time.perf_counter()
        progress.plan = self.planner.embed_mentions(progress.plan, names)
        progress.began += time.perf_counter() - paused_at

    def _judge_walk(self, progress: _Progress) -> None:
        """Ask the endpoint whether the evidence of the walk suffices."""
        llm = self.planner.llm
        assert llm is not None  # noqa: S101 - else the planner refuses stop_rule "llm"
        try:
            if llm.is_sufficient(progress.plan.question, progress.walk.texts):
                progress.walk = replace(progress.walk, stop_reason="sufficient")
        except LlmError as error:  # and it is not asked again: it took its tries
            missed = Fallback("sufficiency-not-judged", error.detail)
            progress.plan = replace(progress.plan, stop_rule="none", warnings=(*progress.plan.warnings, missed))

    def _rerank(self, progress: _Progress, unread: Sequence[tuple[int, StoredPassage]]) -> None:
        """Have the reranker read the best candidates."""
        assert self.reranker is not None  # noqa: S101 - else there is nothing unread
        plan, odds = progress.plan, self.reranker.rerank(progress.plan.question, unread)
        if isinstance(odds, Fallback):
            progress.plan = replace(plan, reranked={}, warnings=(*plan.warnings, odds))
        else:
            progress.plan = replace(plan, reranked=odds)

    def features(self, query: Query) -> tuple[list[str], NDArray[np.float64]]:
        """External ids of the passages that are ranked for a question, (n,), and their features, (n, k)."""
        with self.on_snapshot(self.plan(query)) as (reader, retrieved):
            candidates = retrieved.ranking.candidates.tolist()
            stored = passages.load_by_id(reader, query.scope.collection.id, candidates)
        places = [at for at, passage in enumerate(candidates) if passage in stored]
        return [stored[candidates[at]].external_id for at in places], retrieved.ranking.features[places]

    def _advance_walk(self, search: Search, walk: Walk) -> tuple[Walk, PassageRanking | None]:
        """Make hops until the walk stops or an endpoint has to be asked; return the walk and its ranking.

        The ranking is None unless stop rule "learned", which ranks after every hop, ended the walk.
        """
        while True:
            with stage("walk"):
                walk = advance(search, walk)
            if search.plan.stop_rule != "learned" or walk.stop_reason is not None:
                return walk, None
            ranking = rank(search, walk)
            if ranking.sufficiency is not None and ranking.sufficiency.steering >= self.threshold:
                return replace(walk, stop_reason="sufficient"), ranking

    def _is_reranking(self, search: Search) -> bool:
        """Tell whether a reranker is still to read the best candidates."""
        plan = search.plan
        return (
            self.reranker is not None
            and plan.reranked is None
            and plan.query.strategy == "graph"
            and plan.retriever is None
            and search.prior.reranker is not None
        )

    def _read_candidates(self, search: Search, ranking: PassageRanking) -> list[tuple[int, StoredPassage]]:
        """Read the best candidates that a reranker reads."""
        assert self.reranker is not None  # noqa: S101 - the caller saw to it
        best = ranking.candidates[: self.reranker.candidates].tolist()
        stored = passages.load_by_id(search.reader, search.plan.collection.id, sorted(best))
        return [(passage, stored[passage]) for passage in best if passage in stored]

    def _read_result(self, progress: _Progress) -> RetrievalResult:
        """Read what the answer shows."""
        search, ranking = progress.search, progress.ranking
        reader, plan = search.reader, search.plan
        with stage("read"):
            ranking, versions = put_asked_version_first(reader, plan, prefer_newer(reader, plan, ranking))
            chosen = self._choose_shown(search, ranking)
            shown_passages = [passage for passage, _ in chosen.best]
            duplicates = {one for one, passage in ranking.stand_in_by_passage.items() if passage in shown_passages}
            sentences: dict[int, list[StoredSentence]] = {}
            if "sentences" in plan.query.include:
                for sentence in passages.list_sentences(reader, plan.collection.id, shown_passages):
                    sentences.setdefault(sentence.passage_id, []).append(sentence)
            return RetrievalResult(
                plan=plan,
                entities=progress.entities or (),
                walk=progress.walk,
                ranking=ranking,
                shown=chosen,
                passages=passages.load_by_id(
                    reader, plan.collection.id, sorted({*shown_passages, *duplicates, *ranking.pooled})
                ),
                sentences=sentences,
                versions=versions,
                search_ms=milliseconds(progress.began, time.perf_counter()),
            )

    def _choose_shown(self, search: Search, ranking: PassageRanking) -> ShownPassages:
        """The passages that the answer shows: the best, changed by the rules unless the answer is withheld."""
        chosen = choose_best(search.plan, ranking)
        for rule in () if chosen.withheld else self.rules:
            chosen = rule.choose(search.reader, search.plan, ranking, chosen)
        return chosen
