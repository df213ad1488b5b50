"""Composition of providers, storage and services into one application."""

import gc
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property
from urllib.parse import quote

import structlog

from engram import __version__
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.providers.embedded import EmbeddedPostgres
from engram.providers.embedder import Embedder
from engram.providers.embedder.endpoint_encoder import EndpointEmbedder
from engram.providers.embedder.prefixes import MOST_DIMENSION
from engram.providers.language import Language
from engram.providers.llm import Llm
from engram.providers.ranking_prior import RankingPriors
from engram.providers.reranker.folder_reranker import FolderReranker
from engram.runtime.maintenance import Maintenance
from engram.runtime.models import Models
from engram.runtime.servers import Connections, Servers, servers
from engram.services.auth.access_key_service import KeysService
from engram.services.auth.authentication import Authentication
from engram.services.auth.encoder import Encoder
from engram.services.auth.encoder_registry import EncoderRegistry
from engram.services.auth.quotas import QuotaService
from engram.services.auth.rate_limits import Rates
from engram.services.auth.replica_reads import Reads
from engram.services.auth.scope import AccessService
from engram.services.corpus.document_conversion import DocumentsService
from engram.services.corpus.entity_embedding import NamesService
from engram.services.corpus.graph_builder import IndexService
from engram.services.corpus.kind_measurement import KindService
from engram.services.corpus.passage_intake import IngestService
from engram.services.explanations.learning_overview import LearnedService
from engram.services.explanations.sentence_explanations import ExplainService
from engram.services.explanations.verdict_influence import Influences
from engram.services.facts.entity_alignment import AlignService
from engram.services.facts.entity_merge import JoinService
from engram.services.facts.fact_instructions import InstructService
from engram.services.facts.fact_retraction import WithdrawService
from engram.services.facts.fact_search import FactSearch
from engram.services.facts.fact_service import FactsService
from engram.services.facts.fact_views import ShowService
from engram.services.facts.graph_merge import AdoptService
from engram.services.facts.predicate_service import PredicatesService
from engram.services.facts.text_facts import TextService
from engram.services.jobs.job_kinds import INGEST, REEMBED, REKEY, REPLAY, REVOCATION, SESSIONS
from engram.services.jobs.job_runner import Runner
from engram.services.jobs.job_service import JobsService
from engram.services.jobs.work import JobHandler, Kind
from engram.services.learning.feedback_policy import FeedbackPolicy
from engram.services.learning.feedback_service import FeedbackService
from engram.services.learning.judge_exam import ModelExam
from engram.services.learning.judge_settings import JudgesService
from engram.services.learning.llm_judge import JudgeService
from engram.services.learning.pull_ledger import PullLedger
from engram.services.learning.verdict_intake import Intake
from engram.services.learning.verdict_learning import LearnService
from engram.services.learning.verdict_listing import VerdictListing
from engram.services.maintenance.audit_recording import AuditLog
from engram.services.maintenance.doctor_checks import DoctorService
from engram.services.maintenance.health_checks import HealthService
from engram.services.maintenance.reembedding import ReembedService
from engram.services.maintenance.service_gauges import StateService
from engram.services.maintenance.tenant_closing import ClosingService
from engram.services.passage_keys.attribution import Attribution, KeyLearning
from engram.services.passage_keys.key_evolution import EvolveService
from engram.services.passage_keys.key_view import KeyViewService
from engram.services.passage_keys.rekey import RekeyService
from engram.services.retrieval.dense_search import DenseService
from engram.services.retrieval.passage_key_cache import PassageKeyCache
from engram.services.retrieval.passage_reranking import PassageReranker
from engram.services.retrieval.pool_classifier import PoolClassifier
from engram.services.retrieval.query_expansion import ExpandService
from engram.services.retrieval.query_plan import QueryPlanner
from engram.services.retrieval.retrieval_service import RetrieveService
from engram.services.revocation.learning_reset import ForgetService
from engram.services.revocation.past_state import PastService
from engram.services.revocation.rating_service import RatingService
from engram.services.revocation.restored_verdicts import Restore
from engram.services.revocation.revocation_service import RevokeService, replay_memories
from engram.services.revocation.verification import VerifyService
from engram.services.serving.arm_comparison import CompareService
from engram.services.serving.experiment_arms import ServingService
from engram.services.serving.measured_lift import LiftService
from engram.services.serving.query_service import AskService
from engram.services.serving.reranking import RerankService
from engram.services.serving.worded_answer import AnswerService
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
from engram.storage.auth.tenants import Quotas
from engram.storage.corpus import collections
from engram.storage.maintenance.schema_standing import standing
from engram.storage.retrieval.query_focus import GraphLimits
from engram.telemetry import tracing
from engram.telemetry.metrics_endpoint import Check, Exposed

