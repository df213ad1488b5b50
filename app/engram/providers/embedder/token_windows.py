"""Texts of any length through an encoder that reads a fixed window of tokens.

A text past the window is cut into windows that overlap by a quarter, and its vector is their mean weighted by
token count, at unit length. One vector per text keeps storage and search as they are; truncation, the usual
alternative, makes everything after the window unfindable. `benchmarks/long_passages.py` compares the choices.
Of a text with more than ``MAX_WINDOWS`` windows so many are read, evenly spaced: one text takes bounded time.
"""

import threading
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from engram.context import deadline
from engram.providers.embedder.batch_gathering import BatchGatherer
from engram.providers.embedder.model_folder import ModelFolder
from engram.providers.embedder.question_tuning import QuestionTuning

Encoder = Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.float32]]
"""Token ids and attention mask, both (b, t), to vectors (b, d)."""

OVERLAP = 0.25
"""Share of a window that the next one repeats, so that no sentence is only ever seen cut in two."""

MAX_BATCH_TOKENS = 512
"""Padded tokens per pass. What passes between the layers then stays in the processor's caches: with 2,048 a
passage costs 1.15 times as much and a sentence 1.3 times."""

MAX_WINDOWS = 64
"""Windows of one text that are read: about 12,000 tokens, 50,000 characters of English. The mean over more of them
hardly differs from the mean over an even sample."""

TOKENIZE_TEXTS = 256
"""Texts tokenized at once: the tokenizer's own records cost far more memory than the token ids kept."""


