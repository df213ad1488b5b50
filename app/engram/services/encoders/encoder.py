"""The encoders that this process runs, lent for the collections whose vectors they made, and for no others."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import structlog
from numpy.typing import NDArray

from engram.context.errors import (
    ConfigurationError,
    EmbeddingError,
    EmbeddingSpaceMismatchError,
    EmbeddingUnavailableError,
    InvalidRequestError,
)
from engram.core.ranking.cosine_scale import compute_unrelated_cosine
from engram.core.text.known_languages import LEAST_NEARNESS, measure_nearness
from engram.providers.embedder import Embedder, choose_question_embed, choose_token_test
from engram.providers.embedder.endpoint_encoder import EndpointEmbedder
from engram.providers.embedder.question_tuning import (
    QuestionTuning,
    choose_question_tuning,
    find_question_tuning,
)
from engram.storage.corpus.collections import Collection, EncoderId

QUESTION_TOKENS = 512
"""Tokens of a question, where nothing else is configured."""
EXPANSION_SHARE = 4
"""All expansions of a question together may have so many times the tokens of a question."""
FINGERPRINT_CHARACTERS = 12
"""Shown of a fingerprint."""

UNRELATED_QUESTIONS = (
    "Who discovered penicillin?", "How long does a passport application take?", "What is the capital of Peru?",
    "Why does bread rise?",
)  # fmt: skip
UNRELATED_PASSAGES = (
    "The bridge was closed for repairs after the flood of 1954.",
    "Penguins lay one or two eggs and take turns to keep them warm.",
    "To reset the password, open the settings and choose Security.",
    "Interest rates rose in the second quarter.",
)
"""Passages that have nothing to do with any of the questions."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class EncoderProbe:
    """Outcome of embedding one text.

    Attributes:
        url: of its server; None: it is one of this machine.
        seconds: that it took; None: it failed.
        encoder: which one it is; None: its server was never reached.
        problem: why it failed, in one sentence; empty if it did not.
    """

    model: str
    url: str | None
    seconds: float | None
    encoder: EncoderId | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EmbeddedTexts:
    """Vectors of a question and what comes with it, which a plan for another collection of the encoder takes over.

    Attributes:
        key: the encoder, the questions and the texts beside them.
        vectors: of questions and of the texts beside them, (n, d) and (m, d).
    """

    key: tuple[object, ...]
    vectors: tuple[NDArray[np.float32], NDArray[np.float32]]


