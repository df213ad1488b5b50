"""Learning of an adapter of a collection's question encoder from verdicts.

Passages' vectors stay as they are; questions learn to come near the passages that verdicts support. The loss of a
question with vector q, base vector q₀, supported passages S and all passages P of the collection is

    -1/|S| Σ_{s in S} log softmax_P(q·p / τ)_s + pull (1 - q·q₀),

times the weight of its verdict. τ is measured in the collection (``measure_temperature``). Adam (Kingma and Ba,
2015) with a rate that falls linearly to 0.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from engram.wings.tuning.core.bert_gradients import (
    AdaptedPass,
    BertWeights,
    Ids,
    Matrix,
    Texts,
    embed_tokens,
    list_adapted_maps,
    run_frozen_layers,
)

TEMPERATURE_SHARE = 0.4
"""τ as a share of the deviation of cosines between questions and random passages."""
_ADAM_MEANS = (0.9, 0.999)
_ADAM_EPSILON = 1e-8
_CHUNK = 64
"""Questions that are encoded at once without gradients."""
_MAGIC = b"EADP\x01"


@dataclass(frozen=True)
class TuningOptions:
    """Options of learning an adapter.

    Attributes:
        rank: of the adapter's low-rank maps.
        adapted_layers: the last so many layers get adapters; all, if the encoder has fewer.
        epochs: passes over the samples.
        batch_size: questions in a step.
        rate: Adam's first rate.
        pull: weight of 1 - cos(tuned, base).
        rejected_count: a rejected passage counts as so many other passages in the softmax.
        most_tokens: tokens of a question that are read.
    """

    rank: int = 4
    adapted_layers: int = 3
    epochs: int = 3
    batch_size: int = 16
    rate: float = 1e-3
    pull: float = 1.0
    rejected_count: float = 4.0
    most_tokens: int = 64


DEFAULT_OPTIONS = TuningOptions()


@dataclass(frozen=True)
class TuningSamples:
    """Judged questions and the collection's passages.

    Attributes:
        keys: a stable key of each question, such as its id: samples are sorted by it, so their order is no matter.
        questions: token ids of each question, with the encoder's special tokens and its prefix of questions.
        supported: of each question, rows of ``passages`` that its verdict supports, at least one.
        rejected: of each question, rows of ``passages`` that its verdict rejects.
        weights: (n,), weight of each verdict, above 0.
        passages: (P, d), float32, unit-length vectors of all passages, or of a sample with all supported ones. Its
            order must be stable: by id.
        judges: of each question, who judged it; None: not known.

    ``learn_prepared`` takes the weights as they are; ``acceptance.try_tuning`` caps those of each judge first.
    """

    keys: Sequence[str]
    questions: Sequence[Ids]
    supported: Sequence[Sequence[int]]
    rejected: Sequence[Sequence[int]]
    weights: NDArray[np.float64]
    passages: Matrix
    judges: Sequence[str] | None = None

    def __post_init__(self) -> None:
        counts = {len(self.keys), len(self.questions), len(self.supported), len(self.rejected), len(self.weights)}
        if len(counts) > 1 or (self.judges is not None and len(self.judges) != len(self.keys)):
            raise ValueError("every question needs a key, supported and rejected passages, and a weight")
        if not all(self.supported):
            raise ValueError("every question needs a supported passage")

    def sort(self) -> "TuningSamples":
        """The samples in the order of their keys."""
        return self.select(sorted(range(len(self.keys)), key=lambda row: self.keys[row]))

    def select(self, rows: Sequence[int]) -> "TuningSamples":
        """The samples of these rows."""
        return TuningSamples(
            [self.keys[row] for row in rows],
            [self.questions[row] for row in rows],
            [sorted(set(self.supported[row])) for row in rows],
            [sorted(set(self.rejected[row]) - set(self.supported[row])) for row in rows],
            self.weights[list(rows)],
            self.passages,
            None if self.judges is None else [self.judges[row] for row in rows],
        )


@dataclass(frozen=True)
class Adapter:
    """Low-rank maps of an encoder's last layers.

    Attributes:
        fingerprint: of the encoder that they belong to (SHA-256, hex).
        rank: of the maps.
        arrays: ``MAP.down``, (inputs, rank), and ``MAP.up``, (rank, outputs), in float16, by the published name of
            the linear map, such as ``encoder.layer.5.output.dense.down``.
    """

    fingerprint: str
    rank: int
    arrays: Mapping[str, NDArray[np.float16]]

    def widen(self) -> dict[str, Matrix]:
        """The arrays in float32."""
        return {name: array.astype(np.float32) for name, array in self.arrays.items()}

    def to_bytes(self) -> bytes:
        """The adapter as bytes, equal for equal adapters: a mark, the header's length, the header, the arrays."""
        names = sorted(self.arrays)
        shapes = [[name, *self.arrays[name].shape] for name in names]
        header = json.dumps({"fingerprint": self.fingerprint, "rank": self.rank, "arrays": shapes}).encode()
        content = (np.ascontiguousarray(self.arrays[name], dtype="<f2").tobytes() for name in names)
        return b"".join((_MAGIC, len(header).to_bytes(4, "little"), header, *content))

    @classmethod
    def from_bytes(cls, content: bytes) -> "Adapter":
        """Read what ``to_bytes`` wrote.

        Raises:
            ValueError: the bytes are none of an adapter.
        """
        start = len(_MAGIC) + 4
        if content[: len(_MAGIC)] != _MAGIC or len(content) < start:
            raise ValueError("these bytes are not an adapter")
        end = start + int.from_bytes(content[len(_MAGIC) : start], "little")
        header = json.loads(content[start:end])
        arrays: dict[str, NDArray[np.float16]] = {}
        for name, rows, columns in header["arrays"]:
            size = rows * columns * 2
            if end + size > len(content):
                raise ValueError(f"the adapter's bytes end within {name}")
            values = np.frombuffer(content, "<f2", rows * columns, end)
            arrays[name] = values.reshape(rows, columns).astype(np.float16)
            end += size
        return cls(header["fingerprint"], header["rank"], arrays)


