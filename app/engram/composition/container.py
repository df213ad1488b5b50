"""Composition of connections, models and services into one application."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from typing import TypeVar

from engram import __version__
from engram.composition.models import Models
from engram.composition.parts.answer_services import AnswerServices
from engram.composition.parts.auth_services import AuthServices
from engram.composition.parts.corpus_services import CorpusServices
from engram.composition.parts.job_services import JobServices
from engram.composition.parts.learning_services import LearningServices
from engram.composition.parts.maintenance_services import MaintenanceServices
from engram.composition.parts.retrieval_services import RetrievalServices
from engram.composition.parts.revocation_services import RevocationServices
from engram.composition.server_addresses import servers
from engram.composition.servers import Connections, Servers
from engram.composition.startup import Startup
from engram.composition.wings import Wing, choose_wings, collect_hooks, find_local_servers, list_installed_wings
from engram.config.settings import Settings
from engram.services.encoders.encoder_registry import EncoderRegistry
from engram.services.jobs.work import JobHandler, JobKind
from engram.services.maintenance.wing_clearing import WingHoldings
from engram.telemetry import tracing
from engram.telemetry.metrics_endpoint import Check, MetricsEndpoint

__all__ = ["Application", "Servers", "application", "servers"]

S = TypeVar("S")
W = TypeVar("W")


class Application:
    """Services of one process, each made by its part when first used.

    Args:
        consumer: the name of this process in the consumer group of the wake-up stream.
        wings: wings that there are, on or off; None for the installed ones.

    Attributes:
        installed_wings: all wings, on or off.
        wing_services: name of a wing that is on -> its services.
        hooks: what these add to services.
        models: models and constants. Assign one before its first use to replace it.
    """

    settings: Settings
    models: Models
    auth: AuthServices
    corpus: CorpusServices
    retrieval: RetrievalServices
    answers: AnswerServices
    learning: LearningServices
    revocation: RevocationServices
    jobs: JobServices
    maintenance: MaintenanceServices
    startup: Startup

    def __init__(
        self, settings: Settings, addresses: Servers, consumer: str = "", wings: Sequence[Wing] | None = None
    ) -> None:
        """Compose the services.

        Raises:
            ConfigurationError: ENGRAM_WINGS names a wing that is not installed, or omits one that another needs.
        """
        self.installed_wings = list_installed_wings() if wings is None else tuple(wings)
        self._chosen_wings = choose_wings(settings.wings, self.installed_wings)
        self.settings = settings
        self.addresses = addresses
        self.connections = Connections(settings, addresses, consumer)
        self.database = self.connections.database
        self.stream = self.connections.stream
        registry = EncoderRegistry(self.database)
        self.hooks = collect_hooks(self._chosen_wings, self.installed_wings, self)
        self.models = Models(settings, registry.fingerprint)
        self._closing = ExitStack()
        self._closing.callback(self.models.close)
        self._closing.callback(self.connections.close)
        self._compose()
        self.wing_services: dict[str, object] = {}
        for wing in self._chosen_wings:
            self.wing_services[wing.name] = wing.attach(self)

    def _compose(self) -> None:
        """Create the groups of services (``composition/parts``). A service is made on its first use."""
        settings, database, models = self.settings, self.database, self.models
        self.auth = AuthServices(settings, self.connections, models)
        self.retrieval = RetrievalServices(settings, database, models, self.hooks)
        self.corpus = CorpusServices(settings, database, models, self.hooks)
        self.learning = LearningServices(
            settings,
            database,
            self.stream,
            models,
            self.retrieval,
            self.hooks,
            self._closing,
        )
        self.revocation = RevocationServices(database, models, self.learning, self.hooks)
        self.answers = AnswerServices(
            settings, database, models, self.auth, self.retrieval, self.hooks, self._closing
        )
        self.jobs = JobServices(
            settings, database, self.corpus, self.learning, self.revocation, self._list_job_handlers
        )
        self.maintenance = MaintenanceServices(
            settings,
            self.addresses,
            self.connections,
            models,
            self.auth.announce_change,
            self.hooks,
            self.revocation,
            {
                wing.name: WingHoldings(
                    [table.name for table in wing.tables],
                    [*wing.collection_settings],
                    sorted({kind.name for kind in wing.job_handlers}),
                    wing.forget,
                )
                for wing in self.installed_wings
            },
            [wing.name for wing in self._chosen_wings],
            find_local_servers(settings.wings, self.installed_wings),
        )
        self.startup = Startup(settings, database, models, self.maintenance, self._warm_up_wings)

    def _list_job_handlers(self) -> dict[JobKind, JobHandler]:
        """List what does the jobs of wings, by kind."""
        return {
            kind: pick(self.wing_services[wing.name])
            for wing in self._chosen_wings
            for kind, pick in wing.job_handlers.items()
        }

    def _warm_up_wings(self) -> None:
        for wing in self._chosen_wings:
            if wing.warm_up is not None:
                wing.warm_up(self.wing_services[wing.name])

    def list_wing_sweeps(self) -> dict[str, Callable[[Callable[[], bool]], object]]:
        """List what does the due work of each wing that is on, by its name; it takes whether to stop."""
        return {
            wing.name: partial(wing.sweep, self.wing_services[wing.name])
            for wing in self._chosen_wings
            if wing.sweep is not None
        }

    def wing(self, services: type[W]) -> W:
        """Return the services of a wing that is on, by their class.

        Raises:
            LookupError: no wing that is on has such services.
        """
        for attached in self.wing_services.values():
            if isinstance(attached, services):
                return attached
        raise LookupError(f"no wing that is on has {services.__name__}")

    def start_telemetry(self, role: str, checks: Mapping[str, Check] | None = None) -> None:
        """Serve metrics on their own port and send traces, where each is configured.

        Args:
            role: role of the process in traces.
            checks: path -> check that the metrics port answers there.

        Raises:
            ConfigurationError: the port is taken, or tracing cannot start.
        """
        settings = self.settings
        if settings.metrics_port:
            exposed = MetricsEndpoint(
                settings.metrics_host, settings.metrics_port, self.maintenance.state.metrics, checks
            )
            self._closing.callback(exposed.close)
        if settings.otlp_endpoint:
            self._closing.callback(tracing.start(settings.otlp_endpoint, role, __version__))

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
