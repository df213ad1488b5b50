"""Questions asked of several collections at once: one list of passages, and an episode in each collection."""

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextvars import copy_context
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import TypeVar

from engram.services.answers.passage_context import PassageContextService
from engram.services.question.answer import Answer, PassageAnswer, Timings
from engram.services.question.pipeline import QuestionPipeline
from engram.services.question.plan import QueryPlan
from engram.services.question.query import Query, create_query_id
from engram.services.question.search import RetrievalResult
from engram.services.question.trace import Trace

Result = TypeVar("Result")

MOST_COLLECTIONS = 10
LEAST_PROBABILITY = 1e-6
"""From which on, and to 1 less it, a sufficiency counts: odds are finite."""
SEARCHES_AT_ONCE = 4
"""Collections that all such questions search side by side: more would leave other questions no connections."""


@dataclass(frozen=True, slots=True)
class JointAnswer:
    """Answer of several collections.

    Attributes:
        passages: the best of all collections, each with the place of its answer in ``answers``.
        answers: of the collections, in the order in which they were asked. Each shows its passages of the list, and
            all have one query id.
    """

    passages: Sequence[tuple[int, PassageAnswer]]
    answers: Sequence[Answer]

    @property
    def sufficiency(self) -> float | None:
        """The highest probability that a collection's first five passages hold all the evidence."""
        return max((one.sufficiency for one in self.answers if one.sufficiency is not None), default=None)

    @property
    def timings(self) -> Timings:
        """The longest of each."""
        timings = [one.timings for one in self.answers]
        return Timings(*(max(getattr(one, name.name) for one in timings) for name in fields(Timings)))


class JointAnswerService:
    """Asks several collections one question.

    Each collection answers by itself, with what it learned, and keeps an episode of what the joint list shows of
    it. So a verdict on the list is one verdict on each collection, of what the judge saw of it.
    """

    def __init__(self, pipeline: QuestionPipeline, context: PassageContextService) -> None:
        self._pipeline = pipeline
        self._context = context
        self._threads = ThreadPoolExecutor(SEARCHES_AT_ONCE, "engram-joint")

    def close(self) -> None:
        """Begin no more searches, and wait for those that run."""
        self._threads.shutdown(cancel_futures=True)

    def serve(self, queries: Sequence[Query]) -> JointAnswer:
        """Answer queries that differ in their collections alone, and merge their passages.

        The question is embedded once for all collections of one encoder. Searches run side by side. After the first
        that fails no other of the question begins.

        Raises:
            NotFoundError, InvalidRequestError, LlmNotConfiguredError, LlmError: as ``QuestionPipeline.answer``.
        """
        query_id = create_query_id()
        plans: list[QueryPlan] = []
        for query in queries:
            plans.append(self._pipeline.plan(replace(query, id=query_id), plans[0] if plans else None))
        results = self._run(partial(self._pipeline.retrieve, plan) for plan in plans)
        order = merge([retrieved for retrieved, _ in results])[: queries[0].top_k]
        answers = self._run(
            partial(self._finish, _show(retrieved, place, order), trace)
            for place, (retrieved, trace) in enumerate(results)
        )
        hits = {(place, hit.id): hit for place, answer in enumerate(answers) for hit in answer.passages}
        return JointAnswer([(at[0], hits[at]) for at in order if at in hits], answers)

    def _run(self, work: Iterable[Callable[[], Result]]) -> list[Result]:
        """Return what each piece of work returns. After a failure wait for what has begun, and begin no more."""
        running = [self._threads.submit(copy_context().run, one) for one in work]
        try:
            for one in as_completed(running):
                one.result()
        except BaseException:
            wait([one for one in running if not one.cancel()])
            raise
        return [one.result() for one in running]

    def _finish(self, retrieved: RetrievalResult, trace: Trace) -> Answer:
        return self._context.add(retrieved.plan.query, self._pipeline.finish(retrieved, trace))


def merge(found: Sequence[RetrievalResult]) -> list[tuple[int, int]]:
    """Merge the shown passages of several results, best first: the place of the result, and the passage.

    Scores are log odds that a passage is evidence, but for a constant of the question, which is one question here.
    Each collection adds the log odds of its sufficiency s: if one of them holds the evidence, it is this one with a
    probability in proportion to s and to 1 - s of all others, so to s / (1 - s). Where features do not rank, scores
    of collections do not compare, and passages of equal rank stand side by side.
    """
    ranked: list[tuple[float, int, int, int]] = []
    for place, retrieved in enumerate(found):
        sufficiency = retrieved.ranking.sufficiency
        for rank, (passage, score) in enumerate(retrieved.shown.best):
            value = -rank if sufficiency is None else score + _compute_log_odds(sufficiency.steering)
            ranked.append((-value, rank, place, passage))
    return [(place, passage) for _, _, place, passage in sorted(ranked)]


def _compute_log_odds(probability: float) -> float:
    bounded = min(max(probability, LEAST_PROBABILITY), 1 - LEAST_PROBABILITY)
    return math.log(bounded / (1 - bounded))


def _show(retrieved: RetrievalResult, place: int, order: Iterable[tuple[int, int]]) -> RetrievalResult:
    """Return a result that shows only its passages of a joint list."""
    listed = {passage for of, passage in order if of == place}
    shown_passages = replace(retrieved.shown, best=[one for one in retrieved.shown.best if one[0] in listed])
    return replace(retrieved, shown=shown_passages)