class Encoder:
    """Embeds text that is to stand beside a collection's vectors.

    Services have no other way to the encoders, so none compares vectors that mean nothing beside each other. What
    embeds nothing asks nobody: a collection of another encoder can be read, unlearned and deleted all the same.

    An encoder behind a server is known once the server was reached. Methods that may reach it say so: they are not
    for use inside a transaction.
    """

    def __init__(
        self,
        embedder: Embedder,
        *others: Embedder,
        serving_only: Sequence[Embedder] = (),
        question_tokens: int = QUESTION_TOKENS,
    ) -> None:
        """``embedder`` makes the vectors of new collections; those of ``others`` are served by these.

        Args:
            serving_only: encoders that serve their collections, and that no collection is moved to.
            question_tokens: most tokens of a question.
        """
        self._embedder = embedder
        self._question_tokens = question_tokens
        self._unrelated: dict[str, float] = {}
        self._selectable = (embedder, *others)
        self._embedders = (*self._selectable, *serving_only)
        self._known_languages: dict[tuple[str, str], bool] = {}

    @property
    def model(self) -> str:
        """Name of the one that new collections are of."""
        return self._embedder.model

    @property
    def id(self) -> EncoderId:
        """Identity of the encoder that new collections get.

        Raises:
            EmbeddingUnavailableError: its server was never reached.
        """
        return _id(self._embedder)

    @property
    def question_tokens(self) -> int:
        """Most tokens of a question."""
        return self._question_tokens

    @property
    def fingerprints(self) -> list[str]:
        """Fingerprints of all encoders whose servers were reached."""
        return list(self._list_known())

    def identify(self) -> None:
        """Ask servers that were not reached yet which encoder they are; one that is away stays unknown."""
        for one in self._embedders:
            if isinstance(one, EndpointEmbedder) and not one.is_identified:
                try:
                    one.identify()
                except (EmbeddingUnavailableError, EmbeddingError) as error:
                    log.warning(
                        "embedding server not recognised", model=one.model, url=one.url, reason=error.detail
                    )

    def probe(self) -> list[EncoderProbe]:
        """Have each encoder embed one text; the default one first. It may reach servers."""
        return [_probe_encoder(one) for one in self._selectable]

    def choose(self, model: str | None) -> EncoderId:
        """The encoder called ``model``, for a new collection; None: the one that new collections are of.

        It may reach its server.

        Raises:
            InvalidRequestError: this process runs no encoder of this name.
            EmbeddingUnavailableError, EmbeddingError: its server is away, or answers with something unusable.
        """
        chosen = next((one for one in self._embedders if model in {None, one.model}), None)
        if chosen is None:
            models = " and ".join(one.model for one in self._selectable)
            raise InvalidRequestError(f"There is no encoder {model!r}: this process runs {models}.")
        if isinstance(chosen, EndpointEmbedder):
            chosen.identify()
        return _id(chosen)

    def check(self, collection: Collection) -> None:
        """See that the collection's vectors are of an encoder of this process, before anything is done that embeds.

        It may reach servers.

        Raises:
            EmbeddingSpaceMismatchError: they are of another one.
            EmbeddingUnavailableError: a server that may run it is away.
        """
        self._find_encoder(collection.encoder, _describe_held_vectors(collection))

    def check_known(self, collection: Collection) -> None:
        """Like ``check``, but reach no server, so that a transaction may be open."""
        self._find(collection.encoder, _describe_held_vectors(collection))

    def check_question(self, question: str, expansions: Sequence[str] = ()) -> None:
        """Refuse a question, or expansions of one, that would take the encoder for too long.

        Raises:
            InvalidRequestError: it has more tokens than ``ENGRAM_QUESTION_TOKENS``, or they have together more than
                four times as many.
        """
        self._check_tokens("The question", [question], self._question_tokens, "ENGRAM_QUESTION_TOKENS")
        self._check_tokens(
            "The question's expansions",
            expansions,
            EXPANSION_SHARE * self._question_tokens,
            f"{EXPANSION_SHARE} times ENGRAM_QUESTION_TOKENS",
        )

    def _check_tokens(self, name: str, texts: Sequence[str], most: int, bound: str) -> None:
        if sum(map(len, texts)) <= most:  # a token has at least one character
            return
        tokens = sum(self._embedder.count_tokens(texts))
        if tokens > most:
            verb = "has" if len(texts) == 1 else "have together"
            raise InvalidRequestError(
                f"{name} {verb} {tokens} tokens or more; the limit is {most} ({bound}).", limit=most, tokens=tokens
            )

    def count_excess(self, question: str) -> int:
        """Tokens of a question, or more, beyond the most that it may have; 0 if it may have them all."""
        if len(question) <= self._question_tokens:  # a token has at least one character
            return 0
        return max(sum(self._embedder.count_tokens([question])) - self._question_tokens, 0)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text that the encoder of new collections would read."""
        return self._embedder.count_tokens(texts)

    @property
    def is_one_token(self) -> Callable[[str], bool]:
        """Tells whether the encoder of new collections reads a word as one token."""
        return choose_token_test(self._embedder)

    def embed(self, collection: Collection, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors of passages, sentences and names, shape (n, d), comparable with the collection's.

        It may reach a server.

        Raises:
            EmbeddingSpaceMismatchError: the collection's are of another encoder.
            EmbeddingUnavailableError, EmbeddingError: the server does not make them.
        """
        return self._find_encoder(collection.encoder, _describe_held_vectors(collection)).embed(texts)

    def find_unknown_languages(self, collection: Collection, languages: Iterable[str]) -> list[str]:
        """Select the languages, ISO 639 codes, that the collection's encoder does not know.

        Each is measured once (``known_languages``). Languages that nothing can be said of count as known.

        Raises:
            EmbeddingSpaceMismatchError, EmbeddingUnavailableError, EmbeddingError: as for ``embed``.
        """
        fingerprint = collection.encoder.fingerprint
        unknown = []
        for language in languages:
            if (fingerprint, language) not in self._known_languages:
                nearness = measure_nearness(lambda texts: self.embed(collection, texts), language)
                self._known_languages[fingerprint, language] = nearness is None or nearness >= LEAST_NEARNESS
            if not self._known_languages[fingerprint, language]:
                unknown.append(language)
        return unknown

    def embed_questions(self, collection: Collection, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors of questions; ``embed`` otherwise. Some encoders embed them another way."""
        embedder = self._find_encoder(collection.encoder, _describe_held_vectors(collection))
        return choose_question_embed(embedder)(texts)

    def embed_both(
        self, collection: Collection, questions: Sequence[str], passages: Sequence[str]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Vectors of questions, (n, d), and of passages, (m, d), in one call where they are made alike."""
        embedder = self._find_encoder(collection.encoder, _describe_held_vectors(collection))
        as_questions = choose_question_embed(embedder)
        if as_questions == embedder.embed:
            vectors = embedder.embed([*questions, *passages])
            return vectors[: len(questions)], vectors[len(questions) :]
        return as_questions(questions), embedder.embed(passages)

    def measure_unrelated_cosine(self, collection: Collection) -> float:
        """Cosine that this encoder gives texts that have nothing to do with each other, in [0, 1).

        It is measured once, and may then reach a server. See ``cosine_scale``.
        """
        embedder = self._find_encoder(collection.encoder, _describe_held_vectors(collection))
        if embedder.fingerprint not in self._unrelated:
            questions = choose_question_embed(embedder)(UNRELATED_QUESTIONS)
            passages = embedder.embed(UNRELATED_PASSAGES)
            self._unrelated[embedder.fingerprint] = compute_unrelated_cosine(questions, passages)
        return self._unrelated[embedder.fingerprint]

    def find_question_tuning(self, collection: Collection) -> QuestionTuning | None:
        """Return the part of the collection's encoder that verdicts can tune; None if it cannot be tuned.

        It may reach a server.

        Raises:
            EmbeddingSpaceMismatchError, EmbeddingUnavailableError: as for ``embed``.
        """
        return find_question_tuning(self._find_encoder(collection.encoder, _describe_held_vectors(collection)))

    def choose_question_tuning(self, collection: Collection) -> QuestionTuning:
        """Like ``find_question_tuning``, but the encoder can be tuned.

        Raises:
            EncoderNotTunableError: it cannot.
            EmbeddingSpaceMismatchError, EmbeddingUnavailableError: as for ``embed``.
        """
        return choose_question_tuning(self._find_encoder(collection.encoder, _describe_held_vectors(collection)))

    def embed_anew(self, encoder: EncoderId, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors of passages, shape (n, d), by an encoder that a collection shall be of.

        It may reach a server.

        Raises:
            EmbeddingSpaceMismatchError: this process does not run it.
            EmbeddingUnavailableError, EmbeddingError: its server does not make them.
        """
        return self._find_encoder(encoder, _describe_new_vectors(encoder)).embed(texts)

    def embed_questions_anew(self, encoder: EncoderId, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of questions; ``embed_anew`` otherwise."""
        return choose_question_embed(self._find_encoder(encoder, _describe_new_vectors(encoder)))(texts)

    def find_other_encoder(self, collection: Collection, model: str | None = None) -> EncoderId:
        """The encoder called ``model``; None: that of this process that the collection is not of.

        It may reach servers.

        Raises:
            InvalidRequestError: this process runs no such one, or several.
        """
        self.identify()
        selectable = [one for one in self._list_known().values() if one in self._selectable]
        named = [one for one in selectable if model in {None, one.model}]
        candidates = [one for one in named if model or one.fingerprint != collection.encoder_fingerprint]
        if len(candidates) == 1:
            return _id(candidates[0])
        raise InvalidRequestError(
            f"This process runs {self._describe_running()}; name one of them to make the vectors of "
            f"{collection.name!r} by, "
            "or have it run another beside (ENGRAM_SECONDARY_EMBEDDING_MODEL, ENGRAM_EMBEDDING_MODELS)."
        )

    def _list_known(self) -> dict[str, Embedder]:
        return {one.fingerprint: one for one in reversed(self._embedders) if _is_known(one)}

    def _find_encoder(self, encoder: EncoderId, purpose: str) -> Embedder:
        if encoder.fingerprint not in self._list_known():
            self.identify()
        return self._find(encoder, purpose)

    def _find(self, encoder: EncoderId, purpose: str) -> Embedder:
        embedder = self._list_known().get(encoder.fingerprint)
        if embedder is not None:
            return embedder
        away = [one for one in self._embedders if not _is_known(one)]
        if away:
            raise EmbeddingUnavailableError(
                f"{purpose}, and the server of {' and '.join(one.model for one in away)} is out of reach."
            )
        raise EmbeddingSpaceMismatchError(
            f"{purpose}, but this process runs {self._describe_running()}. {self._remedy(encoder)}"
        )

    def _remedy(self, encoder: EncoderId) -> str:
        if any(isinstance(one, EndpointEmbedder) and one.model == encoder.model for one in self._embedders):
            return (
                "The server gives other vectors under this name than before: its model was changed. Serve the "
                "former one, or move the collection to the new one (`engram collection reembed`)."
            )
        return (
            "Run the first for it (ENGRAM_EMBEDDING_MODEL, ENGRAM_SECONDARY_EMBEDDING_MODEL, "
            "ENGRAM_EMBEDDING_MODELS), or ingest its passages into a new collection."
        )

    def _describe_running(self) -> str:
        running = [one for one in reversed(self._list_known().values()) if one in self._selectable]
        return " and ".join(_format_encoder(_id(one)) for one in running)


def _probe_encoder(embedder: Embedder) -> EncoderProbe:
    url = embedder.url if isinstance(embedder, EndpointEmbedder) else None
    began = time.perf_counter()
    try:
        if isinstance(embedder, EndpointEmbedder):
            seconds = embedder.probe()
        else:
            embedder.embed(["probe"])
            seconds = time.perf_counter() - began
    except (EmbeddingUnavailableError, EmbeddingError, EmbeddingSpaceMismatchError, ConfigurationError) as error:
        encoder_id = _id(embedder) if _is_known(embedder) else None
        return EncoderProbe(embedder.model, url, None, encoder_id, error.detail)
    return EncoderProbe(embedder.model, url, seconds, _id(embedder))


def _is_known(embedder: Embedder) -> bool:
    return not isinstance(embedder, EndpointEmbedder) or embedder.is_identified


def _id(embedder: Embedder) -> EncoderId:
    return EncoderId(embedder.model, embedder.fingerprint, embedder.dimension)


def _describe_held_vectors(collection: Collection) -> str:
    return f"Collection {collection.name!r} holds vectors of {_format_encoder(collection.encoder)}"


def _describe_new_vectors(encoder: EncoderId) -> str:
    return f"Vectors of {_format_encoder(encoder)} are wanted"


def _format_encoder(encoder: EncoderId) -> str:
    return f"{encoder.model} ({encoder.fingerprint[:FINGERPRINT_CHARACTERS]})"
