"""An encoder behind an OpenAI-compatible ``/v1/embeddings`` endpoint."""

import hashlib
import re
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import (
    ConfigurationError,
    EmbeddingError,
    EmbeddingSpaceMismatchError,
    EmbeddingUnavailableError,
    EngramError,
    UnavailableError,
)
from engram.providers.embedder.prefixes import MOST_DIMENSION, NO_PREFIXES, Prefixes, unit_length
from engram.providers.json_endpoint import JsonEndpoint, RefusedError, UnusableResponseError

PIECES = re.compile(r"\w+|[^\w\s]")
WORD_PIECE = 4
"""Characters of a word that count as one token."""

Vectors = NDArray[np.float32]

PROBES = (
    "The Vistula flows through Warsaw and Cracow.",
    "A loaf of rye bread costs three crowns.",
    "Quarterly revenue rose by 12 percent.",
    "def area(radius): return 3.14159 * radius ** 2",
)
"""Passages that an encoder is recognised by."""
PROBE_QUESTIONS = ("Which river flows through Warsaw?", "Who invented the telescope?")
SAME_COSINE = 0.999
"""Least cosine of vectors that one model makes of one text, whatever the batch, the precision or the server."""
PROBE_SECONDS = 300.0
"""A probe goes with the first request after so long, and after each failure."""
REQUEST_CHARACTERS = 200_000
LEAST_SPLIT = 400
"""Shorter texts, in characters, are not split when a server refuses them as too long."""
OVERLAP = 0.1
"""Share of a text that both of its halves have."""
RETRY_SECONDS = 5.0
"""A server that was away is not asked again by ``identify`` for so long."""

SLOW = "If it is slow, give it more processors or a smaller model."

Register = Callable[[str, Vectors], str]
"""Gives the fingerprint of an encoder by its name and its vectors of the probes, (n, d)."""


def probe_digest(model: str, probes: Vectors) -> str:
    """SHA-256 (hex) of a name and of vectors to the bit."""
    return hashlib.sha256(f"{model}\n".encode() + probes.astype("<f4").tobytes()).hexdigest()


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """Address and options of an embedding endpoint.

    Attributes:
        name: what collections record as their encoder.
        url: base URL, to which ``/embeddings`` is added.
        model: the model's name at the endpoint.
        dimension: numbers that are kept of each vector, which takes a model trained for that; None: all.
        timeout_seconds: for one batch with all of its requests and tries.
        batch_size: most texts of one request.
    """

    name: str
    url: str
    model: str
    api_key: str | None = None
    prefixes: Prefixes = NO_PREFIXES
    dimension: int | None = None
    timeout_seconds: float = 30.0
    batch_size: int = 64
    max_attempts: int = 4


