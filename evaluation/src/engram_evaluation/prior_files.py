"""Files of fitted weights: written, and read in part where another part is to be fitted anew."""

import json
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from engram.context.errors import ConfigurationError
from engram.core.ranking import sufficiency
from engram.core.ranking.corpus_kind import CorpusKind
from engram.core.ranking.passage_scores import BASE_FEATURES, PASSAGE_FEATURES
from engram.core.ranking.weight_beliefs import Floats, WeightBelief
from engram.providers.ranking_prior import RankingPrior, RankingPriors, RankingWeights, read_ranking
from engram.wings.sessions.core import feedback_stop
from engram.wings.sessions.core.round_sufficiency import ROUND_FEATURES
from engram.wings.sessions.services.stop_weights import StopWeights

DIGITS = 6  # significant, so that a file can be read and a fit on another machine gives the same one


def build_general_priors(prior: RankingPrior) -> RankingPriors:
    """One prior for every kind of corpus."""
    return RankingPriors(prior, prior)


def build_neutral_prior() -> RankingPrior:
    """All weights 0: what there is before any were fitted to these features."""
    return RankingPrior(
        "none",
        np.zeros(len(BASE_FEATURES)),
        _build_flat_prior(len(PASSAGE_FEATURES)),
        (),
        _build_flat_prior(len(sufficiency.ANSWER_FEATURES)),
        "none",
        0.5,
        np.zeros((len(sufficiency.PATTERNED), len(sufficiency.ANSWER_FEATURES))),
    )


def _build_flat_prior(size: int) -> WeightBelief:
    return WeightBelief(np.zeros(size), np.eye(size))


def load_ranking(path: Path) -> dict[CorpusKind, RankingWeights]:
    """The ranking weights in a file, by kind of corpus; what it says of "sufficiency" may be of another version.

    Raises:
        ConfigurationError: the file cannot be read, or holds no such weights over this version's features.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return {kind: read_ranking(content[kind]) for kind in get_args(CorpusKind)}
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise ConfigurationError(f"{path} holds no ranking weights: {error}") from error


def format_ranking(
    first: NDArray[np.float64],
    prior: WeightBelief,
    fitted: tuple[str, ...],
    enough: WeightBelief,
    level: float,
    expected: Floats,
    enough_fitted: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Format the weights that collections of one kind start from as plain JSON, numbers rounded.

    Args:
        fitted, enough_fitted: names of the data sets that the ranking weights and sufficiency were fitted to.
        level: of sufficiency, in [0, 1].
        expected: of its features in other languages than English, (len(PATTERNED), len(ANSWER_FEATURES)).
    """
    return {
        "features": list(PASSAGE_FEATURES),
        "fitted": list(fitted),
        "first_look": _round_numbers(first),
        **_format_prior(prior),
        "sufficiency": {
            "features": list(sufficiency.ANSWER_FEATURES),
            "fitted": list(enough_fitted),
            "level": float(f"{level:.{DIGITS}g}"),
            "expected": [_round_numbers(row) for row in expected],
            **_format_prior(enough),
        },
    }


def _format_prior(prior: WeightBelief) -> dict[str, Any]:
    return {"mean": _round_numbers(prior.mean), "precision": [_round_numbers(row) for row in prior.precision]}


def format_stop(weights: StopWeights) -> dict[str, Any]:
    """Format the weights of a stop as plain JSON, numbers rounded."""
    rounds = weights.rounds
    content: dict[str, Any] = {
        "features": list(feedback_stop.STOP_FEATURES),
        "fitted": list(weights.fitted),
        "relevance": weights.relevance,
        "mean": _round_numbers(weights.classifier),
    }
    if rounds is not None:
        content["rounds"] = {"features": list(ROUND_FEATURES), "mean": _round_numbers(rounds)}
    return content


def _round_numbers(values: Floats) -> list[float]:
    return [float(f"{value:.{DIGITS}g}") for value in values]
