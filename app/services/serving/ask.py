"""Asking a question from its plan to its episode: retrieve, explain where that is wanted, and remember."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
import structlog

from app.services.access.scope import Scope
from app.services.reasons.influence import Influences
from app.services.retrieval import present
from app.services.retrieval.answer import Answer
from app.services.retrieval.plan import Plan, Served
from app.services.retrieval.query import Query
from app.services.retrieval.retrieve import Retrieved, RetrieveService
from app.services.retrieval.trace import Trace
from app.storage.database import Database
from app.storage.retrieval import episodes
from app.storage.retrieval.episodes import EpisodeRow, StoredEpisode

log = structlog.get_logger(__name__)

PLAIN_DEPTH = 100
"""Passages, at least, among which a plain search is asked for a rank: as many as a query may want."""


class AskService:
    """Answers queries and reads episodes again."""

    def __init__(self, database: Database, retrieve: RetrieveService, influences: Influences) -> None:
        self._database = database
        self._retrieve = retrieve
        self._influences = influences

    def query(self, query: Query, served: Served | None = None) -> Answer:
        """Answer a question and keep the episode.

        Args:
            served: by default as it was asked, whatever its collection is set to.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            InvalidRequestError: the query bounds hops that its strategy does not make.
            LlmNotConfiguredError: ``sufficiency`` is "llm" and no endpoint is configured.
            LlmError: the endpoint failed.
        """
        plan = self._retrieve.plan(query, served)
        found, trace = self._traced(plan)
        answer = present.answer(found)
        with self._database.write_once() as writer:
            episodes.insert(writer, plan.collection.id, _episode(found, answer, trace))
        log.info(
            "query",
            query_id=str(answer.query_id),
            collection=answer.collection,
            memory=answer.memory,
            profile=answer.profile,
            strategy=answer.strategy,
            arm=answer.arm,
            explored=len(found.explored.passages),
            expansions=len(query.expansions),
            hops=answer.hops,
            stop_reason=answer.stop_reason,
            total_ms=answer.timings.total_ms,
        )
        return replace(
            answer,
            entities=list(found.entities) if "entities" in query.include else None,
            trace=trace if "trace" in query.include else None,
        )

    def episode(self, scope: Scope, query_id: UUID) -> StoredEpisode:
        """An answered query, read again.

        Raises:
            NotFoundError: there is no such query.
        """
        with self._database.read() as reader:
            return episodes.find(reader, scope.collection.id, query_id)

    def _traced(self, plan: Plan) -> tuple[Retrieved, Trace]:
        """What the query came upon, and how, explained if it asks for that.

        For what memory did to ranks the question is searched once more without it. What is told of verdicts is read
        on the snapshot that the answer was.
        """
        if "trace" not in plan.query.include or not plan.focus.policy.gated:
            found = self._retrieve.find(plan)
            return found, present.trace(found)
        alone = self._without_memory(plan) if plan.focus.use_memory else None
        with self._retrieve.on_snapshot(plan) as (reader, found):
            ordered = found.ranking.ordered if alone is None else alone
            plain = {passage: rank for rank, (passage, _) in enumerate(ordered, start=1)}
            return found, self._influences.explained(reader, found, plain, present.trace(found))

    def _without_memory(self, plan: Plan) -> Sequence[tuple[int, float]]:
        wanted = plan.query.top_k if plan.served.strategy == "graph" else max(plan.query.top_k, PLAIN_DEPTH)
        return self._retrieve.find(plan.without_memory(wanted)).ranking.ordered


def _episode(found: Retrieved, answer: Answer, trace: Trace) -> EpisodeRow:
    query, focus, ranking, explored = found.plan.query, found.plan.focus, found.ranking, found.explored
    stored = asdict(answer)
    del stored["entities"], stored["trace"]
    stored["query_id"] = str(answer.query_id)
    stored["filter"] = None if query.metadata is None else dict(query.metadata)
    stored["expansions"] = [asdict(expansion) for expansion in query.expansions]
    kept = explored.recorded(ranking)
    return EpisodeRow(
        id=answer.query_id,
        question=answer.query,
        embedding=focus.vector,
        time_constraint=found.plan.constraint,
        time_embedding=focus.time_vector,
        memory=answer.memory,
        profile=answer.profile,
        activated=explored.activated(found.walk),
        answer=stored,
        trace=asdict(trace, dict_factory=_as_json),
        ranked=ranking.candidates[kept] if ranking.teaches else None,
        features=ranking.features[kept].astype(np.float32) if ranking.teaches else None,
        strategy=answer.strategy,
        arm=answer.arm,
        explored=list(explored.passages),
    )


def _as_json(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in pairs}