class EndpointEmbedder:
    """A server's model; safe to call from several threads at once.

    The server shows no weights. Its vectors of fixed probes tell which model it runs: when it is first reached, and
    again with a later request every five minutes and after each failure.
    """

    def __init__(self, settings: EndpointSettings, register: Register) -> None:
        """Ask nothing yet.

        Raises:
            ConfigurationError: the address or the key cannot be used.
        """
        self._settings = settings
        self._register = register
        self._endpoint = JsonEndpoint(
            "embedding server", settings.url, settings.api_key, setting="ENGRAM_EMBEDDING"
        )
        self._batch_size = settings.batch_size
        self._lock = threading.Lock()
        self._probes: Vectors | None = None
        self._fingerprint = ""
        self._probed_at = 0.0
        self._failed: EngramError | None = None
        self._failed_at = 0.0

    def __repr__(self) -> str:
        return f"EndpointEmbedder({self.model!r}, {self._settings.url!r})"

    @property
    def model(self) -> str:
        """Name recorded with collections."""
        return self._settings.name

    @property
    def url(self) -> str:
        """Base URL of the server."""
        return self._endpoint.base_url

    @property
    def is_identified(self) -> bool:
        """Whether the server was reached, so that fingerprint and dimension are known."""
        return self._probes is not None

    @property
    def fingerprint(self) -> str:
        """Fingerprint (hex) that the registry gives to the server's vectors of the probes.

        Raises:
            EmbeddingUnavailableError: the server was never reached.
        """
        self._require_probes()
        return self._fingerprint

    @property
    def dimension(self) -> int:
        """Length d of every vector.

        Raises:
            EmbeddingUnavailableError: the server was never reached.
        """
        return int(self._require_probes().shape[1])

    def identify(self) -> None:
        """Have the server embed the probes, and look up which encoder it is; nothing if that is known.

        Raises:
            EmbeddingUnavailableError: the server is away. It is asked again only some seconds later.
            EmbeddingError: it answers with something unusable.
            ConfigurationError: its vectors are shorter than ``dimension``, or too long to be stored.
        """
        if self._probes is not None:
            return
        with self._lock:
            if self._probes is not None:
                return
            if self._failed is not None and time.monotonic() < self._failed_at + RETRY_SECONDS:
                raise self._failed
            try:
                probes = self._probe()
            except (EmbeddingUnavailableError, EmbeddingError) as error:
                self._failed, self._failed_at = error, time.monotonic()
                raise
            self._fingerprint = self._register(self.model, probes)
            self._probes, self._probed_at, self._failed = probes, time.monotonic(), None

    def probe(self) -> float:
        """Ask for one vector; seconds that it took.

        Raises:
            EmbeddingUnavailableError, EmbeddingError, EmbeddingSpaceMismatchError: as ``embed``.
        """
        self.identify()
        began = time.perf_counter()
        self._probed_at = 0.0
        self.embed([PROBES[0]])
        return time.perf_counter() - began

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Unit-length vectors of passages, shape (n, d), in the order of ``texts``.

        A text that the server refuses as too long is embedded in overlapping halves. Some servers cut a long text
        instead, and do not say so.

        Raises:
            EmbeddingUnavailableError: the server is away, overloaded or too slow.
            EmbeddingError: it refuses the texts, or answers with something unusable.
            EmbeddingSpaceMismatchError: it runs another model than before.
        """
        return self._embed(self._settings.prefixes.passage, texts)

    def embed_questions(self, texts: Sequence[str]) -> Vectors:
        """Unit-length vectors of questions; the same as ``embed`` otherwise."""
        return self._embed(self._settings.prefixes.question, texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Estimate the tokens of each text by characters, since the server does not say."""
        return [sum(-(-len(piece) // WORD_PIECE) for piece in PIECES.findall(text)) for text in texts]

    def close(self) -> None:
        """Close the connections."""
        self._endpoint.close()

    def _require_probes(self) -> Vectors:
        if self._probes is None:
            raise self._failed or EmbeddingUnavailableError(f"The embedding server {self.url} was not reached yet.")
        return self._probes

    def _probe(self) -> Vectors:
        until = time.monotonic() + self._settings.timeout_seconds
        prefixes = self._settings.prefixes
        texts = [prefixes.passage + text for text in PROBES] + [
            prefixes.question + text for text in PROBE_QUESTIONS
        ]
        try:
            raw = self._request(texts, until)
        except RefusedError as error:
            raise EmbeddingError(f"{error}.") from error
        dimension = self._settings.dimension
        if dimension is not None and dimension > raw.shape[1]:
            raise ConfigurationError(
                f"{self.model} gives {raw.shape[1]}-dimensional vectors, but the dimension is set to {dimension}."
            )
        if (dimension or raw.shape[1]) > MOST_DIMENSION:
            raise ConfigurationError(
                f"{self.model} gives {raw.shape[1]}-dimensional vectors, and {MOST_DIMENSION} is the most: set "
                "ENGRAM_EMBEDDING_DIMENSION if the model allows shorter ones."
            )
        return self._unit(raw)

    def _embed(self, prefix: str, texts: Sequence[str]) -> Vectors:
        self.identify()
        try:
            pieces = [np.zeros((0, self.dimension), dtype=np.float32)]
            start = 0
            while start < len(texts):
                batch = self._batch(texts, start)
                until = time.monotonic() + self._settings.timeout_seconds
                pieces.append(self._embed_batch([prefix + text for text in batch], prefix, until))
                start += len(batch)
        except EngramError:
            self._probed_at = 0.0  # what comes back after a failure may be another model
            raise
        return np.concatenate(pieces)

    def _batch(self, texts: Sequence[str], start: int) -> Sequence[str]:
        end, characters = start + 1, len(texts[start])
        while end < len(texts) and end - start < self._batch_size:
            characters += len(texts[end])
            if characters > REQUEST_CHARACTERS:
                break
            end += 1
        return texts[start:end]

    def _embed_batch(self, texts: Sequence[str], prefix: str, until: float) -> Vectors:
        """Vectors of one batch; in halves where the server takes no batch, or no text, of this length."""
        try:
            return self._embed_checked(texts, until)
        except RefusedError as error:
            if len(texts) > 1:
                half = (len(texts) + 1) // 2
                vectors = np.concatenate(
                    [self._embed_batch(part, prefix, until) for part in (texts[:half], texts[half:])]
                )
                if len(texts) == self._batch_size:
                    self._batch_size = half
                return vectors
            if len(texts[0]) - len(prefix) < LEAST_SPLIT:
                raise EmbeddingError(f"{error}.") from error
            return self._embed_halves(texts[0][len(prefix) :], prefix, until)

    def _embed_halves(self, text: str, prefix: str, until: float) -> Vectors:
        """The mean of the vectors of a text's halves, weighted by their lengths, (1, d)."""
        middle, shared = len(text) // 2, int(len(text) * OVERLAP / 2)
        parts = (text[: middle + shared], text[middle - shared :])
        vectors = np.concatenate([self._embed_batch([prefix + part], prefix, until) for part in parts])
        weights = np.array([len(part) for part in parts], dtype=np.float32)
        return unit_length((vectors * weights[:, None]).sum(axis=0, keepdims=True), None)

    def _embed_checked(self, texts: Sequence[str], until: float) -> Vectors:
        """Vectors of one request, with a probe among its texts where one is due."""
        known = self._require_probes()
        is_due = time.monotonic() > self._probed_at + PROBE_SECONDS
        probe = [self._settings.prefixes.passage + PROBES[0]] if is_due else []
        raw = self._request([*texts, *probe], until)
        if self._settings.dimension is None and raw.shape[1] != known.shape[1]:
            raise self._build_changed_error(f"gives {raw.shape[1]} numbers for a text instead of {known.shape[1]}")
        vectors = self._unit(raw)
        if vectors.shape[1] != known.shape[1]:
            raise self._build_changed_error(
                f"gives {raw.shape[1]} numbers for a text, and {known.shape[1]} are needed"
            )
        if is_due:
            cosine = float(vectors[-1] @ known[0])
            if cosine < SAME_COSINE:
                raise self._build_changed_error(
                    f"makes other vectors of the same text than before (cosine {cosine:.3f})"
                )
            self._probed_at = time.monotonic()
        return vectors[: len(texts)]

    def _build_changed_error(self, difference: str) -> EmbeddingSpaceMismatchError:
        return EmbeddingSpaceMismatchError(
            f"The embedding server {self.url} runs another model under the name {self._settings.model!r}: it "
            f"{difference}. Serve the former model, or restart Engram and move its collections "
            "(`engram collection reembed`)."
        )

    def _unit(self, raw: Vectors) -> Vectors:
        try:
            return unit_length(raw, self._settings.dimension)
        except ValueError as error:
            raise self._build_unusable_error(str(error)) from error

    def _request(self, texts: Sequence[str], until: float) -> Vectors:
        """The server's vectors as they are, (n, d).

        Raises:
            RefusedError: it does not take these texts.
        """
        content = {"model": self._settings.model, "input": [text or " " for text in texts]}
        remaining = max(until - time.monotonic(), 0.0)
        try:
            reply = self._endpoint.post(
                "embeddings", content, seconds=remaining, attempts=self._settings.max_attempts
            )
        except UnusableResponseError as error:
            raise self._build_unusable_error(str(error)) from error
        except UnavailableError as error:
            hint = f" {SLOW}" if len(texts) > 1 and "in time" in error.detail else ""
            raise EmbeddingUnavailableError(error.detail + hint) from error
        try:
            return _vectors(reply, len(texts))
        except ValueError as error:
            raise self._build_unusable_error(str(error)) from error

    def _build_unusable_error(self, reason: str) -> EmbeddingError:
        return EmbeddingError(f"The embedding server {self.url} answered with something unusable: {reason}.")


def _vectors(reply: Any, count: int) -> Vectors:
    """The vectors of a reply in the order of the texts, (count, d).

    Raises:
        ValueError: the reply is of another shape, or some are missing.
    """
    data = reply.get("data") if isinstance(reply, dict) else None
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise ValueError("it has no list `data`")
    if len(data) != count:
        raise ValueError(f"it has {len(data)} vectors for {count} texts")
    places = [item.get("index", place) for place, item in enumerate(data)]
    if any(type(place) is not int for place in places) or sorted(places) != list(range(count)):
        raise ValueError("its `index` numbers are not those of the texts")
    rows: list[Any] = [None] * count
    for place, item in zip(places, data, strict=True):
        rows[place] = item.get("embedding")
    if not all(isinstance(row, list) and row and len(row) == len(rows[0]) for row in rows):
        raise ValueError("its vectors are not lists of numbers of one length")
    numbers = np.array(rows)
    if numbers.dtype.kind not in "fi" or numbers.ndim != 2:
        raise ValueError("a vector has something other than numbers")
    with np.errstate(over="ignore"):  # what float32 cannot hold is not finite, which is refused later
        return numbers.astype(np.float32)
