"""The one place where providers, storage and services are put together."""

import gc
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property

import structlog

from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.providers.embedded import EmbeddedPostgres, EmbeddedRedis
from engram.runtime.asking import Asking
from engram.services.corpus.document_conversion import DocumentsService
from engram.services.corpus.entity_embedding import NamesService
from engram.services.corpus.graph_builder import IndexService
from engram.services.corpus.kind_measurement import KindService
from engram.services.corpus.passage_intake import IngestService
from engram.services.explanations.learning_overview import LearnedService
from engram.services.explanations.sentence_explanations import ExplainService
from engram.services.jobs.job_kinds import INGEST, REEMBED, REKEY, REPLAY, REVOCATION, SESSIONS
from engram.services.jobs.job_runner import Runner
from engram.services.jobs.job_service import JobsService
from engram.services.jobs.work import JobHandler, Kind
from engram.services.learning.feedback_service import FeedbackService
from engram.services.learning.judge_settings import JudgesService
from engram.services.learning.llm_judge import JudgeService
from engram.services.learning.verdict_intake import Intake
from engram.services.learning.verdict_learning import LearnService
from engram.services.maintenance.reembedding import ReembedService
from engram.services.passage_keys.attribution import Attribution
from engram.services.passage_keys.key_evolution import EvolveService
from engram.services.passage_keys.key_view import KeyViewService
from engram.services.passage_keys.rekey import RekeyService
from engram.services.revocation.learning_reset import ForgetService
from engram.services.revocation.past_state import PastService
from engram.services.revocation.restored_verdicts import Restore
from engram.services.revocation.revocation_service import RevokeService, replay_memories
from engram.services.revocation.verification import VerifyService
from engram.services.sessions.agent_planner import AgentPlanner
from engram.services.sessions.auto_planner import AutoPlanner
from engram.services.sessions.graph_publication import Publisher
from engram.services.sessions.planner import SessionPlanner
from engram.services.sessions.pool_planner import PoolPlanner
from engram.services.sessions.round_judge import RoundJudge
from engram.services.sessions.session_feedback import Teacher
from engram.services.sessions.session_runner import SessionRunner
from engram.services.sessions.session_service import SessionService
from engram.services.sessions.session_trajectories import TrajectoryService
from engram.services.sessions.socratic_planner import SocraticPlanner
from engram.services.sessions.tree_planner import TreePlanner
from engram.storage.corpus import collections

log = structlog.get_logger(__name__)

OTHERS_NAMED = 20
"""Collections of other encoders that a process names when it starts."""


@dataclass(frozen=True, slots=True)
class Servers:
    """Where Postgres and Redis are."""

    database_url: str
    redis_url: str


@contextmanager
def servers(settings: Settings, *, make: bool = True) -> Iterator[Servers]:
    """The configured servers; embedded ones, started or joined in the data directory, where none is configured.

    Args:
        settings: says where they are.
        make: an embedded database that is not there is made; else that is an error.

    Raises:
        ConfigurationError: there is no embedded database, and none is to be made.
        ConfigurationError, UnavailableError: an embedded server cannot be started.
    """
    data = settings.data_dir.resolve()
    with ExitStack() as stack:
        if settings.database_url:
            database_url = settings.database_url.get_secret_value()
        else:
            postgres = EmbeddedPostgres(
                data / "postgres", settings.embedded_user, memory_mb=settings.embedded_memory_mb
            )
            if not make and not postgres.made:
                raise ConfigurationError(
                    f"There is no database in {data}. Run this where `engram up` runs, or say where the data are: "
                    "ENGRAM_DATA_DIR or DATABASE_URL."
                )
            stack.callback(postgres.stop)
            database_url = postgres.start()
        if settings.redis_url:
            redis_url = settings.redis_url.get_secret_value()
        else:
            redis = EmbeddedRedis(data / "redis")
            stack.callback(redis.stop)
            redis_url = redis.start()
        yield Servers(database_url, redis_url)


