"""Which verdicts raised or lowered the probability that an answer is enough, and by how much.

As for passages: what it is, less what it were had the verdict never come. Its term is left out of the weights; what
it did to the ranking, and with that to the answer's features, is left as it is.
"""

from dataclasses import asdict, replace

import numpy as np

from app.core import sufficiency
from app.providers.prior import RankingPrior
from app.services.reasons.left_out import Weights
from app.services.retrieval.retrieve import Retrieved
from app.services.retrieval.trace import EnoughInfluence, EnoughTrace
from app.storage.database import Reader
from app.storage.reasons import influence as log


def with_causes(
    reader: Reader, found: Retrieved, prior: RankingPrior, trace: EnoughTrace, most: int
) -> EnoughTrace:
    """The trace with the ``most`` verdicts that moved the model's probability most.

    Args:
        reader: the snapshot that the query was answered from.
    """
    told = found.ranking.enough
    if told is None or not told.events or not len(told.features):
        return trace
    target = found.plan.focus.collection.id
    weights = Weights(reader, target, prior.of_enough, prior.enough)
    effects = np.abs(weights.means @ told.features - weights.mean @ told.features)
    events = [weights.left_out[at] for at in np.argsort(-effects, kind="stable")[:most].tolist()]
    weights.leave_out(events)
    cut = weights.events > len(events)
    if weights.too_long:
        return replace(trace, influences_cut=cut or bool(events))
    moved = {event: told.model - sufficiency.probability(told.features, weights.without(event)) for event in events}
    causes = log.causes(reader, target, sorted(moved))
    strongest = sorted(moved, key=lambda event: (-abs(moved[event]), -event))
    return replace(
        trace,
        influences=[EnoughInfluence(**asdict(causes[event]), probability=moved[event]) for event in strongest],
        influences_cut=cut,
    )
