"""Mean weights of each model after verdicts."""

from engram.core.ranking import sufficiency, weight_beliefs
from engram.core.ranking.weight_beliefs import Floats, WeightBelief, WeightEvidence


def compute_mean(model: str, prior: WeightBelief, evidence: WeightEvidence) -> Floats:
    """Compute the mean of a model's weights, (k,), after the evidence of all verdicts.

    Args:
        prior: over k weights.
        evidence: sum of the model's terms; of sufficiency k + 1, see ``sufficiency.build_counted_observation``.
    """
    if model == "sufficiency":
        return sufficiency.compute_learned_mean(prior, evidence)
    return weight_beliefs.posterior(prior, evidence).mean
