"""What a logged verdict says of the weights of each model: the term of its sum."""

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from app.core import belief, rounds, sufficiency
from app.core.belief import Believed, Observation, Prior
from app.core.verdict import LoggedVerdict


class Judged(Protocol):
    """A verdict and what it goes by, as the log has them."""

    @property
    def verdict(self) -> LoggedVerdict: ...
    @property
    def ranked(self) -> list[int] | None: ...
    @property
    def features(self) -> NDArray[np.float32] | None: ...
    @property
    def enough(self) -> NDArray[np.float32] | None: ...


def observed(
    believed: Believed,
    prior: Prior,
    judged: Judged,
    targets: Mapping[int, int],
    holders: Mapping[int, int],
    noise: float,
) -> Observation | None:
    """What the verdict says; None if nothing.

    Args:
        targets: sentence -> y, see ``LoggedVerdict.targets``.
        holders: sentence -> its passage, of those that there are.
        noise: R of the verdict.
    """
    within = {sentence: holders[sentence] for sentence in targets if sentence in holders}
    named = [(passage, targets[sentence]) for sentence, passage in within.items()]
    known = holders.keys() >= set(judged.verdict.supports)
    match believed.model:
        case "round":
            return rounds.observed(judged.verdict, named, prior, noise, known=known)
        case "ranking":
            if not judged.ranked or judged.features is None:
                return None
            examined = judged.verdict.passage_examinations(within)
            return belief.observed(
                judged.ranked, judged.features, named, judged.verdict, prior=prior, noise=noise, examined=examined
            )
        case "enough":
            return _of_answer(prior, judged, named, noise, known=known)


def _of_answer(
    prior: Prior, judged: Judged, named: Sequence[tuple[int, int]], noise: float, *, known: bool
) -> Observation | None:
    """What the verdict says of whether the answer was enough."""
    if not judged.ranked or judged.enough is None or len(judged.enough) != len(prior.mean):
        return None  # features alone did not rank, or of a version with other features
    said = sufficiency.told(judged.verdict, named, judged.ranked[: sufficiency.FIRST], known=known)
    if said is None:
        return None
    return sufficiency.observe(judged.enough.astype(np.float64), said, prior, noise)
