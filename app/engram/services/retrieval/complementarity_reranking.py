"""Complementarity reranking: the pool of the best candidates, and what the others would add to it."""

from collections.abc import Mapping, Sequence

import numpy as np

from engram.core.ranking.complementarity import (
    CandidatePool,
    EntityIncidence,
    Floats,
    GapSimilarities,
    build_pool,
    select_pool,
)
from engram.core.ranking.ranking_weights import PriorIdentity
from engram.services.retrieval.graph_cache import CachedGraph
from engram.services.retrieval.graph_walk import Walk
from engram.services.retrieval.query_plan import QueryPlan
from engram.storage.database import Reader
from engram.storage.learning import learned_weights
from engram.storage.learning.learned_weights import LearnedWeights
from engram.storage.retrieval import complementarity_links
from engram.storage.retrieval.passage_candidates import CandidatePassages


def build_reranking_pool(
    reader: Reader,
    plan: QueryPlan,
    walk: Walk,
    graph: CachedGraph,
    candidates: CandidatePassages,
    titles: Sequence[Sequence[str]],
    scores: Floats,
    believed: Sequence[PriorIdentity],
) -> tuple[CandidatePool | None, Mapping[PriorIdentity, LearnedWeights]]:
    """Build the pool of the base ranking, and load what verdicts taught of each model with the same statement.

    The pool is None where it has no member.

    Args:
        titles: of each candidate the normalised names that its title stands for.
        scores: of the base ranking, (n,).
        believed: of what models verdicts taught; none if what they taught is not to be read.
    """
    if not len(candidates.ids):
        return None, learned_weights.find_all(reader, plan.collection.id, believed) if believed else {}
    best = candidates.ids[select_pool(candidates.ids, scores)].tolist()
    start_entities = list(walk.hops[0].start.activation) if walk.hops else []
    links = complementarity_links.look(
        reader,
        plan.focus,
        best,
        candidates.ids,
        carried=learned_weights.build_query_of_all(believed) if believed else None,
    )
    learned = learned_weights.collect_weights(links.aside, believed)
    if not links.members:
        return None, learned
    candidate_pool = build_pool(
        np.searchsorted(candidates.ids, links.members),
        _find_named_entities(reader, graph, candidates.ids.tolist(), best, titles, start_entities),
        candidates.words,
        GapSimilarities(keys=candidates.similarity, sentences=links.similarities, member_to_candidate=links.across),
    )
    return candidate_pool, learned


def _find_named_entities(
    reader: Reader,
    graph: CachedGraph,
    candidates: Sequence[int],
    pool: Sequence[int],
    titles: Sequence[Sequence[str]],
    start_entities: Sequence[int],
) -> EntityIncidence:
    """Find which candidates name the entities of the question and of the pool, or are titled after them."""
    held = graph.read_entities_of_passages(reader, candidates)
    wanted = {*start_entities}.union(*(held[passage].tolist() for passage in pool if passage in held))
    entities = graph.read_entities(reader, sorted(wanted))
    ids = np.array(list(entities), dtype=np.int64)
    named, titled = (np.zeros((len(titles), len(ids)), dtype=bool) for _ in range(2))
    links = [(row, held[passage]) for row, passage in enumerate(candidates) if passage in held]
    if links:
        rows = np.repeat([row for row, _ in links], [len(own) for _, own in links])
        columns = np.concatenate([own for _, own in links])
        known = np.isin(columns, ids)
        named[rows[known], np.searchsorted(ids, columns[known])] = True
    called = {entity.name: at for at, entity in enumerate(entities.values())}
    for row, names in enumerate(titles):
        for name in names:
            if name in called:
                titled[row, called[name]] = True
    passages = np.array([max(entity.passages, 1) for entity in entities.values()], dtype=np.float64)
    return EntityIncidence(1.0 / np.log2(1.0 + passages), np.isin(ids, start_entities), named, titled)
