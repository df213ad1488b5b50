"""One question under two arms, side by side. Nothing is remembered of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.core.ranking.profiles import ProfileName
from engram.core.text.passage_source import PassageSource, read_source
from engram.services.question.answer import Timings, build_timings
from engram.services.question.plan import QueryPlan
from engram.services.question.query import Fallback, Memory, Query, Strategy
from engram.services.question.search import RetrievalResult, RetrievalService
from engram.services.question.walk import StopReason
from engram.services.replicas.replica_reads import Reads


@dataclass(frozen=True, slots=True)
class ComparedPassage:
    """A passage among the first of either arm; rank, from 1, and score are None where an arm did not rank it."""

    passage_id: str
    title: str | None
    text: str
    source: PassageSource
    rank_a: int | None
    rank_b: int | None
    score_a: float | None
    score_b: float | None


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """Memory that an arm read.

    Attributes:
        recalled: sentences that verdicts on past questions brought in.
        moved: selected sentences whose memories a verdict had moved.
        key_generation: the generation of passage keys that was searched; 0 for base keys.
    """

    recalled: int = 0
    moved: int = 0
    key_generation: int = 0


@dataclass(frozen=True, slots=True)
class Side:
    """Answer of one arm and how it came about."""

    memory: Memory
    profile: ProfileName
    strategy: Strategy
    hops: int
    stop_reason: StopReason
    read: MemoryPart
    timings: Timings
    warnings: tuple[Fallback, ...] = ()


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """Both answers. ``passages`` are the first ``top_k`` of either arm, by the better of their two ranks."""

    collection: str
    query: str
    top_k: int
    a: Side
    b: Side
    passages: Sequence[ComparedPassage]


class ComparisonService:
    """Asks a question twice and keeps nothing of it, whatever the collection is set to serve."""

    def __init__(self, reads: Reads, retrieve: RetrievalService) -> None:
        self._reads = reads
        self._retrieve = retrieve

    def compare(self, a: Query, b: Query) -> ArmComparison:
        """Ask one question under two arms.

        Raises:
            InvalidRequestError, LlmNotConfiguredError, LlmError: as of ``RetrievalService``.
        """
        both = [self._find(self._retrieve.plan(query)) for query in (a, b)]
        rankings = [retrieved.ranking.ordered for retrieved in both]
        places = [{passage: rank for rank, (passage, _) in enumerate(ordered, start=1)} for ordered in rankings]
        scores = [dict(ordered) for ordered in rankings]
        stored = {passage: held for retrieved in both for passage, held in retrieved.passages.items()}
        ranks = {passage: [place[passage] for place in places if passage in place] for passage in stored}
        first = {passage: min(held) for passage, held in ranks.items() if held}  # a duplicate has no rank
        return ArmComparison(
            collection=a.scope.collection.name,
            query=a.text,
            top_k=a.top_k,
            a=_side(both[0]),
            b=_side(both[1]),
            passages=[
                ComparedPassage(
                    stored[passage].external_id,
                    stored[passage].title,
                    stored[passage].text,
                    read_source(stored[passage], a.scope.collection.link_template),
                    places[0].get(passage),
                    places[1].get(passage),
                    scores[0].get(passage),
                    scores[1].get(passage),
                )
                for passage in sorted(first, key=lambda passage: (first[passage], passage))
            ],
        )

    def _find(self, plan: QueryPlan) -> RetrievalResult:
        return self._reads.on_replica(plan.collection.id, lambda: self._retrieve.find(plan))


def _side(retrieved: RetrievalResult) -> Side:
    plan, walk = retrieved.plan, retrieved.walk
    return Side(
        memory=plan.query.memory,
        profile=plan.profile.name,
        strategy=plan.query.strategy,
        hops=len(walk.hops),
        stop_reason=walk.stop_reason or "max_hops",
        read=_read(retrieved) if plan.focus.use_memory else MemoryPart(),
        timings=build_timings(retrieved),
        warnings=plan.warnings,
    )


def _read(retrieved: RetrievalResult) -> MemoryPart:
    moved_sentences = {
        sentence
        for hop in retrieved.walk.hops
        for sentence in hop.selected
        if any(channel.perplexity[hop.position(sentence)] < 1.0 for channel in hop.candidates.memories.values())
    }
    focus = retrieved.plan.focus
    return MemoryPart(
        recalled=len(retrieved.walk.recall.probabilities),
        moved=len(moved_sentences),
        key_generation=focus.collection.key_generation if focus.evolved else 0,
    )