__all__ = ["Application", "Servers", "application", "servers"]

log = structlog.get_logger(__name__)

LOGGED_COLLECTIONS = 20
"""Most collections of other encoders that a starting process logs."""
FIRST_KEYS_SECONDS = 2.0
"""How long a start waits for the first keys of an identity provider."""
REMOTE_REQUEST_RATE = 20.0
"""Requests a second of each caller, where none is configured and other machines can reach the API."""


class Application:
    """Services of one process, each made when first used.

    Args:
        consumer: name of the process among the readers of the wake-up stream.

    Attributes:
        models: models and constants. Assign one before its first use to replace it.
        maintenance: services that the worker and the command line run.
    """

    def __init__(self, settings: Settings, addresses: Servers, consumer: str = "") -> None:
        self.settings = settings
        self.addresses = addresses
        self.models = Models(
            settings, lambda model, probes: EncoderRegistry(self.database).fingerprint(model, probes)
        )
        self.connections = Connections(settings, addresses, consumer)
        self.database = self.connections.database
        self.stream = self.connections.stream
        self.maintenance = Maintenance(settings, addresses, self.database)
        self._access_caches: list[Callable[[], None]] = []
        self._closing = ExitStack()
        self._closing.callback(self.models.close)
        self._closing.callback(self.connections.close)

    @property
    def embedder(self) -> Embedder:
        """Configured encoder."""
        return self.models.embedder

    @property
    def embedder_also(self) -> Embedder | None:
        """Second encoder, or None."""
        return self.models.embedder_also

    @property
    def encoder(self) -> Encoder:
        """Choice of the encoder that made a collection's vectors."""
        return self.models.encoder

    @property
    def language(self) -> Language:
        """Language pipeline."""
        return self.models.language

    @property
    def llm(self) -> Llm | None:
        """LLM endpoint, or None."""
        return self.models.llm

    @property
    def priors(self) -> RankingPriors:
        """Priors of the ranking weights and of sufficiency."""
        return self.models.priors

    @property
    def limits(self) -> GraphLimits:
        """Bounds on what one SQL statement reads."""
        return self.models.limits

    @property
    def noise(self) -> FeedbackPolicy:
        """Noise and quotas by which verdicts move learned state."""
        return self.models.noise

    @property
    def key_learning(self) -> KeyLearning:
        """Constants by which verdicts move passage keys."""
        return self.models.key_learning

    @cached_property
    def access(self) -> AccessService:
        """Lookup of collections by name."""
        return AccessService(self.database)

    @cached_property
    def authentication(self) -> Authentication:
        """Authentication of requests."""
        settings = self.settings
        needed = settings.access == "keys" or (settings.access == "auto" and not settings.on_loopback)
        authentication = Authentication(
            self.database,
            needed=needed,
            remember_seconds=settings.access_cache_seconds,
            tokens=self.models.tokens,
        )
        self._access_caches.append(authentication.forget)
        return authentication

    @cached_property
    def access_keys(self) -> KeysService:
        """Creation and revocation of access keys."""
        return KeysService(self.database, self.access_changed)

    @cached_property
    def quotas(self) -> QuotaService:
        """Quotas of tenants."""
        settings = self.settings
        defaults = Quotas(
            passages=settings.tenant_passages or None,
            collections=settings.tenant_collections or None,
            keys=settings.tenant_keys or None,
            sessions=settings.tenant_sessions or None,
            facts=settings.tenant_facts or None,
        )
        return QuotaService(self.database, remember_seconds=settings.access_cache_seconds, defaults=defaults)

    @cached_property
    def rates(self) -> Rates | None:
        """Limits of each caller's request rate, or None."""
        settings = self.settings
        rate = settings.rate_per_second
        if rate is None:
            rate = 0.0 if settings.on_loopback else REMOTE_REQUEST_RATE
        return Rates(self.connections.buckets, rate, settings.rate_burst) if rate else None

    @cached_property
    def reads(self) -> Reads:
        """Reads on the replica, if there is one."""
        return Reads(self.database, self.connections.positions)

    @cached_property
    def ingest(self) -> IngestService:
        """Intake of passages."""
        return IngestService(self.database, self.encoder)

    @cached_property
    def documents(self) -> DocumentsService:
        """Conversion of documents into passages."""
        return DocumentsService(
            max_bytes=self.settings.document_max_bytes, timeout_seconds=self.settings.document_timeout_seconds
        )

    @cached_property
    def index(self) -> IndexService:
        """Graph builder."""
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
        """Embedding of entity names."""
        return NamesService(self.database, self.encoder)

    @cached_property
    def rekey(self) -> RekeyService:
        """Rebuild of passage keys."""
        return RekeyService(
            self.database, self.encoder, batch_size=self.settings.ingest_batch_size, rebase=self.evolve.rebase
        )

    @cached_property
    def reembed(self) -> ReembedService:
        """Change of encoder."""
        return ReembedService(
            self.database,
            self.encoder,
            batch_size=self.settings.ingest_batch_size,
            memories=replay_memories,
            keys=self.evolve.rebase,
        )

    @cached_property
    def closing(self) -> ClosingService:
        """Removal of tenants."""
        return ClosingService(self.database, self.access_changed)

    @cached_property
    def planner(self) -> QueryPlanner:
        """Analysis and embedding of questions."""
        settings = self.settings
        return QueryPlanner(
            self.encoder,
            self.language,
            self.limits,
            settings.question_memory_threshold,
            self.llm,
            llm_times=settings.llm_time_extraction,
            collapse_duplicates=settings.collapse_duplicates,
        )

    @cached_property
    def key_cache(self) -> PassageKeyCache:
        """Passage keys held in this process."""
        return PassageKeyCache(self.settings.passage_key_cache_mb * 2**20)

    @cached_property
    def retrieve(self) -> RetrieveService:
        """Retrieval of evidence."""
        return RetrieveService(
            self.database,
            self.planner,
            self.priors,
            self.key_cache,
            self.llm,
            threshold=self.settings.sufficiency_threshold,
            classifier=lambda: self.classifier,
            reranker=self._passage_reranker(),
        )

    def _passage_reranker(self) -> PassageReranker | None:
        """Client of the configured reranker, or None."""
        reranker, settings = self.models.reranker, self.settings
        if reranker is None:
            return None
        return PassageReranker(reranker, candidates=settings.reranker_candidates, seconds=settings.reranker_seconds)

    @cached_property
    def classifier(self) -> PoolClassifier:
        """Published classifier of sufficient evidence pools."""
        return PoolClassifier(self.language, self.encoder, self.models.relevance, self.models.stop_weights)

    @cached_property
    def dense(self) -> DenseService:
        """Plain dense retrieval."""
        return DenseService(self.database, self.encoder)

    @cached_property
    def expand(self) -> ExpandService:
        """Expansion of questions."""
        return ExpandService(self.database, self.encoder, self.limits, self.llm)

    @cached_property
    def ask(self) -> AskService:
        """Answers to queries under given arms."""
        influences = Influences(self.priors, self.settings.question_memory_threshold)
        return AskService(
            self.database, self.reads, self.retrieve, influences, durable=self.settings.episodes_durable
        )

    @cached_property
    def serving(self) -> ServingService:
        """Answers to queries by their collection's settings."""
        return ServingService(self.database, self.ask)

    @cached_property
    def lift(self) -> LiftService:
        """Comparison of experiment arms."""
        return LiftService(self.database, generation_threshold=self.settings.passage_key_generation_threshold)

    @cached_property
    def compare(self) -> CompareService:
        """Comparison of one query under two arms."""
        return CompareService(self.reads, self.retrieve)

    @cached_property
    def answer(self) -> AnswerService:
        """Worded answers."""
        return AnswerService(self.serving, self.llm, threshold=self.settings.sufficiency_threshold)

    @cached_property
    def rerank(self) -> RerankService:
        """Ranking of texts that callers bring."""
        return RerankService(self.database, self.encoder, self.serving)

    @cached_property
    def facts(self) -> FactsService:
        """Intake of statements."""
        return FactsService(self.database, self.language, self.noise, self.align)

    @cached_property
    def texts(self) -> TextService:
        """Extraction of facts from text."""
        return TextService(self.language, self.llm, self.settings.facts_extraction)

    @cached_property
    def fact_search(self) -> FactSearch:
        """Search of facts."""
        return FactSearch(self.database)

    @cached_property
    def show(self) -> ShowService:
        """Views of facts and their entities."""
        return ShowService(self.database)

    @cached_property
    def join(self) -> JoinService:
        """Merges and splits of fact entities."""
        return JoinService(self.database, self.noise)

    @cached_property
    def align(self) -> AlignService:
        """Alignment of entity and predicate names."""
        return AlignService(self.database, self.encoder)

    @cached_property
    def adopt(self) -> AdoptService:
        """Merges of fact graphs."""
        return AdoptService(self.database, self.noise, self.align)

    @cached_property
    def withdraw(self) -> WithdrawService:
        """Retraction of statements."""
        return WithdrawService(self.database, self.noise)

    @cached_property
    def predicates(self) -> PredicatesService:
        """Settings of predicates."""
        return PredicatesService(self.database)

    @cached_property
    def instruct(self) -> InstructService:
        """Instructions on facts in words."""
        return InstructService(self.facts, self.fact_search, self.llm)

    @cached_property
    def learn(self) -> LearnService:
        """Application of verdicts."""
        return LearnService(
            self.database,
            self.noise,
            self.priors,
            self.attribution,
            self.evolve,
            max_attempts=self.settings.feedback_max_attempts,
        )

    @cached_property
    def intake(self) -> Intake:
        """Entry of verdicts into the feedback log."""
        intake = Intake(self.database, self.stream, self.encoder)
        self._closing.callback(intake.close)
        return intake

    @cached_property
    def feedback(self) -> FeedbackService:
        """Intake and status of verdicts."""
        return FeedbackService(self.database, self.stream, self.intake, self.learn)

    @cached_property
    def verdict_listing(self) -> VerdictListing:
        """Lists of verdicts."""
        return VerdictListing(self.database)

    @cached_property
    def judges(self) -> JudgesService:
        """Settings of single judges."""
        return JudgesService(self.database, self.noise)

    @cached_property
    def pulls(self) -> PullLedger:
        """The ledger of pulls: scores of other products that were sent."""
        return PullLedger(self.database)

    @cached_property
    def exam(self) -> ModelExam:
        """Exam that the model passes before it teaches."""
        return ModelExam(self.llm, required=self.settings.judge_exam)

    @cached_property
    def judge(self) -> JudgeService:
        """LLM judge of episodes."""
        settings = self.settings
        return JudgeService(
            self.database,
            self.feedback,
            self.llm,
            name=settings.judge_name,
            interval_seconds=settings.judge_interval_seconds,
            window_hours=settings.judge_window_hours,
            exam=self.exam,
        )

    @cached_property
    def attribution(self) -> Attribution:
        """Credit of expansion units by verdicts."""
        return Attribution(self.database, self.encoder, self.limits, self.key_learning)

    @cached_property
    def evolve(self) -> EvolveService:
        """Evolution of passage keys."""
        return EvolveService(self.database, self.key_learning.rules)

    @cached_property
    def key_view(self) -> KeyViewService:
        """Views of passage keys."""
        return KeyViewService(self.database, self.key_learning.rules)

    @cached_property
    def revoke(self) -> RevokeService:
        """Revocation of verdicts."""
        return RevokeService(self.database, self.attribution, self.evolve)

    @cached_property
    def ratings(self) -> RatingService:
        """Intake of ratings."""
        return RatingService(self.feedback, self.revoke)

    @cached_property
    def verify(self) -> VerifyService:
        """Verification that learned state follows from the log."""
        return VerifyService(self.database, self.priors, self.evolve, capacity=self.key_learning.rules.capacity)

    @cached_property
    def past(self) -> PastService:
        """Reconstruction of past states."""
        restore = Restore(self.learn, self.attribution)
        return PastService(self.database, self.attribution, self.evolve, restore)

    @cached_property
    def forget(self) -> ForgetService:
        """Reset of learned state."""
        return ForgetService(self.database)

    @cached_property
    def explain(self) -> ExplainService:
        """Explanations of sentences."""
        return ExplainService(self.database, self.encoder)

    @cached_property
    def learned(self) -> LearnedService:
        """Overview of learned state."""
        return LearnedService(self.database)

    @cached_property
    def session_planners(self) -> dict[str, SessionPlanner]:
        """Session planners by name."""
        pool = PoolPlanner()
        planners: list[SessionPlanner] = [pool, SocraticPlanner(pool), TreePlanner(pool), AgentPlanner()]
        by_name = {planner.name: planner for planner in planners}
        return by_name | {AutoPlanner.name: AutoPlanner(pool, by_name)}

    @cached_property
    def teacher(self) -> Teacher:
        """Distribution of session verdicts to rounds."""
        return Teacher(self.database, self.feedback)

    @cached_property
    def session_runner(self) -> SessionRunner:
        """Runner of session rounds."""
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
            self.exam,
        )

    @cached_property
    def sessions(self) -> SessionService:
        """Start and status of sessions."""
        return SessionService(self.database, self.encoder, self.runner, self.session_planners, self.llm)

    @cached_property
    def trajectories(self) -> TrajectoryService:
        """Sessions as trajectories."""
        return TrajectoryService(self.database)

    @cached_property
    def handlers(self) -> Mapping[Kind, JobHandler]:
        """Job handlers by kind."""
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
        """Job runner."""
        return Runner(
            self.database,
            self.handlers,
            lease_seconds=self.settings.job_lease_seconds,
            afterwards=lambda should_stop, collection_id: self.names.run(should_stop, collection_id=collection_id),
        )

    @cached_property
    def jobs(self) -> JobsService:
        """Status and cancellation of jobs."""
        return JobsService(self.database, self.handlers)

    @cached_property
    def health(self) -> HealthService:
        """Checks of what the process depends on."""
        settings = self.settings
        return HealthService(
            self.database,
            self.stream,
            self.encoder,
            self.language,
            settings.llm_base_url,
            embedded=settings.data_dir if self._has_embedded_postgres() else None,
        )

    def _has_embedded_postgres(self) -> bool:
        """Whether Postgres keeps its data in the data directory, whichever process started it."""
        server = EmbeddedPostgres(self.settings.data_dir.resolve() / "postgres")
        return f"host={quote(str(server.socket_directory))}&" in self.addresses.database_url

    @cached_property
    def state(self) -> StateService:
        """Gauges of the present state, for metrics."""
        return StateService(self.database, self.stream)

    @cached_property
    def audit_log(self) -> AuditLog:
        """Audit log of administrative acts."""
        return AuditLog(self.database)

    @cached_property
    def doctor(self) -> DoctorService:
        """Checks of the whole installation."""
        return DoctorService(
            self.settings, self.database, self.stream, lambda: self.encoder, lambda: self.models.reranker
        )

    def warm_up(self) -> None:
        """Load models and check the configuration before the first request."""
        _ = self.priors
        tokens = self.models.tokens  # whose keys are fetched meanwhile
        self.check_encoders()
        if self.database.replica is not None:
            self.database.replica.start()
        if self.settings.cross_encoder or self.settings.stop_weights:
            _ = self.classifier
        if isinstance(self.models.reranker, FolderReranker):
            self.models.reranker.load()
        self._warn_of_other_encoders()
        self.language.analyse_question("Where was Marie Curie born?")
        for embedder in (self.embedder, self.models.embedder_also, *self.models.named_embedders):
            if embedder is not None and not isinstance(embedder, EndpointEmbedder):
                embedder.embed(["warm-up"])
        if tokens is not None:
            tokens.keys.wait(FIRST_KEYS_SECONDS)
        # Loaded objects live as long as the process: the garbage collector need not scan them.
        gc.collect()
        gc.freeze()

    def _warn_of_other_encoders(self) -> None:
        """Log the collections that this process cannot serve because another encoder made their vectors."""
        with self.database.read() as reader:
            differing = collections.of_other_encoders(reader, self.encoder.fingerprints, LOGGED_COLLECTIONS + 1)
        if differing:
            log.warning(
                "collections of other encoders: what embeds text for them is refused",
                encoder=self.embedder.model,
                collections=[f"{other.name} ({other.encoder_model})" for other in differing[:LOGGED_COLLECTIONS]],
                more=len(differing) > LOGGED_COLLECTIONS,
            )

    def check_access(self) -> None:
        """Check that access keys and row security protect the API as configured.

        Raises:
            ConfigurationError: clients on other machines would have access without a key, or row security fails.
        """
        if self.settings.access == "auto":
            self.authentication.check_start(self.settings.host)
        if self.settings.row_security:
            self.database.check_row_security()

    def check_encoders(self) -> None:
        """Check that the database is there, load the encoders of this machine, and ask servers for theirs.

        A server of an encoder that is away is asked later.

        Raises:
            ConfigurationError: the database was never migrated, an encoder cannot be loaded, or its vectors cannot
                be stored.
            UnavailableError: Postgres is out of reach.
        """
        with self.database.read() as reader:
            standing(reader)  # one that was never migrated is refused
        self.encoder.identify()
        for embedder in (self.embedder, self.embedder_also, *self.models.named_embedders):
            if embedder is None or isinstance(embedder, EndpointEmbedder):
                continue
            if embedder.dimension > MOST_DIMENSION:
                raise ConfigurationError(
                    f"{embedder.model} gives {embedder.dimension}-dimensional vectors, and {MOST_DIMENSION} is the "
                    "most: set ENGRAM_EMBEDDING_DIMENSION if the model allows shorter ones."
                )

    def follow_access(self) -> Callable[[], None]:
        """Drop cached access keys whenever a process announces a change; return the function that ends this."""
        return self.connections.notices.listen(self.authentication.forget)

    def access_changed(self) -> None:
        """Drop cached access keys in every process."""
        for forget in self._access_caches:
            forget()
        self.connections.notices.tell()

    def observe(self, role: str, checks: Mapping[str, Check] | None = None) -> None:
        """Serve metrics on their own port and send traces, where each is configured.

        Args:
            role: role of the process in traces.
            checks: path -> check that the metrics port answers there.

        Raises:
            ConfigurationError: the port is taken, or tracing cannot start.
        """
        settings = self.settings
        if settings.metrics_port:
            exposed = Exposed(settings.metrics_host, settings.metrics_port, self.state.metrics, checks)
            self._closing.callback(exposed.close)
        if settings.otlp_endpoint:
            self._closing.callback(tracing.start(settings.otlp_endpoint, role, __version__, settings.otlp_share))

    def close(self) -> None:
        """Close everything that was opened, the latest first."""
        self._closing.close()


@contextmanager
def application(settings: Settings, consumer: str = "") -> Iterator[Application]:
    """Yield an application on the configured servers and close it; no database is created.

    Raises:
        ConfigurationError, UnavailableError: as ``servers``.
    """
    with (
        servers(settings, make=False) as addresses,
        closing(Application(settings, addresses, consumer)) as services,
    ):
        yield services
