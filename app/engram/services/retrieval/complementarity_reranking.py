"""The second look at a query's candidates: the pool of the best, and what the others would add to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engram.core.ranking.complementarity import (
    CandidatePool,
    Floats,
    GapSimilarities,
    NamedEntities,
    SharedWords,
    members,
    pool,
)
from engram.core.ranking.ranking_weights import PriorIdentity
from engram.services.retrieval.graph_walk import Walk
from engram.services.retrieval.query_plan import QueryPlan
from engram.storage.database import Reader
from engram.storage.learning import learned_weights
from engram.storage.learning.learned_weights import LearnedWeights
from engram.storage.retrieval import complementarity_links
from engram.storage.retrieval.complementarity_links import PoolLinks
from engram.storage.retrieval.passage_candidates import CandidatePassages


@dataclass(frozen=True, slots=True)
class ComplementarityResult:
    """Result of complementarity reranking.

    Attributes:
        pool: that the first ranking gives; None where it has no member.
        learned: what verdicts taught of each model.
    """

    pool: CandidatePool | None
    learned: Mapping[PriorIdentity, LearnedWeights]


def look_again(
    reader: Reader,
    plan: QueryPlan,
    walk: Walk,
    found: CandidatePassages,
    titles: Sequence[Sequence[str]],
    scores: Floats,
    believed: Sequence[PriorIdentity],
) -> ComplementarityResult:
    """The pool, and what verdicts taught, which is read with it.

    Args:
        titles: of each candidate the normalised names that its title stands for.
        scores: of the first look, (n,).
        believed: of what models verdicts taught; none if what they taught is not to be read.
    """
    if not len(found.ids):
        return ComplementarityResult(
            None, learned_weights.find_all(reader, plan.collection.id, believed) if believed else {}
        )
    best = found.ids[members(found.ids, scores)].tolist()
    asked = list(walk.hops[0].start.activation) if walk.hops else []
    looked = complementarity_links.look(
        reader,
        plan.focus,
        best,
        found.ids,
        asked,
        plan.limits.hub_limit,
        carried=learned_weights.of_all(believed) if believed else None,
    )
    learned = learned_weights.gathered(looked.aside, believed)
    if not looked.members:
        return ComplementarityResult(None, learned)
    made = pool(
        np.searchsorted(found.ids, looked.members),
        _named(looked, titles, asked),
        SharedWords(found.words.weight, found.words.said),
        GapSimilarities(keys=found.similarity, sentences=looked.similarities, across=looked.across),
    )
    return ComplementarityResult(made, learned)


def _named(looked: PoolLinks, titles: Sequence[Sequence[str]], asked: Sequence[int]) -> NamedEntities:
    ids = np.array(list(looked.entities), dtype=np.int64)
    order = np.argsort(ids)
    named, titled = (np.zeros((len(titles), len(ids)), dtype=bool) for _ in range(2))
    named[looked.naming[:, 0], order[np.searchsorted(ids[order], looked.naming[:, 1])]] = True
    called = {known.name: at for at, known in enumerate(looked.entities.values())}
    for row, names in enumerate(titles):
        for name in names:
            if name in called:
                titled[row, called[name]] = True
    passages = np.array([max(known.passages, 1) for known in looked.entities.values()], dtype=np.float64)
    return NamedEntities(1.0 / np.log2(1.0 + passages), np.isin(ids, asked), named, titled)
