"""Exploration of answers: the last positions go to passages from beyond the cut, each with a sentence to judge."""

from uuid import UUID

import numpy as np

from engram.services.question.plan import QueryPlan
from engram.services.question.query import ExplorationPart, Query
from engram.services.question.ranking import PassageRanking
from engram.services.question.shown import ShownPassages
from engram.storage.database import Reader
from engram.wings.experiments.core.exploration import draw, entropy, explores, room, weights
from engram.wings.experiments.storage import exploration_candidates

DEPTH = 50
"""Candidates below the cut that a draw is made from."""


def choose_exploration(query: Query, query_id: UUID, unit: str) -> ExplorationPart | None:
    """Whether and how the query explores: a share of the queries give some positions to chance.

    If the setting has a seed, draws follow from it, the collection, the unit and the question, so that they can be
    made again. Otherwise they follow from the query's id alone.
    """
    collection = query.scope.collection
    setting = collection.exploration
    if setting is None:
        return None
    if setting["seed"] is None:
        source = entropy(str(query_id))
    else:
        source = entropy(setting["seed"], collection.id, unit, query.text)
    return ExplorationPart(setting["slots"], source, DEPTH) if explores(setting["share"], source) else None


def explore(
    reader: Reader, plan: QueryPlan, exploring: ExplorationPart, ranking: PassageRanking, chosen: ShownPassages
) -> ShownPassages:
    """Give the last positions to passages from beyond the cut, if the answer is full and there are any."""
    focus = plan.focus
    slots = room(exploring.slots, plan.query.top_k, len(chosen.best))
    beyond = ranking.ordered[plan.query.top_k : plan.query.top_k + exploring.depth]
    if not slots or not beyond:
        return chosen
    touched = exploration_candidates.touches(reader, focus.collection.id, [passage for passage, _ in beyond])
    evidence = np.array([touched.get(passage, 0) for passage, _ in beyond], dtype=np.int64)
    drawn = [beyond[at] for at in draw(weights(evidence), slots, exploring.entropy)]
    ids = [passage for passage, _ in drawn]
    nearest = exploration_candidates.find_nearest_sentences(reader, focus.collection.id, focus.vector, ids)
    drawn = [(passage, score) for passage, score in drawn if passage in nearest]
    kept_count = len(chosen.best) - len(drawn)
    displaced = chosen.displaced.union(passage for passage, _ in chosen.best[kept_count:])
    return ShownPassages([*chosen.best[:kept_count], *drawn], nearest, displaced)
