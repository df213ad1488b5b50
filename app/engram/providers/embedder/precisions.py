"""Precisions in which an encoder's dense layers compute, and which one suits this processor."""

import platform
import sys
from pathlib import Path
from typing import Literal

Precision = Literal["float32", "int8", "dynamic-int8"]
"""float32: single precision.

int8: weights in eight bits. Vectors are comparable with those of float32.

dynamic-int8: weights and activations in eight bits. Vectors are a space of their own.
"""
PrecisionChoice = Literal["auto", "float32", "int8", "dynamic-int8"]
"""auto: dynamic-int8 where the processor is quick at it and the model's ranges are known, float32 elsewhere."""

PROCESSOR_FEATURES = Path("/proc/cpuinfo")
_DOT_PRODUCTS = frozenset({"avx512_vnni", "avx_vnni", "asimddp"})


def has_dot_products(features: Path = PROCESSOR_FEATURES) -> bool:
    """Whether the processor has instructions for dot products of eight-bit numbers.

    Those are VNNI on x86-64 and `dotprod` on ARM. False where the system does not say.

    Args:
        features: Linux' description of the processor.
    """
    if sys.platform == "darwin":
        return platform.machine() == "arm64"
    try:
        text = features.read_text(encoding="utf-8")
    except OSError:
        return False
    lines = (line.partition(":") for line in text.splitlines())
    return any(
        name.strip() in {"flags", "Features"} and not _DOT_PRODUCTS.isdisjoint(value.split())
        for name, _, value in lines
    )
