"""Priors of ranking and sufficiency, read from files: the weights that every collection starts from.

There is one set of priors for each kind of corpus, see ``core.ranking.corpus_kind``.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import ConfigurationError
from engram.core.ranking import sufficiency
from engram.core.ranking.corpus_kind import CorpusKind
from engram.core.ranking.passage_scores import BASE_FEATURES, PASSAGE_FEATURES
from engram.core.ranking.reranking import trust_prior
from engram.core.ranking.weight_beliefs import PriorIdentity, WeightBelief

SHIPPED_FILE = Path(__file__).parents[1] / "ranking_prior.json"


@dataclass(frozen=True, slots=True)
class RankingPrior:
    """The shipped weights of a kind of corpus, and the priors of what verdicts teach.

    Attributes:
        name: fingerprint of the ranking weights.
        base_weights: of the base features alone, (len(BASE_FEATURES),), by which a pool is chosen.
        prior: prior over all features; its mean, (len(PASSAGE_FEATURES),), is the ranking weights.
        fitted: names of the data sets that the weights were fitted to.
        sufficiency: prior of the weights of sufficiency.
        sufficiency_name: its fingerprint. It depends on ``name`` too, because the features come from the ranking.
        sufficiency_level: the probability, in [0, 1], that nine in ten right answers of other corpora reach.
        sufficiency_expected: what its patterned features are expected to be in other languages than English, see
            ``sufficiency.features``.
        reranker, reranker_name: prior of the trust in a reranker, and its fingerprint; None where there is none.
    """

    name: str
    base_weights: NDArray[np.float64]
    prior: WeightBelief
    fitted: tuple[str, ...]
    sufficiency: WeightBelief
    sufficiency_name: str
    sufficiency_level: float
    sufficiency_expected: NDArray[np.float64]
    reranker: WeightBelief | None = None
    reranker_name: str = ""

    @property
    def of_sufficiency(self) -> PriorIdentity:
        """Identity of the belief about sufficiency."""
        return PriorIdentity("sufficiency", self.sufficiency_name)

    @property
    def of_reranker(self) -> PriorIdentity:
        """Identity of the belief in a reranker."""
        return PriorIdentity("reranker", self.reranker_name)

    @property
    def priors(self) -> dict[PriorIdentity, WeightBelief]:
        """Priors of all models that verdicts teach, by identity."""
        reranker = {} if self.reranker is None else {self.of_reranker: self.reranker}
        return {self.of_sufficiency: self.sufficiency} | reranker

    def with_reranker(self, reranker: str) -> "RankingPrior":
        """Add a prior for the trust in the reranker of this name, whose scores stand beside these weights'."""
        prior = trust_prior()
        name = _fingerprint(f"{self.name}\n{reranker}\n".encode(), prior, ("ranking", "reranker"))
        return replace(self, reranker=prior, reranker_name=name)


@dataclass(frozen=True, slots=True)
class RankingPriors:
    """The priors that collections start from, by the kind of their corpus."""

    encyclopedic: RankingPrior
    general: RankingPrior

    def select_kind(self, kind: CorpusKind) -> RankingPrior:
        """The prior for a kind of corpus."""
        return self.encyclopedic if kind == "encyclopedic" else self.general

    @property
    def name(self) -> str:
        """The fingerprints of both, in 16 characters."""
        return hashlib.sha256(f"{self.encyclopedic.name} {self.general.name}".encode()).hexdigest()[:16]

    @property
    def fitted(self) -> tuple[str, ...]:
        """Names of the data sets that either was fitted to."""
        return (*self.encyclopedic.fitted, *self.general.fitted)

    @property
    def priors(self) -> dict[PriorIdentity, WeightBelief]:
        """All priors, of both kinds."""
        return self.encyclopedic.priors | self.general.priors

    def with_reranker(self, reranker: str) -> "RankingPriors":
        """Add a prior for the trust in a reranker, for both kinds."""
        return RankingPriors(self.encyclopedic.with_reranker(reranker), self.general.with_reranker(reranker))


def load_priors(path: Path | None = None) -> RankingPriors:
    """The priors in a file, the shipped ones by default.

    Raises:
        ConfigurationError: the file cannot be read, or holds no priors over this version's features.
    """
    path = path or SHIPPED_FILE
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return RankingPriors(from_json(content["encyclopedic"]), from_json(content["general"]))
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise ConfigurationError(f"{path} holds no ranking priors: {error}") from error


def from_json(content: Mapping[str, Any]) -> RankingPrior:
    """The prior in plain JSON.

    Raises:
        ValueError, KeyError, TypeError: it is none, or one over other features.
    """
    base_weights, prior, fitted = read_ranking(content)
    name = _fingerprint(base_weights.tobytes(), prior, PASSAGE_FEATURES)
    try:
        enough = read_prior(content["sufficiency"], sufficiency.ANSWER_FEATURES)
        level = _read_level(content["sufficiency"])
        expected = _read_expected(content["sufficiency"])
    except ValueError as error:
        raise ValueError(f"of what is enough, {error}") from error
    sufficiency_name = _fingerprint(name.encode(), enough, sufficiency.ANSWER_FEATURES)
    return RankingPrior(name, base_weights, prior, fitted, enough, sufficiency_name, level, expected)


RankingWeights = tuple[NDArray[np.float64], WeightBelief, tuple[str, ...]]
"""Base weights, the prior over all features, and the names of the data sets they were fitted to."""


def read_ranking(content: Mapping[str, Any]) -> RankingWeights:
    prior = read_prior(content, PASSAGE_FEATURES)
    base_weights = np.array(content["first_look"], dtype=np.float64)
    if base_weights.shape != (len(BASE_FEATURES),):
        raise ValueError(f"its base weights need {len(BASE_FEATURES)} numbers")
    if not np.isfinite(base_weights).all():
        raise ValueError("its numbers must be finite")
    return base_weights, prior, tuple(map(str, content["fitted"]))


def read_prior(content: Mapping[str, Any], features: Sequence[str]) -> WeightBelief:
    """Read a prior over these features from plain JSON, as the evaluation's ``prior_files`` writes it.

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
    return WeightBelief(mean, precision)


def _read_level(content: Mapping[str, Any]) -> float:
    level = float(content["level"])
    if not 0.0 <= level <= 1.0:
        raise ValueError("its level must lie in [0, 1]")
    return level


def _read_expected(content: Mapping[str, Any]) -> NDArray[np.float64]:
    expected = np.array(content["expected"], dtype=np.float64)
    shape = len(sufficiency.PATTERNED), len(sufficiency.ANSWER_FEATURES)
    if expected.shape != shape or not np.isfinite(expected).all():
        raise ValueError(f"what it expects needs {shape[0]} x {shape[1]} finite numbers")
    return expected


def _fingerprint(before: bytes, prior: WeightBelief, features: Sequence[str]) -> str:
    numbers = before + prior.mean.tobytes() + prior.precision.tobytes()
    return hashlib.sha256(numbers + ",".join(features).encode()).hexdigest()[:16]
