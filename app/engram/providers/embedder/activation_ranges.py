"""Ranges of an encoder's activations, which smoothing needs: measured beforehand for the packaged encoders."""

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

FILE = "activation_ranges.json"


@dataclass(frozen=True)
class ActivationRanges:
    """Largest absolute value of each channel over some texts.

    Attributes:
        attention: of what each layer's attention reads, (layers, d).
        feed_forward: of what each layer's feed-forward network reads, (layers, d).
    """

    attention: NDArray[np.float32]
    feed_forward: NDArray[np.float32]

    @property
    def digest(self) -> str:
        """SHA-256 of the numbers (hex)."""
        return hashlib.sha256(self.attention.tobytes() + self.feed_forward.tobytes()).hexdigest()


@cache
def find_ranges(fingerprint: str) -> ActivationRanges | None:
    """Find the ranges of the encoder whose weights have this SHA-256 (hex), or None if nobody measured them.

    `benchmarks/activation_ranges.py` measures them.
    """
    ranges = json.loads(files("engram").joinpath(FILE).read_text(encoding="utf-8")).get(fingerprint)
    if ranges is None:
        return None
    attention, feed_forward = (np.array(ranges[part], dtype=np.float32) for part in ("attention", "feed_forward"))
    return ActivationRanges(attention, feed_forward)
