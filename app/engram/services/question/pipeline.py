"""All steps of a question: apply settings, plan, search, make the answer, store it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

import structlog

from engram.context import tenancy
from engram.context.errors import MissingPartitionError
from engram.core.auth.access_keys import AUDIT
from engram.core.ranking.profiles import Profile
from engram.core.text.identifiers import read_moment
from engram.services.question.answer import Answer, build_answer
from engram.services.question.episode import build_episode
from engram.services.question.plan import QueryPlan
from engram.services.question.query import Query
from engram.services.question.search import RetrievalResult, RetrievalService
from engram.services.question.shown import QuestionRule
from engram.services.question.trace import Trace
from engram.services.question.trace_building import build_trace
from engram.services.replicas.replica_reads import Reads
from engram.storage.database import Database
from engram.storage.question import episode_partitions, episodes
from engram.storage.question.episode_partitions import compute_monday
from engram.storage.question.episodes import EpisodeRow
from engram.telemetry import metrics
from engram.telemetry.stages import stage

log = structlog.get_logger(__name__)


class Explainer(Protocol):
    """Finds the verdicts behind answers."""

    def find(self, retrieve: RetrievalService, plan: QueryPlan) -> tuple[RetrievalResult, Trace]:
        """Find what ``retrieve.find`` does, and trace it with the verdicts behind every sentence and passage.

        Called without a transaction, for queries that ask for a trace by whom may see what others asked.
        """
        ...


class QuestionPipeline:
    """Answers questions."""

    def __init__(
        self,
        database: Database,
        reads: Reads,
        retrieve: RetrievalService,
        rules: Sequence[QuestionRule] = (),
        explainer: Explainer | None = None,
        *,
        durable: bool = True,
    ) -> None:
        """Keep what answers are made with.

        Args:
            rules: prepare each query that is served, in this order.
            explainer: finds the verdicts behind answers; without it traces name none.
            durable: whether an answer waits until its episode is on disk.
        """
        self._database = database
        self._reads = reads
        self._retrieve = retrieve
        self._rules = rules
        self._explainer = explainer
        self._durable = durable

    def serve(self, query: Query) -> Answer:
        """Apply the settings of the collection and the rules of wings to the query, then answer it.

        Raises:
            NotFoundError, InvalidRequestError, LlmNotConfiguredError, LlmError: as ``answer``.
        """
        return self.answer(self.apply_settings(query))

    def answer(self, query: Query, profile: Profile | None = None, *, explained: bool = True) -> Answer:
        """Answer a query without applying settings, and store the episode.

        Args:
            profile: constants in place of those that the query names.
            explained: whether a trace says which verdicts changed the result. This takes longer than retrieval.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            InvalidRequestError: the query bounds hops that its strategy does not make.
            LlmNotConfiguredError: ``stop_rule`` is "llm" and no endpoint is configured.
        """
        return self.finish(*self.retrieve(self._retrieve.plan(query, profile), explained=explained))

    def plan(self, query: Query, like: QueryPlan | None = None) -> QueryPlan:
        """Apply settings and rules to the query and plan it, ``like`` a plan of it for another collection."""
        return self._retrieve.plan(self.apply_settings(query), like=like)

    def retrieve(self, plan: QueryPlan, *, explained: bool = True) -> tuple[RetrievalResult, Trace]:
        """Carry a plan out, and trace what was found, without what others asked where the caller may not see it.

        Args:
            explained: as of ``answer``.
        """
        audits = plan.query.scope.is_allowed(AUDIT)

        def read() -> tuple[RetrievalResult, Trace]:
            if self._explainer is not None and explained and audits and "trace" in plan.query.include:
                return self._explainer.find(self._retrieve, plan)
            found = self._retrieve.find(plan)
            return found, build_trace(found)

        retrieved, trace = self._reads.on_replica(plan.collection.id, read)
        return retrieved, trace if audits else trace.hide_questions()

    def finish(self, retrieved: RetrievalResult, trace: Trace) -> Answer:
        """Build the answer and store the episode."""
        answer, query = build_answer(retrieved), retrieved.plan.query
        with stage("keep"):
            self.store_episode(retrieved.plan.collection.id, build_episode(retrieved, answer, trace))
        _count(answer, retrieved)
        return replace(
            answer,
            entities=list(retrieved.entities) if "entities" in query.include else None,
            trace=trace if "trace" in query.include else None,
        )

    def apply_settings(self, query: Query) -> Query:
        """Apply the settings of the collection (``shadow`` turns memory off) and the rules of wings."""
        if query.scope.collection.serving == "shadow":
            query = replace(query, memory="off", shadow=True)
        for rule in self._rules:
            query = rule.prepare(query)
        return query

    def store_episode(self, collection_id: int, episode: EpisodeRow) -> None:
        """Insert the episode. If the partition of its week is missing, create it and insert again.

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


def _count(answer: Answer, retrieved: RetrievalResult) -> None:
    """Count the answer in the metrics, and log it."""
    metrics.QUERIES.labels(answer.strategy, answer.profile, answer.memory, answer.stop_reason).inc()
    metrics.HOPS.labels(answer.profile).observe(answer.hops)
    for warning in answer.warnings:
        metrics.WARNINGS.labels(warning.type).inc()
    log.info(
        "query",
        query_id=str(answer.query_id),
        collection=answer.collection,
        memory=answer.memory,
        profile=answer.profile,
        strategy=answer.strategy,
        arm=answer.arm,
        explored=len(retrieved.shown.explored),
        expansions=len(retrieved.plan.query.expansions),
        hops=answer.hops,
        stop_reason=answer.stop_reason,
        total_ms=answer.timings.total_ms,
    )