@dataclass(frozen=True)
class PreparedQuestions:
    """Questions at the entry of the first adapted layer, which no adapter changes.

    Attributes:
        texts: their hidden states.
        base: (n, d), their vectors without an adapter.
    """

    texts: Texts
    base: Matrix
    adapted_layers: int = field(default=0)

    def embed(self, weights: BertWeights, rows: Ids, adapter: Mapping[str, Matrix]) -> Matrix:
        """Vectors (r, d) of the questions of some rows with an adapter."""
        parts = [
            AdaptedPass(
                weights, self.texts.select(rows[start : start + _CHUNK]), adapter, self.adapted_layers
            ).vectors
            for start in range(0, len(rows), _CHUNK)
        ]
        return np.concatenate(parts)


def prepare_questions(weights: BertWeights, questions: Sequence[Ids], options: TuningOptions) -> PreparedQuestions:
    """Run the layers that no adapter changes over questions, given by their token ids."""
    layers = min(options.adapted_layers, weights.layers)
    states, lengths, base = [], [], []
    for start in range(0, len(questions), _CHUNK):
        ids = [question[: options.most_tokens] for question in questions[start : start + _CHUNK]]
        texts = run_frozen_layers(weights, embed_tokens(weights, ids), layers)
        states.append(texts.states)
        lengths.append(texts.lengths)
        base.append(AdaptedPass(weights, texts, {}, layers).vectors)
    return PreparedQuestions(Texts(np.concatenate(states), np.concatenate(lengths)), np.concatenate(base), layers)


