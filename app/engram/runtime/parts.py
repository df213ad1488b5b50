"""What services are made of, by the settings: models, an endpoint, constants."""

from functools import cached_property
from pathlib import Path

from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.core.passage_keys.evolution import KeyRules
from engram.providers.embedder import Embedder, load_embedder
from engram.providers.jwt_tokens import Tokens
from engram.providers.language import Language, load_language
from engram.providers.llm import Llm
from engram.providers.ranking_prior import RankingPriors, load_priors
from engram.providers.stop_weights import CrossEncoder, Relevance, StopWeights, load_stop
from engram.services.auth.encoder import Encoder
from engram.services.learning.feedback_policy import FeedbackPolicy
from engram.services.passage_keys.attribution import KeyLearning
from engram.storage.retrieval.query_focus import GraphLimits


class Parts:
    """Parts that hold no connection to a server of ours; what is heavy is loaded when first used."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    @cached_property
    def embedder(self) -> Embedder:
        """The configured encoder."""
        return self._load(self.settings.embedding_model)

    def _load(self, model: str) -> Embedder:
        settings = self.settings
        return load_embedder(
            model,
            settings.embedding_runtime,
            Path(settings.data_dir).resolve(),
            settings.embedding_threads,
            settings.embedding_batch_size,
            settings.embedding_precision,
        )

    @cached_property
    def embedder_also(self) -> Embedder | None:
        """The second one, or None."""
        model = self.settings.embedding_also
        return None if model is None else self._load(model)

    @cached_property
    def encoder(self) -> Encoder:
        """Both, for the collections that they made the vectors of."""
        return Encoder(self.embedder, *([self.embedder_also] if self.embedder_also else []))

    @cached_property
    def language(self) -> Language:
        """The configured spaCy pipeline, or the built-in rules."""
        return load_language(self.settings.spacy_model)

    @cached_property
    def tokens(self) -> Tokens | None:
        """Checks the tokens of the configured identity provider, or None."""
        settings = self.settings
        told = (settings.jwt_issuer, settings.jwt_audience, settings.jwt_keys_url)
        if not any(told):
            return None
        issuer, audience, keys_url = told
        if not issuer or not audience or not keys_url:
            raise ConfigurationError("ENGRAM_JWT_ISSUER, ENGRAM_JWT_AUDIENCE and ENGRAM_JWT_KEYS_URL go together.")
        return Tokens(issuer, audience, keys_url)

    @cached_property
    def llm(self) -> Llm | None:
        """The configured endpoint, or None."""
        settings = self.settings
        if settings.llm_base_url is None:
            return None
        return Llm(
            base_url=settings.llm_base_url,
            api_key=settings.llm_api_key.get_secret_value() if settings.llm_api_key else None,
            model=settings.llm_model,
            timeout_seconds=settings.llm_timeout_seconds,
            max_attempts=settings.llm_max_attempts,
            prices=(settings.llm_price_prompt, settings.llm_price_completion),
        )

    @cached_property
    def priors(self) -> RankingPriors:
        """What is believed of the ranking weights, and of what is enough, before any verdict."""
        return load_priors(self.settings.ranking_prior).with_rounds(self.stop_weights.rounds)

    @cached_property
    def stop_weights(self) -> StopWeights:
        """By which the published classifier tells pools that suffice."""
        return load_stop(self.settings.stop_weights)

    @cached_property
    def relevance(self) -> Relevance | None:
        """The configured cross-encoder, or None."""
        folder = self.settings.cross_encoder
        return None if folder is None else CrossEncoder(folder)

    @cached_property
    def limits(self) -> GraphLimits:
        """Bounds on what one statement reads."""
        settings = self.settings
        return GraphLimits(settings.hub_limit, settings.candidate_limit)

    @cached_property
    def noise(self) -> FeedbackPolicy:
        """How far verdicts move what is learned."""
        settings = self.settings
        return FeedbackPolicy(
            settings.observation_noise_positive,
            settings.observation_noise_negative,
            settings.process_noise,
            settings.judge_daily_share,
            settings.judge_contested_share,
            settings.judge_daily_comparisons,
            newcomers=settings.judge_newcomer_share,
        )

    @cached_property
    def key_learning(self) -> KeyLearning:
        """By which constants verdicts move passage keys."""
        settings = self.settings
        try:
            rules = KeyRules(
                settings.key_strength, settings.key_term_strength, settings.key_units, settings.key_capacity
            )
        except ValueError as error:
            raise ConfigurationError(f"ENGRAM_KEY_UNITS, ENGRAM_KEY_CAPACITY: {error}") from error
        return KeyLearning(
            rules,
            gate_top_k=settings.key_gate_top_k,
            generation_threshold=settings.key_generation_threshold,
            batch_events=settings.key_batch_events,
            patience=settings.key_patience,
            margin=settings.key_margin,
            most_waiting=settings.key_most_waiting,
        )
