"""Step 3: carry out the plan: align, walk, rank, choose. It alone opens snapshots, one at a time."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import LlmError, LlmNotConfiguredError
from engram.providers.llm import Llm
from engram.providers.ranking_prior import RankingPriors
from engram.services.question.align import add_possible_names, align_mentions, build_first_frontier
from engram.services.question.caches import GraphCache, PassageKeyCache
from engram.services.question.plan import QueryPlan, QueryPlanner, Search, milliseconds
from engram.services.question.query import Fallback, Query
from engram.services.question.question_spreads import QuestionSpreads
from engram.services.question.ranking import PassageRanking, rank
from engram.services.question.reranking import PassageReranker
from engram.services.question.shown import QuestionRule, ShownPassages, choose_best, depth
from engram.services.question.trace import EntityAnswer, VersionTrace
from engram.services.question.versions import prefer_newer, put_asked_version_first
from engram.services.question.walk import Walk, advance, begin, read_opening
from engram.storage.corpus import current_vectors, passages
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.current_vectors import Current
from engram.storage.corpus.passages import StoredPassage, StoredSentence
from engram.storage.database import Database, Reader
from engram.telemetry.stages import stage


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


@dataclass(frozen=True, slots=True)
class _Progress:
    """Progress of a search, which outlasts its snapshots.

    Attributes:
        began: when it began, by ``time.perf_counter``. Time spent on embedding names does not count.
        entities: entities that the mentions were aligned to.
        walk: None until the mentions are aligned.
    """

    began: float
    entities: Sequence[EntityAnswer] = ()
    walk: Walk | None = None

    @classmethod
    def begin(cls, plan: QueryPlan) -> "_Progress":
        """Begin a search. Any strategy but "graph" gets a walk without hops."""
        return cls(
            time.perf_counter(), walk=None if plan.query.strategy == "graph" else Walk(stop_reason="no_hops")
        )


_Fetch = Callable[[], tuple[QueryPlan, _Progress]]
"""Fetches what a search needs before it can go on. It takes a while, so it is called while no snapshot is open."""


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
        self.plan = planner.plan
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
        progress = _Progress.begin(plan)
        while True:
            with self._database.snapshot() as reader:
                plan = add_possible_names(reader, plan)
                outcome = self._go_on(reader, plan, progress)
                if isinstance(outcome, RetrievalResult):
                    yield reader, outcome
                    return
            plan, progress = outcome()

    def _go_on(self, reader: Reader, plan: QueryPlan, progress: _Progress) -> RetrievalResult | _Fetch:
        """Go on with a search on this snapshot. Return the result, or what fetches what is needed first."""
        walk = progress.walk
        with nullcontext() if walk is not None else stage("align"):
            opened = None if walk is not None else read_opening(reader, plan)
            current = current_vectors.find_current(reader, plan.collection.id) if opened is None else opened.current
            reembedded = current_vectors.load_if_moved(reader, plan.collection, current)
            if reembedded is not None:
                return partial(self._plan_again, plan, reembedded, current)
            if current is not None and plan.question_generation not in {None, current.question_generation}:
                return partial(self._plan_again, plan, plan.collection, current)
            search = self._open_search(reader, plan, current)
            if walk is None:
                entities, unknown, opened = align_mentions(reader, plan, opened)
                if unknown:
                    return partial(self._embed_names, plan, progress, unknown)
                compare_questions = partial(
                    self._spreads.compare, reader, plan.collection, current, plan.question, plan.focus.vector
                )
                walk = begin(search, build_first_frontier(entities), compare_questions, opened)
                progress = replace(progress, entities=entities)
        walk, ranking = self._advance_walk(search, walk)
        progress = replace(progress, walk=walk)
        if walk.stop_reason is None:
            return partial(self._judge_walk, plan, progress, walk)
        if self._is_reranking(search):
            ranking = ranking or self._rank_passages(search, walk)
            if unread := self._read_candidates(search, ranking):
                return partial(self._rerank, plan, progress, unread)
        return self._read_result(search, progress, walk, ranking or self._rank_passages(search, walk))

    def _open_search(self, reader: Reader, plan: QueryPlan, current: Current | None) -> Search:
        return Search(
            reader,
            plan,
            prior=self._priors.select_kind(plan.collection.corpus_kind),
            keys=self._kept_keys.prepare_search(reader, plan.focus, current),
            graph=self._graphs.open(reader, plan.focus, current),
        )

    def _plan_again(
        self, plan: QueryPlan, collection: Collection, current: Current | None
    ) -> tuple[QueryPlan, _Progress]:
        """Plan for what the collection is compared by now, and begin again."""
        plan = self._planner.plan_again(plan, collection, 0 if current is None else current.question_generation)
        return plan, _Progress.begin(plan)

    def _embed_names(
        self, plan: QueryPlan, progress: _Progress, names: Sequence[str]
    ) -> tuple[QueryPlan, _Progress]:
        """Embed names that no entity bears."""
        paused_at = time.perf_counter()
        plan = self._planner.embed_mentions(plan, names)
        return plan, replace(progress, began=progress.began + time.perf_counter() - paused_at)

    def _judge_walk(self, plan: QueryPlan, progress: _Progress, walk: Walk) -> tuple[QueryPlan, _Progress]:
        """Ask the endpoint whether the evidence of the walk suffices."""
        if self._llm is None:
            raise LlmNotConfiguredError("stop_rule 'llm' needs ENGRAM_LLM_BASE_URL to be set.")
        try:
            if self._llm.is_sufficient(plan.question, walk.texts):
                progress = replace(progress, walk=replace(walk, stop_reason="sufficient"))
        except LlmError as error:  # and it is not asked again: it took its tries
            missed = Fallback("sufficiency-not-judged", error.detail)
            plan = replace(plan, stop_rule="none", warnings=(*plan.warnings, missed))
        return plan, progress

    def _rerank(
        self, plan: QueryPlan, progress: _Progress, unread: Sequence[tuple[int, StoredPassage]]
    ) -> tuple[QueryPlan, _Progress]:
        """Have the reranker read the best candidates."""
        assert self._reranker is not None  # noqa: S101 - else there is nothing unread
        odds = self._reranker.rerank(plan.question, unread)
        if isinstance(odds, Fallback):
            return replace(plan, reranked={}, warnings=(*plan.warnings, odds)), progress
        return replace(plan, reranked=odds), progress

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
        walk = self._walk_hops(search, walk)
        while search.plan.stop_rule == "learned" and walk.stop_reason is None:
            ranking = self._rank_passages(search, walk)
            if ranking.sufficiency is not None and ranking.sufficiency.probability >= self._threshold:
                return replace(walk, stop_reason="sufficient"), ranking
            walk = self._walk_hops(search, walk)
        return walk, None

    def _walk_hops(self, search: Search, walk: Walk) -> Walk:
        with stage("walk"):
            return advance(search, walk)

    def _rank_passages(self, search: Search, walk: Walk) -> PassageRanking:
        with stage("rank"):
            return rank(search, walk, depth(search.plan))

    def _is_reranking(self, search: Search) -> bool:
        """Tell whether a reranker is still to read the best candidates."""
        plan = search.plan
        return (
            self._reranker is not None
            and plan.reranked is None
            and plan.query.strategy == "graph"
            and plan.retriever is None
            and search.prior.reranker is not None
        )

    def _read_candidates(self, search: Search, ranking: PassageRanking) -> list[tuple[int, StoredPassage]]:
        """Read the best candidates that a reranker reads."""
        assert self._reranker is not None  # noqa: S101 - the caller saw to it
        best = ranking.candidates[: self._reranker.candidates].tolist()
        stored = passages.load_by_id(search.reader, search.plan.collection.id, sorted(best))
        return [(passage, stored[passage]) for passage in best if passage in stored]

    def _read_result(
        self, search: Search, progress: _Progress, walk: Walk, ranking: PassageRanking
    ) -> RetrievalResult:
        """Read what the answer shows."""
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
                entities=progress.entities,
                walk=walk,
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
        for rule in () if chosen.withheld else self._rules:
            chosen = rule.choose(search.reader, search.plan, ranking, chosen)
        return chosen
