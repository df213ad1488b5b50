"""Models, the LLM endpoint and constants that services are built of, as configured."""

from contextlib import ExitStack
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


class Models:
    """Models and constants of the configuration. Each is loaded when first used, or assigned in place of that."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._closing = ExitStack()

    @cached_property
    def embedder(self) -> Embedder:
        """Configured encoder."""
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
        """Second encoder, for collections that it embedded, or None."""
        model = self.settings.secondary_embedding_model
        return None if model is None else self._load(model)

    @cached_property
    def encoder(self) -> Encoder:
        """Choice of the encoder that made a collection's vectors."""
        others = [self.embedder_also] if self.embedder_also else []
        return Encoder(self.embedder, *others, question_tokens=self.settings.question_tokens)

    @cached_property
    def language(self) -> Language:
        """Configured spaCy pipeline, or the built-in rules."""
        return load_language(self.settings.spacy_model)

    @cached_property
    def tokens(self) -> Tokens | None:
        """Check of the configured identity provider's tokens, or None."""
        settings = self.settings
        issuer, audience, keys_url = settings.jwt_issuer, settings.jwt_audience, settings.jwt_keys_url
        if not (issuer or audience or keys_url):
            return None
        if not issuer or not audience or not keys_url:
            raise ConfigurationError("ENGRAM_JWT_ISSUER, ENGRAM_JWT_AUDIENCE and ENGRAM_JWT_KEYS_URL go together.")
        return Tokens(issuer, audience, keys_url)

    @cached_property
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
            max_attempts=settings.llm_max_attempts,
            prices=(settings.llm_price_prompt, settings.llm_price_completion),
        )
        self._closing.callback(llm.close)
        return llm

    @cached_property
    def priors(self) -> RankingPriors:
        """Priors of the ranking weights and of sufficiency."""
        return load_priors(self.settings.ranking_prior).with_rounds(self.stop_weights.rounds)

    @cached_property
    def stop_weights(self) -> StopWeights:
        """Weights of the published classifier of sufficient evidence pools."""
        return load_stop(self.settings.stop_weights)

    @cached_property
    def relevance(self) -> Relevance | None:
        """Configured cross-encoder, or None."""
        folder = self.settings.cross_encoder
        return None if folder is None else CrossEncoder(folder)

    @cached_property
    def limits(self) -> GraphLimits:
        """Bounds on what one SQL statement reads."""
        settings = self.settings
        return GraphLimits(settings.hub_limit, settings.candidate_limit)

    @cached_property
    def noise(self) -> FeedbackPolicy:
        """Noise and quotas by which verdicts move learned state."""
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
        """Constants by which verdicts move passage keys.

        Raises:
            ConfigurationError: the settings of passage keys contradict each other.
        """
        settings = self.settings
        try:
            rules = KeyRules(
                settings.passage_key_strength,
                settings.passage_key_term_strength,
                settings.passage_key_units,
                settings.passage_key_capacity,
            )
        except ValueError as error:
            raise ConfigurationError(f"ENGRAM_PASSAGE_KEY_UNITS, ENGRAM_PASSAGE_KEY_CAPACITY: {error}") from error
        return KeyLearning(
            rules,
            gate_top_k=settings.passage_key_gate_top_k,
            generation_threshold=settings.passage_key_generation_threshold,
            batch_events=settings.passage_key_batch_events,
            patience=settings.passage_key_patience,
            margin=settings.passage_key_margin,
            most_waiting=settings.passage_key_max_pending,
        )

    def close(self) -> None:
        """Close the LLM's connections, if there are any."""
        self._closing.close()
