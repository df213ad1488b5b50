"""Terms of a logged verdict in the weights of each model."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import sufficiency, weight_beliefs
from engram.core.ranking.weight_beliefs import CandidateComparison, PriorIdentity, WeightBelief, WeightObservation
from engram.storage.feedback_log.judged_queries import JudgedVerdict


def observe_verdicts(
    believed: PriorIdentity, prior: WeightBelief, verdicts: Sequence[JudgedVerdict]
) -> list[WeightObservation | None]:
    """Compute each verdict's observation of these weights, independent of the others; None if it has none.

    Args:
        verdicts: placed, see ``JudgedVerdict.place``.
    """
    if believed.model == "reranker":
        return _observe_rankings(prior, [_compare_by_reranker(believed, prior, one) for one in verdicts])
    return [_observe_answer(prior, one) for one in verdicts]


def _observe_rankings(
    prior: WeightBelief, compared: Sequence[CandidateComparison | None]
) -> list[WeightObservation | None]:
    """Observe many comparisons of rankings together."""
    observations = iter(weight_beliefs.observe_all([one for one in compared if one is not None], prior))
    return [None if one is None else next(observations) for one in compared]


def _compare_by_reranker(
    believed: PriorIdentity, prior: WeightBelief, judged: JudgedVerdict
) -> CandidateComparison | None:
    """Compare the candidates by a reranker's scores, if the belief is in this reranker."""
    reranked = judged.reranked
    if reranked is None or reranked.prior != believed.prior:
        return None
    return _compare_candidates(prior, judged, reranked.features)


def _compare_candidates(
    prior: WeightBelief, judged: JudgedVerdict, features: NDArray[np.float32] | None
) -> CandidateComparison | None:
    """Compare the candidates that the verdict speaks of by these features, (n, k)."""
    if not judged.ranked or features is None:
        return None
    examined = judged.verdict.passage_examinations(judged.holders)
    return weight_beliefs.compare_candidates(
        judged.ranked,
        features,
        judged.judged_passages,
        judged.verdict,
        prior=prior,
        noise=judged.noise,
        examined=examined,
    )


def _observe_answer(prior: WeightBelief, judged: JudgedVerdict) -> WeightObservation | None:
    """Return the verdict's observation of whether the answer was sufficient."""
    if not judged.ranked or judged.answer_features is None or len(judged.answer_features) != len(prior.mean):
        return None  # features alone did not rank, or of a version with other features
    outcome = sufficiency.label_answer(
        judged.verdict,
        judged.judged_passages,
        judged.ranked[: sufficiency.EVIDENCE_PASSAGES],
        known=judged.supports_exist,
    )
    if outcome is None:
        return None
    return sufficiency.build_counted_observation(
        judged.answer_features.astype(np.float64), outcome, prior, judged.noise
    )
