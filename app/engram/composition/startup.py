"""Start of a process: models are loaded and the configuration is checked."""

import gc
import os
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from engram.composition.models import Models
from engram.composition.parts.maintenance_services import MaintenanceServices
from engram.config.safe_urls import is_safe_url
from engram.config.settings import Settings
from engram.context import tenancy
from engram.context.errors import ConfigurationError
from engram.providers.embedder import choose_question_embed
from engram.providers.embedder.endpoint_encoder import EndpointEmbedder
from engram.providers.embedder.prefixes import MOST_DIMENSION
from engram.providers.language.language_detection import load_identifier
from engram.providers.reranker.folder_reranker import FolderReranker
from engram.storage.corpus import collections
from engram.storage.database import Database
from engram.storage.maintenance.schema_standing import check_standing

log = structlog.get_logger(__name__)

LOGGED_COLLECTIONS = 20
"""Most collections of other encoders that a starting process logs."""
FIRST_KEYS_SECONDS = 2.0
"""How long a start waits for the first keys of an identity provider."""


@dataclass(frozen=True, eq=False)
class Startup:
    """Steps that precede the first request.

    Attributes:
        warm_up_wings: loads what wings need.
    """

    settings: Settings
    database: Database
    models: Models
    maintenance: MaintenanceServices
    warm_up_wings: Callable[[], None]

    def warm_up(self) -> None:
        """Load models and check the configuration before the first request."""
        models = self.models
        if unknown := self.settings.list_unknown_variables(os.environ):
            log.warning("not settings: they change nothing (docs/settings.md)", variables=unknown)
        self.check_settings()
        provider_keys = models.provider_keys  # they are fetched meanwhile
        self.check_encoders()
        self.maintenance.wing_clearing.check()
        if self.database.replica is not None:
            self.database.replica.start()
        self.warm_up_wings()
        if isinstance(models.reranker, FolderReranker):
            models.reranker.load()
        self._warn_of_other_encoders()
        models.language.analyse_question("Where was Marie Curie born?")
        load_identifier()
        for embedder in (models.embedder, models.embedder_also, *models.named_embedders):
            if embedder is not None and not isinstance(embedder, EndpointEmbedder):
                choose_question_embed(embedder)(["warm-up"])
        if provider_keys is not None:
            provider_keys.wait(FIRST_KEYS_SECONDS)
        # Loaded objects live as long as the process: the garbage collector need not scan them.
        gc.collect()
        gc.freeze()

    def _warn_of_other_encoders(self) -> None:
        """Log the collections that this process cannot serve because another encoder made their vectors."""
        with tenancy.allow_all_tenants(), self.database.read() as reader:
            fingerprints = self.models.encoder.fingerprints
            differing = collections.list_of_other_encoders(reader, fingerprints, LOGGED_COLLECTIONS + 1)
        if differing:
            log.warning(
                "collections of other encoders: what embeds text for them is refused",
                encoder=self.models.embedder.model,
                collections=[f"{other.name} ({other.encoder_model})" for other in differing[:LOGGED_COLLECTIONS]],
                more=len(differing) > LOGGED_COLLECTIONS,
            )

    def check_settings(self) -> None:
        """Check what needs no server: the priors, and the address of logins.

        Raises:
            ConfigurationError: settings contradict each other, or a file of weights cannot be used.
        """
        settings = self.settings
        if settings.login_client and not settings.on_loopback and not is_safe_url(settings.url or ""):
            raise ConfigurationError(
                "ENGRAM_LOGIN_CLIENT needs an https address as ENGRAM_URL where others can reach the service: else "
                "the token of a login, which is its cookie, is sent in clear text."
            )
        _ = self.models.priors

    def check_encoders(self) -> None:
        """Check that the database is there, load the encoders of this machine, and ask servers for theirs.

        A server of an encoder that is away is asked later.

        Raises:
            ConfigurationError: this version does not work on the database's schema, an encoder cannot be loaded, or
                its vectors cannot be stored.
            UnavailableError: Postgres is out of reach.
        """
        models = self.models
        with tenancy.allow_all_tenants(), self.database.read() as reader:
            check_standing(reader)
        models.encoder.identify()
        for embedder in (models.embedder, models.embedder_also, *models.named_embedders):
            if embedder is None or isinstance(embedder, EndpointEmbedder):
                continue
            if embedder.dimension > MOST_DIMENSION:
                raise ConfigurationError(
                    f"{embedder.model} gives {embedder.dimension}-dimensional vectors, and {MOST_DIMENSION} is the "
                    "most: set ENGRAM_EMBEDDING_DIMENSION if the model allows shorter ones."
                )
