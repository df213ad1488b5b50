"""The prior of the ranking weights as a file: what every collection believes before its first verdict."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.belief import Prior
from app.core.ranking import FEATURES, FIRST_LOOK
from app.errors import ConfigurationError

SHIPPED = Path(__file__).parents[1] / "ranking_prior.json"
DIGITS = 6  # significant, so that a file can be read and a fit on another machine gives the same one


@dataclass(frozen=True, slots=True)
class RankingPrior:
    """A prior and where it comes from.

    Attributes:
        name: a fingerprint; what a collection learned from one prior says nothing about another.
        first: weights of the first look alone, (len(FIRST_LOOK),), by which a pool is chosen; verdicts do not move
            them, so that what one verdict says of the ranking does not hang on the others.
        fitted: names of the data sets it was fitted to.
    """

    name: str
    first: NDArray[np.float64]
    prior: Prior
    fitted: tuple[str, ...]


def no_preference() -> RankingPrior:
    """All weights 0: what there is before any were fitted to these features."""
    size = len(FEATURES)
    return RankingPrior("none", np.zeros(len(FIRST_LOOK)), Prior(np.zeros(size), np.eye(size)), ())


def load_prior(path: Path | None = None) -> RankingPrior:
    """The prior in a file, the shipped one by default.

    Raises:
        ConfigurationError: the file cannot be read, or is no prior over this version's features.
    """
    path = path or SHIPPED
    try:
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise ConfigurationError(f"{path} holds no ranking prior: {error}") from error


def from_json(content: Mapping[str, Any]) -> RankingPrior:
    """The prior in plain JSON.

    Raises:
        ValueError, KeyError, TypeError: it is none, or one over other features.
    """
    if tuple(content["features"]) != FEATURES:
        raise ValueError(f"its features are not {', '.join(FEATURES)}")
    mean = np.array(content["mean"], dtype=np.float64)
    precision = np.array(content["precision"], dtype=np.float64)
    first = np.array(content["first_look"], dtype=np.float64)
    size = len(FEATURES)
    if mean.shape != (size,) or precision.shape != (size, size):
        raise ValueError(f"it needs a mean of {size} and a precision of {size} x {size} numbers")
    if first.shape != (len(FIRST_LOOK),):
        raise ValueError(f"its first look needs {len(FIRST_LOOK)} numbers")
    if not (np.isfinite(mean).all() and np.isfinite(first).all() and np.isfinite(precision).all()):
        raise ValueError("its numbers must be finite")
    if not np.allclose(precision, precision.T) or np.linalg.eigvalsh(precision).min() <= 0:
        raise ValueError("its precision must be symmetric and positive definite")
    numbers = first.tobytes() + mean.tobytes() + precision.tobytes()
    name = hashlib.sha256(numbers + ",".join(FEATURES).encode()).hexdigest()[:16]
    return RankingPrior(name, first, Prior(mean, precision), tuple(map(str, content["fitted"])))


def as_json(first: NDArray[np.float64], prior: Prior, fitted: tuple[str, ...]) -> dict[str, Any]:
    """Plain JSON, numbers rounded."""
    return {
        "features": list(FEATURES),
        "fitted": list(fitted),
        "first_look": [_rounded(value) for value in first],
        "mean": [_rounded(value) for value in prior.mean],
        "precision": [[_rounded(value) for value in row] for row in prior.precision],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
