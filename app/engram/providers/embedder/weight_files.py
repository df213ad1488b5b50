"""Files that hold an encoder's weights under the names that BERT's are published with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load_file

from engram.context.errors import ConfigurationError

WeightArray = NDArray[Any]
"""Weights in single precision, or in whole numbers of four or eight bits."""

PACKED_ZERO = 8
"""Number of four bits that stands for a weight of 0."""


class PackedNames:
    """Names of the two parts that weights in four bits come in.

    Attributes:
        numbers: name of (n, blocks, block / 2), bytes. Their lower halves are the first numbers of a block.
        scales: name of (n, blocks). A weight is (number - ``PACKED_ZERO``) * scale.
    """

    def __init__(self, weight: str) -> None:
        """Derive the names from that of the weights."""
        self.numbers = f"{weight}.numbers"
        self.scales = f"{weight}.scales"


class WeightFile(Protocol):
    """One file with all weights of an encoder."""

    @property
    def path(self) -> Path:
        """Path of the file."""

    def list_names(self) -> frozenset[str]:
        """Names of the weights; ``ConfigurationError`` if the file cannot be read."""

    def read(self) -> Mapping[str, WeightArray]:
        """All weights by name; ``ConfigurationError`` if the file cannot be read."""

    def read_rows(self, name: str, rows: Sequence[int]) -> Mapping[str, WeightArray]:
        """All weights in single precision, but only these rows, ascending, of the table ``name``.

        Raises:
            ConfigurationError: the file cannot be read.
        """


@dataclass(frozen=True)
class SafetensorsFile:
    """Weights in the format of Hugging Face."""

    path: Path

    def list_names(self) -> frozenset[str]:
        """Names of the weights; ``ConfigurationError`` if the file cannot be read."""
        try:
            with safe_open(self.path, framework="np") as weights:
                return frozenset(weights.keys())
        except (SafetensorError, OSError) as error:
            raise ConfigurationError(f"{self.path} cannot be read: {error}") from error

    def read(self) -> Mapping[str, WeightArray]:
        """All weights in single precision."""
        return {name: array.astype(np.float32, copy=False) for name, array in load_file(self.path).items()}

    def read_rows(self, name: str, rows: Sequence[int]) -> Mapping[str, WeightArray]:
        """All weights in single precision, but only these rows, ascending, of the table ``name``."""
        try:
            with safe_open(self.path, framework="np") as file:
                weights = {other: file.get_tensor(other) for other in self.list_names() - {name}}
                table = file.get_slice(name)
                weights[name] = np.concatenate([table[row : row + 1] for row in rows])
        except (SafetensorError, OSError) as error:
            raise ConfigurationError(f"{self.path} cannot be read: {error}") from error
        return {other: array.astype(np.float32, copy=False) for other, array in weights.items()}
