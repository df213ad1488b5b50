"""Terms of a logged verdict in the weights of each model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import ranking_weights, sufficiency
from engram.core.ranking.ranking_weights import CandidateComparison, Prior, PriorIdentity, WeightObservation
from engram.storage.feedback_log.judged_queries import JudgedVerdict


@dataclass(frozen=True, slots=True)
class PlacedVerdict:
    """A verdict, and the passages of the sentences that it names.

    Attributes:
        within: sentence that the verdict names and that still exists -> its passage.
        named: (passage, y) of each of these sentences.
        supports_exist: whether every sentence that it supports still exists.
        noise: observation noise R of the verdict.
    """

    judged: JudgedVerdict
    within: Mapping[int, int]
    named: Sequence[tuple[int, int]]
    supports_exist: bool
    noise: float

    @classmethod
    def from_verdict(cls, judged: JudgedVerdict, holders: Mapping[int, int], noise: float) -> "PlacedVerdict":
        """Place a verdict.

        Args:
            holders: sentence -> its passage, of sentences that exist.
        """
        within = {sentence: holders[sentence] for sentence in judged.targets if sentence in holders}
        named = [(passage, judged.targets[sentence]) for sentence, passage in within.items()]
        return cls(judged, within, named, holders.keys() >= set(judged.verdict.supports), noise)


class WeightModel(Protocol):
    """A logistic model that verdicts teach, beside those of answers and rerankers.

    Attributes:
        name: of the model in the log.
        features: names of the features that its weights belong to, (k,).
    """

    name: str
    features: Sequence[str]

    def load_prior(self) -> Prior | None:
        """Load the belief before any verdict; None where nothing was fitted, so that verdicts teach nothing."""
        ...

    def observe(self, prior: Prior, statement: PlacedVerdict) -> WeightObservation | None:
        """Compute a verdict's observation of the weights, independent of other verdicts; None if it has none."""
        ...


def observe_statements(
    believed: PriorIdentity, prior: Prior, statements: Sequence[PlacedVerdict], models: Mapping[str, WeightModel]
) -> list[WeightObservation | None]:
    """Compute each verdict's observation of these weights, independent of the others; None if it has none.

    Args:
        models: further models, by their names.
    """
    match believed.model:
        case "reranker":
            return _observe_rankings(prior, [_compare_by_reranker(believed, prior, one) for one in statements])
        case "sufficiency":
            return [_observe_answer(prior, one) for one in statements]
        case further:
            return [models[further].observe(prior, one) for one in statements]


def _observe_rankings(
    prior: Prior, compared: Sequence[CandidateComparison | None]
) -> list[WeightObservation | None]:
    """Observe many comparisons of rankings together."""
    observations = iter(ranking_weights.observe_all([one for one in compared if one is not None], prior))
    return [None if one is None else next(observations) for one in compared]


def _compare_by_reranker(
    believed: PriorIdentity, prior: Prior, statement: PlacedVerdict
) -> CandidateComparison | None:
    """Compare the candidates by a reranker's scores, if the belief is in this reranker."""
    reranked = statement.judged.reranked
    if reranked is None or reranked.prior != believed.prior:
        return None
    return _compare_candidates(prior, statement, reranked.features)


def _compare_candidates(
    prior: Prior, statement: PlacedVerdict, features: NDArray[np.float32] | None
) -> CandidateComparison | None:
    """Compare the candidates that the verdict speaks of by these features, (n, k)."""
    judged = statement.judged
    if not judged.ranked or features is None:
        return None
    examined = judged.verdict.passage_examinations(statement.within)
    return ranking_weights.compare_candidates(
        judged.ranked,
        features,
        statement.named,
        judged.verdict,
        prior=prior,
        noise=statement.noise,
        examined=examined,
    )


def _observe_answer(prior: Prior, statement: PlacedVerdict) -> WeightObservation | None:
    """Return the verdict's observation of whether the answer was sufficient."""
    judged = statement.judged
    if not judged.ranked or judged.answer_features is None or len(judged.answer_features) != len(prior.mean):
        return None  # features alone did not rank, or of a version with other features
    outcome = sufficiency.label_answer(
        judged.verdict,
        statement.named,
        judged.ranked[: sufficiency.EVIDENCE_PASSAGES],
        known=statement.supports_exist,
    )
    if outcome is None:
        return None
    return sufficiency.build_counted_observation(
        judged.answer_features.astype(np.float64), outcome, prior, statement.noise
    )