def window_spans(length: int, size: int, overlap: int) -> list[tuple[int, int]]:
    """Half-open token ranges that cover ``length`` tokens, each at most ``size`` long, in order.

    Consecutive ranges share ``overlap`` tokens, 0 <= overlap < size. A text that fits is one range, also if
    it is empty; every later range holds more than ``overlap`` tokens, so none is a tiny remainder.
    """
    if not 0 <= overlap < size:
        raise ValueError(f"overlap must be in [0, {size}), not {overlap}")
    count = 1 + max(0, -(-(length - size) // (size - overlap)))
    starts = (index * (size - overlap) for index in range(count))
    return [(start, min(start + size, length)) for start in starts]


def sample_spans(spans: list[tuple[int, int]], most: int) -> list[tuple[int, int]]:
    """At most ``most`` >= 2 of the ranges, evenly spaced, the first and the last among them."""
    if len(spans) <= most:
        return spans
    return [spans[round(index * (len(spans) - 1) / (most - 1))] for index in range(most)]


def combine_windows(
    vectors: NDArray[np.float32], token_counts: NDArray[np.int64], owners: NDArray[np.int64], texts: int
) -> NDArray[np.float32]:
    """Unit-length vector per text, shape (texts, d): the mean of its windows, weighted by token count.

    ``vectors`` is (w, d), ``token_counts`` (w,) at least 1, ``owners`` (w,) the text of each window in
    [0, texts).
    """
    sums = np.zeros((texts, vectors.shape[1]), dtype=np.float32)
    # The mean's denominator is a scale, which the normalisation removes.
    np.add.at(sums, owners, vectors * token_counts[:, None].astype(np.float32))
    unit: NDArray[np.float32] = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return unit


def length_batches(lengths: Sequence[int], batch_size: int, max_tokens: int) -> Iterator[list[int]]:
    """Indices grouped by similar length, at most ``batch_size`` rows and ``max_tokens`` padded tokens each.

    A single row longer than ``max_tokens`` is a batch of its own.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda row: -lengths[row]):
        if batch and (len(batch) == batch_size or (len(batch) + 1) * lengths[batch[0]] > max_tokens):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


class WindowedEmbedder:
    """An `Embedder` of any runtime: tokenizes, cuts windows, batches, and combines the windows' vectors."""

    def __init__(
        self, folder: ModelFolder, encode: Encoder, batch_size: int, fingerprint: str | None = None
    ) -> None:
        """Wrap a runtime.

        Args:
            batch_size: most windows that are encoded at once.
            fingerprint: of the vectors; by default that of the weights.
        """
        self.model = folder.model
        self.fingerprint = fingerprint or folder.fingerprint
        self._encode = encode
        self._batch_size = batch_size
        self._pad_token = folder.pad_token
        self._lower_case = folder.lower_case
        self._tokenizer = folder.tokenizer
        self._normalizer = self._tokenizer.normalizer
        self._prefix, self._suffix = _find_special_tokens(self._tokenizer)
        # Sentencepiece writes a mark before each word.
        self._word_mark = self._tokenizer.encode("a", add_special_tokens=False).tokens[0].removesuffix("a")
        self._size = folder.window - len(self._prefix) - len(self._suffix)
        self._tokens_read = 0
        self._lock = threading.Lock()
        self.question_tuning: QuestionTuning | None = None
        """Set by whoever loads a runtime that takes adapters."""
        self._gather = BatchGatherer(self._embed)
        self.dimension = int(self._encode_batch([np.array([self._pad_token])]).shape[1])

    @property
    def tokens_read(self) -> int:
        """For the evaluation: tokens encoded so far, overlaps and special ones included."""
        return self._tokens_read

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Unit-length vectors, shape (n, d), in the order of ``texts``; (0, d) for no texts."""
        return self._gather(texts)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text that ``embed`` would read, without those of overlaps and special ones."""
        most = MAX_WINDOWS * self._size
        return [min(len(tokens), most) for tokens in self._tokenize(texts)]

    def is_one_token(self, word: str) -> bool:
        """Whether a word is one token: looked up, which takes a hundredth of the time of reading it."""
        normal = word.lower() if self._lower_case else word
        if self._normalizer is not None and not (normal.isascii() and normal.islower()):  # those stay as they are
            normal = self._normalizer.normalize_str(normal)
        marked = normal if normal.startswith(self._word_mark) else self._word_mark + normal
        return self._tokenizer.token_to_id(marked) is not None

    def _embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return combine_windows(*self.embed_windows(texts), len(texts))

    def embed_with(self, encode: Encoder, texts: Sequence[str]) -> NDArray[np.float32]:
        """Like ``embed``, but with another encoder of the same tokens and dimension."""
        return combine_windows(*self.embed_windows(texts, encode), len(texts))

    def read_first_tokens(self, texts: Sequence[str], most: int) -> list[NDArray[np.int64]]:
        """Token ids of the first window of each text, with special tokens, cut to ``most``."""
        size = min(self._size, most - len(self._prefix) - len(self._suffix))
        rows = ([*self._prefix, *tokens[:size], *self._suffix] for tokens in self._tokenize(texts))
        return [np.array(row or [self._pad_token], dtype=np.int64) for row in rows]

    def embed_windows(
        self, texts: Sequence[str], encode: Encoder | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64]]:
        """Vector (w, d), token count (w,) and index of its text (w,) of every window, in reading order.

        Args:
            encode: in place of the runtime that was wrapped.
        """
        windows: list[NDArray[np.int32]] = []
        token_counts: list[int] = []
        owners: list[int] = []
        overlap = int(self._size * OVERLAP)
        for owner, tokens in enumerate(self._tokenize(texts)):
            for start, end in sample_spans(window_spans(len(tokens), self._size, overlap), MAX_WINDOWS):
                ids = [*self._prefix, *tokens[start:end], *self._suffix] or [self._pad_token]
                windows.append(np.array(ids, dtype=np.int32))
                token_counts.append(max(1, end - start))
                owners.append(owner)

        with self._lock:
            self._tokens_read += sum(map(len, windows))
        vectors = np.empty((len(windows), self.dimension), dtype=np.float32)
        for batch in length_batches([len(ids) for ids in windows], self._batch_size, MAX_BATCH_TOKENS):
            deadline.check_work()
            vectors[batch] = self._encode_batch([windows[row] for row in batch], encode)
        return vectors, np.array(token_counts, dtype=np.int64), np.array(owners, dtype=np.int64)

    def _tokenize(self, texts: Sequence[str]) -> Iterator[list[int]]:
        for start in range(0, len(texts), TOKENIZE_TEXTS):
            chunk = list(texts[start : start + TOKENIZE_TEXTS])
            if self._lower_case:
                chunk = [text.lower() for text in chunk]
            for encoding in self._tokenizer.encode_batch_fast(chunk, add_special_tokens=False):
                yield encoding.ids

    def _encode_batch(
        self, rows: Sequence[NDArray[np.int32]], encode: Encoder | None = None
    ) -> NDArray[np.float32]:
        width = max(len(row) for row in rows)
        token_ids = np.full((len(rows), width), self._pad_token, dtype=np.int64)
        attention_mask = np.zeros((len(rows), width), dtype=np.int64)
        for index, row in enumerate(rows):
            token_ids[index, : len(row)] = row
            attention_mask[index, : len(row)] = 1
        return (encode or self._encode)(token_ids, attention_mask)


def _find_special_tokens(tokenizer: Tokenizer) -> tuple[list[int], list[int]]:
    """Ids that the tokenizer puts before and after a text, such as [CLS] and [SEP]."""
    encoding = tokenizer.encode("a")
    content = [index for index, special in enumerate(encoding.special_tokens_mask) if not special]
    return encoding.ids[: content[0]], encoding.ids[content[-1] + 1 :]