class Application(Asking):
    """Everything one process needs; what is heavy is loaded when first used."""

    def __init__(self, settings: Settings, addresses: Servers, consumer: str = "") -> None:
        super().__init__(settings, addresses.database_url, addresses.redis_url, consumer)

    @cached_property
    def ingest(self) -> IngestService:
        """Accepts passages."""
        return IngestService(self.database, self.encoder)

    @cached_property
    def documents(self) -> DocumentsService:
        """Converts documents into passages."""
        return DocumentsService(
            max_bytes=self.settings.document_max_bytes, timeout_seconds=self.settings.document_timeout_seconds
        )

    @cached_property
    def index(self) -> IndexService:
        """Builds the graph."""
        return IndexService(
            self.database,
            self.encoder,
            self.language,
            self.kinds,
            batch_size=self.settings.ingest_batch_size,
            time_llm=self.llm if self.settings.llm_time_extraction else None,
            rebase=self.evolve.rebase,
            facts=self.noise if self.settings.facts else None,
            align=self.align,
        )

    @cached_property
    def kinds(self) -> KindService:
        """Tells kinds of corpora apart."""
        return KindService(self.database, lambda: self.priors)

    @cached_property
    def names(self) -> NamesService:
        """Embeds names."""
        return NamesService(self.database, self.encoder)

    @cached_property
    def rekey(self) -> RekeyService:
        """Makes keys anew."""
        return RekeyService(
            self.database, self.encoder, batch_size=self.settings.ingest_batch_size, rebase=self.evolve.rebase
        )

    @cached_property
    def reembed(self) -> ReembedService:
        """Changes encoders."""
        return ReembedService(
            self.database,
            self.encoder,
            batch_size=self.settings.ingest_batch_size,
            memories=replay_memories,
            keys=self.evolve.rebase,
        )

    @cached_property
    def handlers(self) -> Mapping[Kind, JobHandler]:
        """What does jobs, by their kinds."""
        kinds: dict[Kind, JobHandler] = {
            INGEST: self.index,
            REKEY: self.rekey,
            REVOCATION: self.revoke,
            REPLAY: self.past,
            REEMBED: self.reembed,
        }
        return kinds | dict.fromkeys(SESSIONS, self.session_runner)

    @cached_property
    def runner(self) -> Runner:
        """Does jobs."""
        return Runner(
            self.database,
            self.handlers,
            lease_seconds=self.settings.job_lease_seconds,
            afterwards=lambda should_stop, collection_id: self.names.run(should_stop, collection_id=collection_id),
        )

    @cached_property
    def jobs(self) -> JobsService:
        """Reports on jobs and cancels them."""
        return JobsService(self.database, self.handlers)

    @cached_property
    def session_planners(self) -> dict[str, SessionPlanner]:
        """What decides on the rounds of sessions, by name."""
        pool = PoolPlanner()
        planners: list[SessionPlanner] = [pool, SocraticPlanner(pool), TreePlanner(pool), AgentPlanner()]
        by_name = {planner.name: planner for planner in planners}
        return by_name | {AutoPlanner.name: AutoPlanner(pool, by_name)}

    @cached_property
    def teacher(self) -> Teacher:
        """Fans verdicts on sessions out."""
        return Teacher(self.database, self.feedback)

    @cached_property
    def session_runner(self) -> SessionRunner:
        """Does the rounds of sessions."""
        return SessionRunner(
            self.database,
            self.serving,
            self.language,
            self.llm,
            self.session_planners,
            self.teacher,
            self.quotas,
            Publisher(self.database, self.facts),
            RoundJudge(self.database, lambda: self.classifier, lambda: self.priors),
        )

    @cached_property
    def sessions(self) -> SessionService:
        """Starts sessions and reads them."""
        return SessionService(self.database, self.encoder, self.runner, self.session_planners, self.llm)

    @cached_property
    def trajectories(self) -> TrajectoryService:
        """Reads sessions as trajectories."""
        return TrajectoryService(self.database)

    @cached_property
    def learn(self) -> LearnService:
        """Applies verdicts."""
        return LearnService(
            self.database,
            self.noise,
            self.priors,
            self.attribution,
            self.evolve,
            max_attempts=self.settings.feedback_max_attempts,
        )

    @cached_property
    def attribution(self) -> Attribution:
        """Credits the expansions of verdicts."""
        return Attribution(self.database, self.encoder, self.limits, self.key_learning)

    @cached_property
    def evolve(self) -> EvolveService:
        """Lets passage keys evolve."""
        return EvolveService(self.database, self.key_learning.rules)

    @cached_property
    def key_view(self) -> KeyViewService:
        """Shows what keys learned."""
        return KeyViewService(self.database, self.key_learning.rules)

    @cached_property
    def intake(self) -> Intake:
        """Takes verdicts into the log."""
        return Intake(self.database, self.stream, self.encoder)

    @cached_property
    def feedback(self) -> FeedbackService:
        """Accepts verdicts and reports on them."""
        return FeedbackService(self.database, self.stream, self.intake, self.learn)

    @cached_property
    def judges(self) -> JudgesService:
        """Sets how far single judges count."""
        return JudgesService(self.database, self.noise)

    @cached_property
    def revoke(self) -> RevokeService:
        """Takes verdicts back."""
        return RevokeService(self.database, self.attribution, self.evolve)

    @cached_property
    def verify(self) -> VerifyService:
        """Proves that what is learned follows from the log."""
        return VerifyService(self.database, self.priors, self.evolve, capacity=self.key_learning.rules.capacity)

    @cached_property
    def past(self) -> PastService:
        """Makes past states."""
        restore = Restore(self.learn, self.attribution)
        return PastService(self.database, self.attribution, self.evolve, restore)

    @cached_property
    def forget(self) -> ForgetService:
        """Removes what verdicts taught."""
        return ForgetService(self.database)

    @cached_property
    def explain(self) -> ExplainService:
        """Shows what was learned."""
        return ExplainService(self.database, self.encoder)

    @cached_property
    def learned(self) -> LearnedService:
        """Shows it as a whole."""
        return LearnedService(self.database)

    @cached_property
    def judge(self) -> JudgeService:
        """Judges episodes with the LLM."""
        settings = self.settings
        return JudgeService(
            self.database,
            self.feedback,
            self.llm,
            name=settings.judge_name,
            interval_seconds=settings.judge_interval_seconds,
            window_hours=settings.judge_window_hours,
        )

    def warm_up(self) -> None:
        """Load what is heavy and check the configuration, before the first request pays for it."""
        _ = self.priors
        self.check_dimension()
        if self.database.replica is not None:
            self.database.replica.start()
        if self.settings.cross_encoder or self.settings.stop_weights:
            _ = self.classifier
        self._name_others()
        self.language.analyse_question("Where was Marie Curie born?")
        self.embedder.embed(["warm-up"])
        if self.embedder_also is not None:
            self.embedder_also.embed(["warm-up"])
        # What is loaded by now stays: the collector need not look through it again and again.
        gc.collect()
        gc.freeze()

    def _name_others(self) -> None:
        """Say which collections this process cannot serve: better now than with the first question."""
        with self.database.read() as reader:
            others = collections.of_other_encoders(reader, self.encoder.fingerprints, OTHERS_NAMED + 1)
        if others:
            log.warning(
                "collections of other encoders: what embeds text for them is refused",
                encoder=self.embedder.model,
                collections=[f"{other.name} ({other.encoder_model})" for other in others[:OTHERS_NAMED]],
                more=len(others) > OTHERS_NAMED,
            )

    def close(self) -> None:
        """Let go of every connection."""
        if "intake" in self.__dict__:
            self.intake.close()
        super().close()


@contextmanager
def application(settings: Settings, consumer: str = "") -> Iterator[Application]:
    """An application on the configured servers, closed at the end of the block; it never makes a database.

    Raises:
        ConfigurationError, UnavailableError: as ``servers``.
    """
    with servers(settings, make=False) as addresses:
        app = Application(settings, addresses, consumer)
        try:
            yield app
        finally:
            app.close()
