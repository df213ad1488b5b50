"""One question under two arms, side by side. Nothing is remembered of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.profiles import PROFILES
from app.providers.prior import RankingPrior
from app.services.retrieval.query import Memory, ProfileName, Query, StopReason, Strategy, Timings
from app.services.retrieval.retrieve import Look, RetrieveService
from app.storage.corpus import passages
from app.storage.database import Database
from app.storage.learning import weights


@dataclass(frozen=True, slots=True)
class ComparedPassage:
    """A passage among the first of either arm; rank, from 1, and score are None where an arm did not rank it."""

    passage_id: str
    title: str | None
    rank_a: int | None
    rank_b: int | None
    score_a: float | None
    score_b: float | None


@dataclass(frozen=True, slots=True)
class MemoryPart:
    """What an arm read of memory.

    Attributes:
        recalled: sentences that verdicts on past questions brought in.
        moved: selected sentences whose memories a verdict had moved.
        weight_events: verdicts in the ranking weights.
        key_generation: the generation of passage keys that was searched; 0 for base keys.
    """

    recalled: int = 0
    moved: int = 0
    weight_events: int = 0
    key_generation: int = 0


@dataclass(frozen=True, slots=True)
class Side:
    """How one arm came to its answer."""

    memory: Memory
    profile: ProfileName
    strategy: Strategy
    hops: int
    stop_reason: StopReason
    read: MemoryPart
    timings: Timings


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both answers. ``passages`` are the first ``top_k`` of either arm, by the better of their two ranks."""

    collection: str
    query: str
    top_k: int
    a: Side
    b: Side
    passages: Sequence[ComparedPassage]


class CompareService:
    """Asks a question twice and keeps nothing of it, whatever the collection is set to serve."""

    def __init__(self, database: Database, retrieve: RetrieveService, prior: RankingPrior) -> None:
        self._database = database
        self._retrieve = retrieve
        self._prior = prior

    def compare(self, a: Query, b: Query) -> Comparison:
        """The same question under two arms.

        Raises:
            NotFoundError, InvalidRequestError, LlmNotConfiguredError, LlmError: as of ``RetrieveService.query``.
        """
        looks = self._retrieve.look(a), self._retrieve.look(b)
        places = [{passage: rank for rank, (passage, _) in enumerate(look.ranked, start=1)} for look in looks]
        scores = [dict(look.ranked) for look in looks]
        first = {
            passage: min(place[passage] for place in places if passage in place)
            for look in looks
            for passage, _ in look.ranked[: a.top_k]
        }
        with self._database.read() as reader:
            target = looks[0].focus.collection.id
            stored = passages.by_id(reader, target, first)
            learned = weights.find(reader, target, self._prior.name)
        events = 0 if learned is None else learned.events
        return Comparison(
            collection=a.collection,
            query=a.text,
            top_k=a.top_k,
            a=_side(a, looks[0], events),
            b=_side(b, looks[1], events),
            passages=[
                ComparedPassage(
                    stored[passage].external_id,
                    stored[passage].title,
                    places[0].get(passage),
                    places[1].get(passage),
                    scores[0].get(passage),
                    scores[1].get(passage),
                )
                for passage in sorted(first, key=lambda passage: (first[passage], passage))
                if passage in stored
            ],
        )


def _side(query: Query, look: Look, weight_events: int) -> Side:
    return Side(
        memory=query.memory,
        profile=query.profile,
        strategy=query.strategy,
        hops=len(look.walk.hops),
        stop_reason=look.walk.stop_reason,
        read=_read(query, look, weight_events) if look.focus.use_memory else MemoryPart(),
        timings=look.timings,
    )


def _read(query: Query, look: Look, weight_events: int) -> MemoryPart:
    moved = {
        sentence
        for hop in look.walk.hops
        for sentence in hop.selected
        if min(
            hop.candidates.task_perplexity[hop.position(sentence)],
            hop.candidates.time_perplexity[hop.position(sentence)],
        )
        < 1.0
    }
    by_features = query.strategy == "graph" and PROFILES[query.profile].by_features
    return MemoryPart(
        recalled=len(look.walk.priors),
        moved=len(moved),
        weight_events=weight_events if by_features else 0,
        key_generation=look.focus.collection.key_generation if look.focus.evolved else 0,
    )