def measure_temperature(questions: Matrix, passages: Matrix) -> float:
    """τ of a collection: a share of the deviation of its cosines between a question (n, d) and a passage (P, d).

    Encoders differ in how far cosines spread, by a factor of three and more, and the softmax shall be as sharp for
    each of them.
    """
    steps = slice(None, None, max(1, len(passages) // 2048))
    cosines = questions @ passages[steps].T
    return max(TEMPERATURE_SHARE * float((cosines - cosines.mean(axis=1, keepdims=True)).std()), 1e-3)


def learn_prepared(
    weights: BertWeights,
    samples: TuningSamples,
    prepared: PreparedQuestions,
    options: TuningOptions,
    seed: int,
    check: Callable[[], None] = lambda: None,
    rows: Sequence[int] | None = None,
) -> Adapter:
    """Learn an adapter from the samples of some rows, by default all: a pure function, bit for bit on one machine.

    Args:
        samples: sorted.
        prepared: questions of the samples.
        check: called before each step. It may raise to stop, or wait.
    """
    chosen = np.arange(len(samples.keys)) if rows is None else np.array(rows, dtype=np.int64)
    adapter = _start_adapter(weights, prepared.adapted_layers, options.rank, seed)
    state = {name: (np.zeros_like(array), np.zeros_like(array)) for name, array in adapter.items()}
    temperature = measure_temperature(prepared.base, samples.passages)
    scale = samples.weights / samples.weights[chosen].mean()
    order = np.random.Generator(np.random.PCG64(seed))
    steps = options.epochs * -(-len(chosen) // options.batch_size)
    step = 0
    for _ in range(options.epochs):
        shuffled = chosen[order.permutation(len(chosen))]
        for start in range(0, len(shuffled), options.batch_size):
            check()
            batch = shuffled[start : start + options.batch_size]
            work = AdaptedPass(weights, prepared.texts.select(batch), adapter, prepared.adapted_layers)
            slope = compute_loss_slope(
                work.vectors, prepared.base[batch], samples, batch, scale[batch], temperature, options
            )
            rate = options.rate * (1 - step / steps)
            step += 1
            adapter = _step_adam(adapter, work.compute_gradients(slope), state, rate, step)
    return Adapter(
        weights.fingerprint, options.rank, {name: array.astype(np.float16) for name, array in adapter.items()}
    )


def compute_loss_slope(
    vectors: Matrix,
    base: Matrix,
    samples: TuningSamples,
    batch: Ids,
    scale: NDArray[np.float64],
    temperature: float,
    options: TuningOptions,
) -> Matrix:
    """Gradient of a batch's mean loss in its vectors, both (b, d).

    Args:
        base: (b, d), vectors without the adapter.
        batch: (b,), rows of the samples.
        scale: (b,), weights of the verdicts, 1 in the mean.
    """
    logits = vectors @ samples.passages.T / np.float32(temperature)
    for place, row in enumerate(batch):
        logits[place, samples.rejected[row]] += np.float32(np.log(options.rejected_count))
    errors = np.exp(logits - logits.max(axis=1, keepdims=True))
    errors /= errors.sum(axis=1, keepdims=True)
    for place, row in enumerate(batch):
        supported = samples.supported[row]
        errors[place, supported] -= np.float32(1 / len(supported))
    slope = errors @ samples.passages / np.float32(temperature) - np.float32(options.pull) * base
    weighted: Matrix = slope * (scale / len(batch)).astype(np.float32)[:, None]
    return weighted


def _start_adapter(weights: BertWeights, adapted_layers: int, rank: int, seed: int) -> dict[str, Matrix]:
    """Random ``down`` and ``up`` of zeros: together they change nothing."""
    random = np.random.Generator(np.random.PCG64([seed, 1]))
    adapter: dict[str, Matrix] = {}
    for name in list_adapted_maps(weights, adapted_layers):
        outputs, inputs = weights.arrays[f"{name}.weight"].shape
        adapter[f"{name}.down"] = random.standard_normal((inputs, rank), np.float32) / np.float32(np.sqrt(inputs))
        adapter[f"{name}.up"] = np.zeros((rank, outputs), dtype=np.float32)
    return adapter


def _step_adam(
    adapter: Mapping[str, Matrix],
    gradients: Mapping[str, Matrix],
    state: dict[str, tuple[Matrix, Matrix]],
    rate: float,
    step: int,
) -> dict[str, Matrix]:
    """The adapter after a step of Adam; its two running means of each array, in ``state``, are replaced."""
    first, second = _ADAM_MEANS
    moved: dict[str, Matrix] = {}
    for name, array in adapter.items():
        gradient = gradients[name]
        mean = np.float32(first) * state[name][0] + np.float32(1 - first) * gradient
        square = np.float32(second) * state[name][1] + np.float32(1 - second) * gradient * gradient
        state[name] = (mean, square)
        size = np.sqrt(square / np.float32(1 - second**step)) + np.float32(_ADAM_EPSILON)
        moved[name] = array - np.float32(rate / (1 - first**step)) * mean / size
    return moved
