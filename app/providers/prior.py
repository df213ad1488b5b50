"""The priors of ranking and of "enough" as files: what every collection believes before its first verdict."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core import sufficiency
from app.core.belief import Believed, Prior
from app.core.ranking import FEATURES, FIRST_LOOK
from app.core.rounds import FEATURES as ROUND_FEATURES
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
        enough: of the weights by which a ranked answer is said to be enough.
        enough_name: its fingerprint, which goes by the ranking's as well: its features are of that.
        rounds, rounds_name: the same of whether a session's pool is enough after a round; None where no weights
            were fitted for that.
    """

    name: str
    first: NDArray[np.float64]
    prior: Prior
    fitted: tuple[str, ...]
    enough: Prior
    enough_name: str
    rounds: Prior | None = None
    rounds_name: str = ""

    @property
    def of_ranking(self) -> Believed:
        """What a collection learns of the ranking."""
        return Believed("ranking", self.name)

    @property
    def of_enough(self) -> Believed:
        """What a collection learns of when an answer is enough."""
        return Believed("enough", self.enough_name)

    @property
    def of_rounds(self) -> Believed:
        """What a collection learns of when a session's pool is enough."""
        return Believed("round", self.rounds_name)

    @property
    def of_answers(self) -> dict[Believed, Prior]:
        """What a single answer goes by."""
        return {self.of_enough: self.enough, self.of_ranking: self.prior}

    @property
    def priors(self) -> dict[Believed, Prior]:
        """All."""
        return self.of_answers | ({} if self.rounds is None else {self.of_rounds: self.rounds})

    def with_rounds(self, rounds: Prior | None) -> "RankingPrior":
        """With a prior for sessions, whose features are of what ``enough`` makes of answers as well."""
        if rounds is None:
            return self
        name = _fingerprint(self.enough_name.encode(), rounds, ROUND_FEATURES)
        return replace(self, rounds=rounds, rounds_name=name)


def no_preference() -> RankingPrior:
    """All weights 0: what there is before any were fitted to these features."""
    return RankingPrior("none", np.zeros(len(FIRST_LOOK)), _flat(len(FEATURES)), (), undecided(), "none")


def undecided() -> Prior:
    """That any answer is as likely enough as not."""
    return _flat(len(sufficiency.FEATURES))


def _flat(size: int) -> Prior:
    return Prior(np.zeros(size), np.eye(size))


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
    first, prior, fitted = _ranking(content)
    name = _fingerprint(first.tobytes(), prior, FEATURES)
    try:
        enough = prior_of(content["enough"], sufficiency.FEATURES)
    except ValueError as error:
        raise ValueError(f"of what is enough, {error}") from error
    return RankingPrior(
        name, first, prior, fitted, enough, _fingerprint(name.encode(), enough, sufficiency.FEATURES)
    )


def load_ranking(path: Path) -> tuple[NDArray[np.float64], Prior, tuple[str, ...]]:
    """Of a file only what ranks: weights of the first look, the prior over all features, names of what they were
    fitted to. Whatever it says of what is enough: that may be of another version's features.

    Raises:
        ConfigurationError: the file cannot be read, or holds no such weights over this version's features.
    """
    try:
        return _ranking(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise ConfigurationError(f"{path} holds no ranking weights: {error}") from error


def _ranking(content: Mapping[str, Any]) -> tuple[NDArray[np.float64], Prior, tuple[str, ...]]:
    prior = prior_of(content, FEATURES)
    first = np.array(content["first_look"], dtype=np.float64)
    if first.shape != (len(FIRST_LOOK),):
        raise ValueError(f"its first look needs {len(FIRST_LOOK)} numbers")
    if not np.isfinite(first).all():
        raise ValueError("its numbers must be finite")
    return first, prior, tuple(map(str, content["fitted"]))


def prior_of(content: Mapping[str, Any], features: Sequence[str]) -> Prior:
    """A prior over these features in plain JSON, as ``numbers_of`` gave it.

    Raises:
        ValueError, KeyError, TypeError: it is none.
    """
    if tuple(content["features"]) != tuple(features):
        raise ValueError(f"its features are not {', '.join(features)}")
    mean = np.array(content["mean"], dtype=np.float64)
    precision = np.array(content["precision"], dtype=np.float64)
    size = len(features)
    if mean.shape != (size,) or precision.shape != (size, size):
        raise ValueError(f"it needs a mean of {size} and a precision of {size} x {size} numbers")
    if not (np.isfinite(mean).all() and np.isfinite(precision).all()):
        raise ValueError("its numbers must be finite")
    if not np.allclose(precision, precision.T) or np.linalg.eigvalsh(precision).min() <= 0:
        raise ValueError("its precision must be symmetric and positive definite")
    return Prior(mean, precision)


def _fingerprint(before: bytes, prior: Prior, features: Sequence[str]) -> str:
    numbers = before + prior.mean.tobytes() + prior.precision.tobytes()
    return hashlib.sha256(numbers + ",".join(features).encode()).hexdigest()[:16]


def as_json(first: NDArray[np.float64], prior: Prior, fitted: tuple[str, ...], enough: Prior) -> dict[str, Any]:
    """Plain JSON, numbers rounded."""
    return {
        "features": list(FEATURES),
        "fitted": list(fitted),
        "first_look": [_rounded(value) for value in first],
        **numbers_of(prior),
        "enough": {"features": list(sufficiency.FEATURES), **numbers_of(enough)},
    }


def numbers_of(prior: Prior) -> dict[str, Any]:
    """Its numbers as plain JSON, rounded."""
    return {
        "mean": [_rounded(value) for value in prior.mean],
        "precision": [[_rounded(value) for value in row] for row in prior.precision],
    }


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
