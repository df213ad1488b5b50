"""Verdicts that raised or lowered the sufficiency of an answer, and by how much.

As for passages: what it is, less what it were had the verdict never come. Its term is left out of the weights; what
it did to the ranking, and with that to the answer's features, is left as it is.
"""

from collections.abc import Sequence
from dataclasses import asdict, replace

import numpy as np

from engram.core.ranking import sufficiency
from engram.core.ranking.denied_answers import compute_undenied_share
from engram.core.ranking.weight_beliefs import Floats
from engram.core.ranking.withholding_level import calibrate_weights
from engram.providers.ranking_prior import RankingPrior
from engram.services.question.search import RetrievalResult
from engram.services.question.sufficiency import SufficiencyEstimate, find_midpoint
from engram.services.question.trace import SufficiencyInfluence, SufficiencyTrace
from engram.storage.database import Reader
from engram.storage.learning import judged_answers
from engram.storage.learning.judged_answers import LoggedJudgement
from engram.wings.why.services.counterfactual_states import Weights
from engram.wings.why.storage import influence_rows as log


def add_causes(
    reader: Reader, retrieved: RetrievalResult, prior: RankingPrior, trace: SufficiencyTrace, most: int
) -> SufficiencyTrace:
    """The trace with the ``most`` verdicts that moved the model's probability most, and those on the same question.

    Args:
        reader: the snapshot that the query was answered from.
    """
    enough = retrieved.ranking.sufficiency
    if enough is None:
        return trace
    target = retrieved.plan.focus.collection.id
    if retrieved.plan.profile.recalls:
        every = judged_answers.list_every_judgement(reader, target, retrieved.plan.query.text)
        trace = replace(trace, judgements=_explain_judgements(reader, target, every, enough, most))
    if not enough.events or not len(enough.features):
        return trace
    weights = Weights(reader, target, prior.of_sufficiency, prior.sufficiency)
    midpoint = find_midpoint(retrieved.plan.collection, prior)
    moved, cut = find_strongest_verdicts(weights, enough.features, midpoint, most)
    causes = log.causes(reader, target, sorted(moved))
    return replace(
        trace,
        influences=[SufficiencyInfluence(**asdict(causes[event]), probability=by) for event, by in moved.items()],
        influences_cut=cut,
    )


def _explain_judgements(
    reader: Reader, collection_id: int, every: Sequence[LoggedJudgement], enough: SufficiencyEstimate, most: int
) -> list[SufficiencyInfluence]:
    """List the last judgement of each judge, those that change the probability most first; none if nobody denies.

    Args:
        every: judgements in the order of application; without the last of a judge, the one before it counts.
        enough: the sufficiency after all of them.
    """
    if all(one.judgement.enough for one in every):
        return []
    changes = {
        event: enough.probability - enough.state(_compute_undenied([one for one in every if one.event_id != event]))
        for event in {one.judge: one.event_id for one in every}.values()
    }
    listed = sorted(changes, key=lambda event: (-abs(changes[event]), -event))[:most]
    causes = log.causes(reader, collection_id, sorted(listed))
    return [SufficiencyInfluence(**asdict(causes[event]), probability=changes[event]) for event in listed]


def _compute_undenied(judgements: Sequence[LoggedJudgement]) -> float:
    return compute_undenied_share({one.judge: one.judgement for one in judgements}.values())


def find_strongest_verdicts(
    weights: Weights, features: Floats, midpoint: float, most: int
) -> tuple[dict[int, float], bool]:
    """The ``most`` verdicts that moved a probability most, and by how much, the strongest first.

    Args:
        features: whose probability it is, (k,).
        midpoint: of the collection, see ``withholding_level``.

    Returns:
        Besides whether there are more: so it is where what was said of their questions is too long to be read.
    """
    effects = np.abs(weights.means @ features - weights.mean @ features)
    events = [weights.left_out[at] for at in np.argsort(-effects, kind="stable")[:most].tolist()]
    weights.leave_out(events)
    cut = weights.events > len(events)
    if weights.too_long:
        return {}, cut or bool(events)

    def state(mean: Floats) -> float:
        return sufficiency.probability(features, calibrate_weights(mean, midpoint))

    influence = {event: state(weights.mean) - state(weights.compute_mean_without(event)) for event in events}
    return dict(sorted(influence.items(), key=lambda pair: (-abs(pair[1]), -pair[0]))), cut
