"""Models, the LLM endpoint and constants that services are built of, as configured."""

from contextlib import ExitStack
from pathlib import Path

from engram.composition.locked_property import locked_property
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.core.learning.steps import LearningRule, apply_events
from engram.providers.embedder import Embedder, load_precisions
from engram.providers.embedder.encoder_choices import EncoderChoice, choose_prefixes, read_choices
from engram.providers.embedder.endpoint_encoder import EndpointEmbedder, EndpointSettings, Register, probe_digest
from engram.providers.embedder.precisions import PrecisionChoice
from engram.providers.embedder.prefixes import (
    NO_PREFIXES,
    PrefixedEmbedder,
    Prefixes,
    find_known_prefixes,
    find_packaged_prefixes,
)
from engram.providers.jwt_keys import ProviderKeys
from engram.providers.jwt_tokens import Tokens
from engram.providers.language import Language, load_language
from engram.providers.llm import Llm
from engram.providers.openid_login import LoginClient
from engram.providers.ranking_prior import RankingPriors, load_priors
from engram.providers.reranker.endpoint_reranker import EndpointReranker
from engram.providers.reranker.folder_reranker import FolderReranker
from engram.services.effects.weight_effect import WeightPriors
from engram.services.encoders.encoder import Encoder
from engram.storage.question.query_focus import GraphLimits

EMBEDDING_TIMEOUT_SECONDS = 30.0
"""How long an embedding server may take for one batch of texts, with all of its tries."""
EMBEDDING_BATCH_SIZE = 64
"""Texts of a batch that an encoder reads."""
LLM_ATTEMPTS = 3
"""Tries of a request to the language model, the first included."""
GRAPH_LIMITS = GraphLimits(hub_limit=1000, candidate_limit=2000)
"""Sentences that a hop reads of one entity, and candidates that it scores, the most activated first."""
NOISE = NoiseAndCaps(
    positive=0.5, negative=1.0, process=0.001, share=0.98, contested=0.1, weight_verdicts=50, newcomers=0.2
)
"""Noises and caps of judges for whom `engram judges set` says nothing; R and Q as GAM-RAG has them (Appendix C)."""


