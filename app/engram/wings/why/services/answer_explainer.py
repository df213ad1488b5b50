"""The verdicts behind answers, as services outside the wing ask for them."""

from collections.abc import Callable
from dataclasses import replace

from engram.services.question.plan import QueryPlan
from engram.services.question.query import ExplorationPart
from engram.services.question.ranking import PassageRanking
from engram.services.question.search import RetrievalResult, RetrievalService
from engram.services.question.trace import Trace
from engram.services.question.trace_building import build_trace
from engram.telemetry.stages import stage
from engram.wings.why.services.verdict_influence import Influences

PLAIN_DEPTH = 100
"""Passages, at least, among which a plain search is asked for a rank: as many as a query may want."""


class AnswerExplainer:
    """Finds the verdicts behind answers: an ``Explainer``."""

    def __init__(self, influences: Callable[[], Influences]) -> None:
        """The influences are made when first needed."""
        self._influences = influences

    def find(self, retrieve: RetrievalService, plan: QueryPlan) -> tuple[RetrievalResult, Trace]:
        """Retrieve, and trace the retrieval with the verdicts behind it; without them where no score is gated.

        For what memory did to ranks the question is searched once more without it. What is told of verdicts is read
        on the snapshot that the answer was.
        """
        if not plan.focus.policy.gated:
            retrieved = retrieve.find(plan)
            return retrieved, build_trace(retrieved)
        alone = _rank_without_memory(retrieve, plan) if plan.focus.use_memory else None
        with retrieve.on_snapshot(plan) as (reader, retrieved):
            plain = _number(retrieved.ranking if alone is None else alone)
            with stage("explain"):
                trace = build_trace(retrieved)
                return retrieved, self._influences().explain_trace(reader, retrieved, plain, trace)


def _rank_without_memory(retrieve: RetrievalService, plan: QueryPlan) -> PassageRanking:
    """Rank for the same question without memory and exploration."""
    depth = plan.query.top_k if plan.query.strategy == "graph" else max(plan.query.top_k, PLAIN_DEPTH)
    plain = replace(
        plan,
        query=replace(plan.query.without_part(ExplorationPart), top_k=depth, memory="off"),
        focus=replace(plan.focus, use_memory=False),
    )
    return retrieve.find(plain).ranking


def _number(ranking: PassageRanking) -> dict[int, int]:
    """Rank of each passage, from 1; a duplicate has that of the passage that stands for it."""
    ranks = {passage: rank for rank, (passage, _) in enumerate(ranking.ordered, start=1)}
    return ranks | {one: ranks[passage] for one, passage in ranking.stand_in_by_passage.items() if passage in ranks}
