"""Asking a question from its plan to its episode: retrieve, explain where that is wanted, and remember."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import structlog

from engram.context import tenancy
from engram.context.errors import MissingPartitionError
from engram.core.auth.access_keys import AUDIT
from engram.core.ranking.profiles import Profile
from engram.core.text.identifiers import read_moment
from engram.services.auth.scope import Scope
from engram.services.queries.explainer import Explainer
from engram.services.queries.stored_answer import AnswerReading, episode_row
from engram.services.replicas.replica_reads import Reads
from engram.services.retrieval import answer_presentation
from engram.services.retrieval.answer import Answer
from engram.services.retrieval.answer_trace import Trace
from engram.services.retrieval.query import Query
from engram.services.retrieval.query_plan import QueryPlan
from engram.services.retrieval.retrieval_service import RetrievalResult, RetrievalService
from engram.storage.database import Database
from engram.storage.retrieval import episode_partitions, episodes
from engram.storage.retrieval.episode_partitions import compute_monday
from engram.storage.retrieval.episodes import EpisodeRow, TracedEpisode
from engram.telemetry import metrics
from engram.telemetry.stages import stage

log = structlog.get_logger(__name__)

MOST_QUERIES = 1_000
"""Queries of one trace that are listed, at most."""


@dataclass(frozen=True, slots=True)
class Episode:
    """An answered query as it can be read again; ``judged`` counts its verdicts, revoked ones included."""

    answer: Mapping[str, Any]
    trace: Mapping[str, Any]
    judged: int
    created_at: datetime


class QueryService:
    """Answers queries and reads episodes again."""

    def __init__(
        self,
        database: Database,
        reads: Reads,
        retrieve: RetrievalService,
        explainer: Explainer | None = None,
        *,
        durable: bool = True,
    ) -> None:
        """Keep what answers are made with.

        Args:
            explainer: finds the verdicts behind answers; without it traces name none.
            durable: whether an answer waits until its episode is on disk.
        """
        self._database = database
        self._reads = reads
        self._retrieve = retrieve
        self._explainer = explainer
        self._durable = durable

    def query(self, query: Query, profile: Profile | None = None, *, explained: bool = True) -> Answer:
        """Answer a question and keep the episode.

        Args:
            profile: constants in place of those that the query names.
            explained: whether a trace says which verdicts moved what was found; it takes longer than finding it.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            InvalidRequestError: the query bounds hops that its strategy does not make.
            LlmNotConfiguredError: ``stop_rule`` is "llm" and no endpoint is configured.
        """
        plan = self._retrieve.plan(query, profile)
        # What others asked and said is for those to see who may.
        audits = query.scope.is_allowed(AUDIT)
        retrieved, trace = self._reads.on_replica(
            plan.collection.id, lambda: self._find(plan, explained=explained and audits)
        )
        answer = answer_presentation.answer(retrieved)
        with stage("keep"):
            self.keep(plan.collection.id, episode_row(retrieved, answer, trace))
        _count(answer)
        log.info(
            "query",
            query_id=str(answer.query_id),
            collection=answer.collection,
            memory=answer.memory,
            profile=answer.profile,
            strategy=answer.strategy,
            arm=answer.arm,
            explored=len(retrieved.shown.explored),
            expansions=len(query.expansions),
            hops=answer.hops,
            stop_reason=answer.stop_reason,
            total_ms=answer.timings.total_ms,
        )
        return replace(
            answer,
            entities=list(retrieved.entities) if "entities" in query.include else None,
            trace=(trace if audits else _hide_other_questions(trace)) if "trace" in query.include else None,
        )

    def keep(self, collection_id: int, episode: EpisodeRow) -> None:
        """Keep an episode; the first of a week makes the week's partition if no worker has.

        Raises:
            NotFoundError: the collection is gone.
        """
        try:
            with self._database.write_once() as writer:
                episodes.insert(writer, collection_id, episode, durable=self._durable)
        except MissingPartitionError:
            with tenancy.allow_all_tenants(), self._database.write() as writer:
                episode_partitions.make(writer, compute_monday(read_moment(episode.id)))
            with self._database.write_once() as writer:
                episodes.insert(writer, collection_id, episode, durable=self._durable)

    def episode(self, scope: Scope, query_id: UUID) -> Episode:
        """An answered query, read again, with the texts that there still are.

        Raises:
            NotFoundError: there is no such query, or none any more, or it is not for this principal to see.
        """
        with self._database.snapshot() as reader:
            stored = episodes.find(reader, scope.collection.id, query_id)
            if not scope.sees(stored.principal):
                raise episodes.build_missing_error(query_id)
            reading = AnswerReading(reader, scope.collection, stored)
        trace = reading.trace()
        if not scope.is_allowed(AUDIT):
            trace = {**trace, "recalled": [{**row, "past_question": None} for row in trace["recalled"]]}
        return Episode(reading.answer(), trace, stored.judged, stored.created_at)

    def list_trace_queries(self, scope: Scope, trace_id: str) -> list[TracedEpisode]:
        """List the queries of a trace that the principal may see, oldest first, at most ``MOST_QUERIES``."""
        with self._database.read() as reader:
            listed = episodes.list_by_trace(reader, scope.collection.id, trace_id, MOST_QUERIES)
        return [episode for episode in listed if scope.sees(episode.principal)]

    def _find(self, plan: QueryPlan, *, explained: bool) -> tuple[RetrievalResult, Trace]:
        """Retrieve, and trace the retrieval, with explanations if asked for."""
        if self._explainer is not None and explained and "trace" in plan.query.include:
            return self._explainer.find(self._retrieve, plan)
        retrieved = self._retrieve.find(plan)
        return retrieved, answer_presentation.trace(retrieved)


def _hide_other_questions(trace: Trace) -> Trace:
    """The trace without what others asked."""
    return replace(trace, recalled=[replace(past, past_question=None) for past in trace.recalled])


def _count(answer: Answer) -> None:
    metrics.QUERIES.labels(answer.strategy, answer.profile, answer.memory, answer.stop_reason).inc()
    metrics.HOPS.labels(answer.profile).observe(answer.hops)
    for warning in answer.warnings:
        metrics.WARNINGS.labels(warning.type).inc()