class Models:
    """Models and constants of the configuration. Each is loaded when first used, or assigned in place of that."""

    def __init__(self, settings: Settings, register: Register = probe_digest) -> None:
        """Load nothing yet.

        Args:
            register: gives the fingerprint of an encoder behind a server; by default none is recognised later.
        """
        self.settings = settings
        self._register = register
        self._closing = ExitStack()
        self._late: list[Embedder] = []
        """Encoders that were loaded, in the precisions that make other vectors: for collections of those."""

    @locked_property
    def embedder(self) -> Embedder:
        """Configured encoder."""
        settings = self.settings
        model = settings.embedding_model
        prefixes = (settings.embedding_query_prefix, settings.embedding_passage_prefix)
        if settings.embedding_url is None:
            stated = choose_prefixes(*prefixes, find_packaged_prefixes(model))
            loaded, *late = (_adapt_encoder(one, stated, settings.embedding_dimension) for one in self._load(model))
            self._late += late
            return loaded
        key = settings.embedding_api_key
        return self._connect(
            EndpointSettings(
                name=model,
                url=settings.embedding_url,
                model=model,
                api_key=key.get_secret_value() if key else None,
                prefixes=choose_prefixes(*prefixes, find_known_prefixes(model)),
                dimension=settings.embedding_dimension,
                timeout_seconds=EMBEDDING_TIMEOUT_SECONDS,
                batch_size=EMBEDDING_BATCH_SIZE,
            )
        )

    @locked_property
    def named_embedders(self) -> list[Embedder]:
        """Encoders of the file that names more of them.

        Raises:
            ConfigurationError: the file cannot be read, or two encoders have one name.
        """
        path = self.settings.embedding_models
        if path is None:
            return []
        choices = read_choices(path)
        names = {self.embedder.model, *([self.embedder_also.model] if self.embedder_also else [])}
        if double := names & choices.keys():
            raise ConfigurationError(
                f"ENGRAM_EMBEDDING_MODELS: {', '.join(sorted(double))}: another encoder has the name."
            )
        return [self._load_named(name, choice) for name, choice in choices.items()]

    def _load_named(self, name: str, choice: EncoderChoice) -> Embedder:
        settings = self.settings
        if choice.url is None:
            # In one precision only: a name of the file names one kind of vectors.
            loaded = self._load(
                choice.folder or name, "float32" if settings.embedding_precision == "auto" else None
            )
            return _adapt_encoder(loaded[0], choice.prefixes(name), choice.dimension, name)
        model = choice.model or name
        return self._connect(
            EndpointSettings(
                name=name,
                url=choice.url,
                model=model,
                api_key=choice.api_key(),
                prefixes=choice.prefixes(model),
                dimension=choice.dimension,
                timeout_seconds=EMBEDDING_TIMEOUT_SECONDS,
                batch_size=EMBEDDING_BATCH_SIZE,
            )
        )

    def _connect(self, endpoint: EndpointSettings) -> EndpointEmbedder:
        embedder = EndpointEmbedder(endpoint, self._register)
        self._closing.callback(embedder.close)
        return embedder

    def _load(self, model: str, precision: PrecisionChoice | None = None) -> list[Embedder]:
        """The encoder in ``precision``, by default the configured one, then in those that make other vectors."""
        settings = self.settings
        return load_precisions(
            model,
            settings.embedding_runtime,
            Path(settings.data_dir).resolve(),
            settings.embedding_threads,
            EMBEDDING_BATCH_SIZE,
            precision or settings.embedding_precision,
        )

    @locked_property
    def embedder_also(self) -> Embedder | None:
        """Second encoder, for collections that it embedded, or None."""
        model = self.settings.secondary_embedding_model
        if model is None:
            return None
        prefixes = find_packaged_prefixes(model)
        loaded, *late = (_adapt_encoder(one, prefixes, None) for one in self._load(model))
        self._late += late
        return loaded

    @locked_property
    def encoder(self) -> Encoder:
        """Choice of the encoder that made a collection's vectors."""
        loaded = [self.embedder, *([self.embedder_also] if self.embedder_also else []), *self.named_embedders]
        return Encoder(*loaded, serving_only=self._late, question_tokens=self.settings.question_tokens)

    @locked_property
    def language(self) -> Language:
        """Configured spaCy pipeline, or the built-in rules."""
        return load_language(self.settings.spacy_model)

    @locked_property
    def provider_keys(self) -> ProviderKeys | None:
        """Metadata and keys of the configured identity provider, or None."""
        issuer, has_use = self.settings.jwt_issuer, bool(self.settings.jwt_audience or self.login_client)
        if not issuer and not has_use:
            return None
        if not issuer or not has_use:
            raise ConfigurationError("ENGRAM_JWT_ISSUER goes with ENGRAM_JWT_AUDIENCE or ENGRAM_LOGIN_CLIENT.")
        return ProviderKeys(issuer)

    @locked_property
    def tokens(self) -> Tokens | None:
        """Check of the provider's bearer tokens, or None if none are taken. Those of logins are not among them."""
        keys, audience = self.provider_keys, self.settings.jwt_audience
        return Tokens(keys, audience) if keys is not None and audience else None

    @locked_property
    def login_client(self) -> LoginClient | None:
        """The service as the identity provider knows it, or None if nobody can log in."""
        setting = self.settings.login_client
        return LoginClient.from_setting(setting.get_secret_value()) if setting else None

    @locked_property
    def llm(self) -> Llm | None:
        """Configured LLM endpoint, or None."""
        settings = self.settings
        if settings.llm_base_url is None:
            return None
        llm = Llm(
            base_url=settings.llm_base_url,
            api_key=settings.llm_api_key.get_secret_value() if settings.llm_api_key else None,
            model=settings.llm_model,
            timeout_seconds=settings.llm_timeout_seconds,
            max_attempts=LLM_ATTEMPTS,
        )
        self._closing.callback(llm.close)
        return llm

    @locked_property
    def priors(self) -> RankingPriors:
        """Ranking weights, and priors of what verdicts teach."""
        priors = load_priors(self.settings.ranking_prior)
        return priors if self.reranker is None else priors.with_reranker(self.reranker.name)

    @locked_property
    def reranker(self) -> EndpointReranker | FolderReranker | None:
        """Configured reranker, or None.

        Raises:
            ConfigurationError: two are configured, or it cannot be used.
        """
        settings = self.settings
        if settings.reranker_url is not None and settings.reranker_folder is not None:
            raise ConfigurationError("Set ENGRAM_RERANKER_URL or ENGRAM_RERANKER_FOLDER, not both.")
        if settings.reranker_url is not None:
            key = settings.reranker_api_key
            served = EndpointReranker(
                settings.reranker_url, settings.reranker_model, key.get_secret_value() if key else None
            )
            self._closing.callback(served.close)
            return served
        if settings.reranker_folder is not None:
            local = FolderReranker(settings.reranker_folder)
            self._closing.callback(local.close)
            return local
        return None

    @locked_property
    def limits(self) -> GraphLimits:
        """Bounds on what one SQL statement reads."""
        return GRAPH_LIMITS

    @locked_property
    def noise(self) -> NoiseAndCaps:
        """Noise and quotas by which verdicts move learned state."""
        return NOISE

    @locked_property
    def learning_rule(self) -> LearningRule:
        """Rule by which verdicts move supports."""
        return apply_events

    @locked_property
    def weight_priors(self) -> WeightPriors:
        """Priors of the models that verdicts teach."""
        return lambda kind: self.priors.select_kind(kind).priors

    def close(self) -> None:
        """Close the connections of the LLM and of embedding servers, if there are any."""
        self._closing.close()


def _adapt_encoder(
    embedder: Embedder, prefixes: Prefixes, dimension: int | None, name: str | None = None
) -> Embedder:
    """The encoder with prefixes, shorter vectors and another name, where any is asked for."""
    if prefixes == NO_PREFIXES and dimension in {None, embedder.dimension} and name in {None, embedder.model}:
        return embedder
    return PrefixedEmbedder(embedder, prefixes, dimension, name)
