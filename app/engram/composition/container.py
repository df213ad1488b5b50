"""Composition of connections, models and services into one application."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Generic, TypeVar

from engram import __version__
from engram.composition.models import Models
from engram.composition.parts.answer_services import AnswerServices
from engram.composition.parts.auth_services import AuthServices
from engram.composition.parts.corpus_services import CorpusServices
from engram.composition.parts.job_services import JobServices
from engram.composition.parts.learning_services import LearningServices
from engram.composition.parts.maintenance_services import MaintenanceServices
from engram.composition.parts.passage_key_services import PassageKeyServices
from engram.composition.parts.retrieval_services import RetrievalServices
from engram.composition.parts.revocation_services import RevocationServices
from engram.composition.server_addresses import servers
from engram.composition.servers import Connections, Servers
from engram.composition.startup import Startup
from engram.composition.wings import Wing, choose_wings, collect_hooks, find_local_servers, list_installed_wings
from engram.config.settings import Settings
from engram.services.auth.encoder_registry import EncoderRegistry
from engram.services.jobs.work import JobHandler, Kind
from engram.services.maintenance.wing_clearing import WingPlaces
from engram.telemetry import tracing
from engram.telemetry.metrics_endpoint import Check, MetricsEndpoint

__all__ = ["Application", "Servers", "application", "servers"]

S = TypeVar("S")
W = TypeVar("W")


class PartAttribute(Generic[S]):
    """Read-only attribute of the application: a service or model of one of its parts."""

    def __init__(self, read: Callable[["Application"], S]) -> None:
        self._read = read

    def __get__(self, application: "Application", owner: type["Application"]) -> S:
        return self._read(application)

    def __set__(self, application: "Application", value: S) -> None:
        raise AttributeError("A part of the application makes this. Assign to `models`, before the first use.")


class Application:
    """Services of one process, each made by its part when first used.

    Args:
        consumer: name of the process among the readers of the wake-up stream.
        wings: what there is beside the core; None for the installed wings.

    Attributes:
        installed_wings: all wings, on or off.
        wings: name of a wing that is on -> its services.
        hooks: what these add to services.
        models: models and constants. Assign one before its first use to replace it.
    """

    settings: Settings
    models: Models
    auth_services: AuthServices
    corpus_services: CorpusServices
    retrieval_services: RetrievalServices
    answer_services: AnswerServices
    learning_services: LearningServices
    passage_key_services: PassageKeyServices
    revocation_services: RevocationServices
    job_services: JobServices
    maintenance: MaintenanceServices
    startup: Startup

    embedder = PartAttribute(lambda app: app.models.embedder)
    embedder_also = PartAttribute(lambda app: app.models.embedder_also)
    encoder = PartAttribute(lambda app: app.models.encoder)
    language = PartAttribute(lambda app: app.models.language)
    llm = PartAttribute(lambda app: app.models.llm)
    priors = PartAttribute(lambda app: app.models.priors)
    limits = PartAttribute(lambda app: app.models.limits)
    noise = PartAttribute(lambda app: app.models.noise)
    key_learning = PartAttribute(lambda app: app.models.key_learning)

    access = PartAttribute(lambda app: app.auth_services.access)
    authentication = PartAttribute(lambda app: app.auth_services.authentication)
    access_keys = PartAttribute(lambda app: app.auth_services.access_keys)
    quotas = PartAttribute(lambda app: app.auth_services.quotas)
    rates = PartAttribute(lambda app: app.auth_services.rates)
    reads = PartAttribute(lambda app: app.auth_services.reads)

    question_spreads = PartAttribute(lambda app: app.retrieval_services.question_spreads)
    ingest = PartAttribute(lambda app: app.corpus_services.ingest)
    collection_settings = PartAttribute(lambda app: app.corpus_services.collection_settings)
    index = PartAttribute(lambda app: app.corpus_services.index)
    kinds = PartAttribute(lambda app: app.corpus_services.kinds)
    names = PartAttribute(lambda app: app.corpus_services.names)
    rekey = PartAttribute(lambda app: app.corpus_services.rekey)
    reembed = PartAttribute(lambda app: app.corpus_services.reembed)

    planner = PartAttribute(lambda app: app.retrieval_services.planner)
    key_cache = PartAttribute(lambda app: app.retrieval_services.key_cache)
    retrieve = PartAttribute(lambda app: app.retrieval_services.retrieve)
    dense = PartAttribute(lambda app: app.retrieval_services.dense)
    expand = PartAttribute(lambda app: app.retrieval_services.expand)

    ask = PartAttribute(lambda app: app.answer_services.ask)
    serving = PartAttribute(lambda app: app.answer_services.serving)
    answer = PartAttribute(lambda app: app.answer_services.answer)

    learn = PartAttribute(lambda app: app.learning_services.learn)
    intake = PartAttribute(lambda app: app.learning_services.intake)
    feedback = PartAttribute(lambda app: app.learning_services.feedback)
    verdict_listing = PartAttribute(lambda app: app.learning_services.verdict_listing)
    judges = PartAttribute(lambda app: app.learning_services.judges)
    judge = PartAttribute(lambda app: app.learning_services.judge)

    attribution = PartAttribute(lambda app: app.passage_key_services.attribution)
    evolve = PartAttribute(lambda app: app.passage_key_services.evolve)
    key_view = PartAttribute(lambda app: app.passage_key_services.key_view)

    revoke = PartAttribute(lambda app: app.revocation_services.revoke)
    ratings = PartAttribute(lambda app: app.revocation_services.ratings)
    verify = PartAttribute(lambda app: app.revocation_services.verify)
    forget = PartAttribute(lambda app: app.revocation_services.forget)

    handlers = PartAttribute(lambda app: app.job_services.handlers)
    runner = PartAttribute(lambda app: app.job_services.runner)
    jobs = PartAttribute(lambda app: app.job_services.jobs)

    closing = PartAttribute(lambda app: app.maintenance.closing)
    audit_log = PartAttribute(lambda app: app.maintenance.audit_log)
    health = PartAttribute(lambda app: app.maintenance.health)
    state = PartAttribute(lambda app: app.maintenance.state)
    wing_clearing = PartAttribute(lambda app: app.maintenance.wing_clearing)

    def __init__(
        self, settings: Settings, addresses: Servers, consumer: str = "", wings: Sequence[Wing] | None = None
    ) -> None:
        """Compose the services.

        Raises:
            ConfigurationError: ENGRAM_WINGS names a wing that is not installed.
        """
        self.installed_wings = list_installed_wings() if wings is None else tuple(wings)
        self._chosen_wings = choose_wings(settings.wings, self.installed_wings)
        self.settings = settings
        self.addresses = addresses
        self.connections = Connections(settings, addresses, consumer)
        self.database = self.connections.database
        self.stream = self.connections.stream
        registry = EncoderRegistry(self.database)
        self.hooks = collect_hooks(self._chosen_wings, self)
        self.models = Models(settings, registry.fingerprint, self.hooks.weight_models)
        self._closing = ExitStack()
        self._closing.callback(self.models.close)
        self._closing.callback(self.connections.close)
        self._compose()
        self.wings: dict[str, object] = {}
        for wing in self._chosen_wings:
            self.wings[wing.name] = wing.attach(self)

    def _compose(self) -> None:
        """Join the parts: each gets the parts whose services it uses. No service is made yet."""
        settings, database, models = self.settings, self.database, self.models
        self.auth_services = AuthServices(settings, self.connections, models)
        self.retrieval_services = RetrievalServices(settings, database, models, self.hooks)
        self.passage_key_services = PassageKeyServices(database, models)
        self.corpus_services = CorpusServices(settings, database, models, self.passage_key_services, self.hooks)
        self.learning_services = LearningServices(
            settings,
            database,
            self.stream,
            models,
            self.passage_key_services,
            self.retrieval_services,
            self._closing,
        )
        self.revocation_services = RevocationServices(
            database, models, self.learning_services, self.passage_key_services, self.hooks
        )
        self.answer_services = AnswerServices(
            settings, database, models, self.auth_services, self.retrieval_services, self.hooks
        )
        self.job_services = JobServices(
            settings, database, self.corpus_services, self.revocation_services, self._list_job_handlers
        )
        self.maintenance = MaintenanceServices(
            settings,
            self.addresses,
            self.connections,
            models,
            self.auth_services.announce_change,
            self.hooks,
            {
                wing.name: WingPlaces(
                    [table.name for table in wing.tables],
                    [*wing.collection_settings],
                    sorted({kind.name for kind in wing.job_handlers}),
                )
                for wing in self.installed_wings
            },
            [wing.name for wing in self._chosen_wings],
            find_local_servers(settings.wings, self.installed_wings),
        )
        self.startup = Startup(settings, database, models, self.maintenance, self._warm_up_wings)

    def _list_job_handlers(self) -> dict[Kind, JobHandler]:
        """List what does the jobs of wings, by kind."""
        return {
            kind: pick(self.wings[wing.name])
            for wing in self._chosen_wings
            for kind, pick in wing.job_handlers.items()
        }

    def _warm_up_wings(self) -> None:
        for wing in self._chosen_wings:
            if wing.warm_up is not None:
                wing.warm_up(self.wings[wing.name])

    def wing(self, services: type[W]) -> W:
        """Return the services of a wing that is on, by their class.

        Raises:
            LookupError: no wing that is on has such services.
        """
        for attached in self.wings.values():
            if isinstance(attached, services):
                return attached
        raise LookupError(f"no wing that is on has {services.__name__}")

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
            exposed = MetricsEndpoint(settings.metrics_host, settings.metrics_port, self.state.metrics, checks)
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
