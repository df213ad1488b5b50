"""Weights by which a session's pool is enough after a round, as verdicts on sessions teach them."""

from collections.abc import Callable, Sequence

from engram.core.ranking.weight_beliefs import WeightBelief, WeightObservation
from engram.storage.feedback_log.judged_queries import JudgedVerdict
from engram.wings.sessions.core import round_sufficiency
from engram.wings.sessions.services.stop_weights import StopWeights

ROUND = "round"
"""Name of the model in the log."""


class RoundModel:
    """The model ``round``, see ``wings.sessions.core.round_sufficiency``.

    Args:
        load_weights: loads the file that has its prior.
    """

    name = ROUND
    features: Sequence[str] = round_sufficiency.ROUND_FEATURES

    def __init__(self, load_weights: Callable[[], StopWeights]) -> None:
        self._load_weights = load_weights

    def load_prior(self) -> WeightBelief | None:
        """Load the belief before any verdict; None where nothing was fitted."""
        return self._load_weights().rounds

    def observe(self, prior: WeightBelief, judged: JudgedVerdict) -> WeightObservation | None:
        """Compute a verdict's observation of the pools after its rounds; None if it has none."""
        return round_sufficiency.observe_verdict(
            judged.verdict, judged.judged_passages, prior, judged.noise, known=judged.supports_exist
        )
