"""Step 7: rank the passages, as published or by weighted features."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import passage_scores, remembered_sufficiency, reranking, sufficiency
from engram.core.ranking.complementarity import (
    CandidatePool,
    EntityIncidence,
    GapSimilarities,
    build_pool,
    select_pool,
)
from engram.core.ranking.passage_scores import PASSAGE_FEATURES
from engram.core.ranking.question_memory import (
    collect_passage_probabilities,
    compute_recall_lifts,
    find_even_odds,
)
from engram.core.ranking.reranking import RerankedScores
from engram.core.ranking.weight_beliefs import PriorIdentity, sigmoid
from engram.providers.ranking_prior import RankingPrior
from engram.services.question.candidates import Candidates, collect_candidates, rank_distinct, search_by_keys
from engram.services.question.plan import Search
from engram.services.question.retriever import Retriever
from engram.services.question.sufficiency import (
    SufficiencyEstimate,
    WithholdingLevel,
    choose_level,
    estimate_sufficiency,
    find_midpoint,
)
from engram.services.question.walk import Walk
from engram.storage.learning import learned_weights
from engram.storage.learning.learned_weights import LearnedWeights
from engram.storage.question import complementarity_links, passages_by_key
from engram.storage.question.passage_candidates import CandidatePassages
from engram.telemetry.stages import stage

RECORDED_CANDIDATES = 64
"""Best candidates that an episode records: their ids, and their scores by the reranker if there is one."""


@dataclass(frozen=True, slots=True)
class PassageRanking:
    """The ranked passages of one query.

    Attributes:
        ordered: passage and score of all that were ranked, best first; of a search by keys, ``Query.depth``.
        candidates: all that were ranked by features, best before recall first, (n,); empty if ranked as published.
        features: of the candidates, (n, k).
        weights: of the features, (k,).
        cosines: of each candidate's key and the question, (n,).
        even_odds: score at which a passage is evidence as probably as not; None where features do not rank.
        pool: the best few by base features, which others complete; None where it has no member.
        recalled: whether recall or rejections changed what was reached or its order.
        rejections: candidate -> probability that it is no evidence, by what judges rejected, in [0, 1].
        expanded: whether the question came with expansions.
        sufficiency: how probably the first five hold all evidence; None where features do not rank.
        stand_in_by_passage: left-out passage -> the shown passage with nearly its text that stands for it.
        reranked: scores of a reranker for the candidates; None where none was asked, or it failed.
        age_terms: passage -> what its age adds to its score; empty where age does not count.
        level: sufficiency below which "auto" withholds the answer; None unless the query asks for it.
    """

    ordered: list[tuple[int, float]]
    candidates: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    features: NDArray[np.float64] = field(default_factory=partial(np.zeros, (0, len(PASSAGE_FEATURES))))
    weights: NDArray[np.float64] = field(default_factory=partial(np.zeros, len(PASSAGE_FEATURES)))
    recalled: bool = False
    rejections: Mapping[int, float] = field(default_factory=dict)
    cosines: NDArray[np.float64] = field(default_factory=partial(np.zeros, 0))
    even_odds: float | None = None
    pool: CandidatePool | None = None
    expanded: bool = False
    sufficiency: SufficiencyEstimate | None = None
    stand_in_by_passage: Mapping[int, int] = field(default_factory=dict)
    reranked: RerankedScores | None = None
    age_terms: Mapping[int, float] = field(default_factory=dict)
    level: WithholdingLevel | None = None

    @property
    def pooled(self) -> list[int]:
        """The passages of the pool, best first."""
        return [] if self.pool is None else self.candidates[self.pool.places].tolist()

    def estimate_probability(self, score: float) -> float | None:
        """Estimate from a passage's score how probably it is evidence; None where features do not rank.

        The probabilities of all candidates add up to the passages that are evidence of a question on average.
        """
        return None if self.even_odds is None else float(sigmoid(score - self.even_odds))

    @property
    def similarities(self) -> dict[int, float]:
        """Passage -> cosine of its key and the question, of those that were ranked by features."""
        return dict(zip(self.candidates.tolist(), self.cosines.tolist(), strict=True))

    @property
    def teaches(self) -> bool:
        """Whether a verdict on this answer may teach weights: not if recall or expansions changed it.

        Weights are those of questions as they are asked, and expansions change the similarities.
        """
        return len(self.candidates) > 0 and not self.recalled and not self.expanded


def rank(search: Search, walk: Walk) -> PassageRanking:
    """Rank the passages that a walk touched and those nearest to the question, or what a search by keys finds."""
    retriever = search.plan.retriever
    with stage("rank"):
        if search.plan.query.strategy != "graph":
            return _rank_by_keys(search)
        return _rank_by_features(search, walk) if retriever is None else _rank_by_retriever(search, walk, retriever)


def _rank_by_keys(search: Search) -> PassageRanking:
    plan, query = search.plan, search.plan.query

    def search_passages(limit: int) -> list[tuple[int, float]]:
        return search_by_keys(search.reader, plan.focus, query.strategy, plan.terms, limit, search.keys)

    ordered, stand_in_by_passage = rank_distinct(search, query.depth, search_passages)
    return PassageRanking(ordered[: query.depth], stand_in_by_passage=stand_in_by_passage)


def _rank_by_retriever(search: Search, walk: Walk, retriever: Retriever) -> PassageRanking:
    """Rank the passages of selected sentences and those near to the question as a wing scores them."""
    plan = search.plan
    touched = {sentence.passage_id for sentence in walk.evidence.values()}
    hops = [(hop.candidates, hop.scores) for hop in walk.hops]

    def score(limit: int) -> list[tuple[int, float]]:
        near = passages_by_key.find_nearest_passages(search.reader, plan.focus, limit, touched, search.keys(limit))
        similarities = {passage: key.similarity for passage, key in near.items()}
        scores = retriever.score_passages(similarities, hops)
        return passage_scores.select_best(scores, len(scores))

    ordered, stand_in_by_passage = rank_distinct(search, plan.query.top_k, score)
    return PassageRanking(
        ordered, recalled=bool(walk.recall.probabilities), stand_in_by_passage=stand_in_by_passage
    )


def _rank_by_features(search: Search, walk: Walk) -> PassageRanking:
    """Rank candidates by the base features, then by complementarity and the reranker; add recall last."""
    plan, prior = search.plan, search.prior
    collected = collect_candidates(search, walk)
    candidates, stand_in_by_passage = collected.passages, collected.stand_in_by_passage
    pool, learned = _build_pool(search, walk, collected, list(prior.priors) if plan.focus.use_memory else [])
    features = passage_scores.add_complementarity(collected.features, pool, prior.base_weights)
    believed = _compute_beliefs(prior, learned)
    scores = features @ prior.prior.mean
    reranked = _apply_reranker(search, candidates, features, believed)
    if reranked is not None:
        scores = scores + reranked.added
    order = np.lexsort((candidates.ids, -scores))
    pool = None if pool is None else pool.reorder(order)
    weights, verdicts = believed[prior.of_sufficiency]
    first_words = candidates.words.in_passages[order[: sufficiency.EVIDENCE_PASSAGES]]
    estimate = estimate_sufficiency(
        search,
        walk,
        scores[order],
        features[order],
        replace(candidates.words, in_passages=first_words),
        pool,
        weights,
        verdicts,
        find_midpoint(plan.collection, prior),
    )
    own = set(candidates.ids.tolist())
    rejections = {passage: one for passage, one in walk.recall.rejections.items() if passage in own}
    recalled_scores = _add_recall(walk, candidates.ids, scores, rejections, stand_in_by_passage)
    ordered = passage_scores.select_best(dict(zip(candidates.ids.tolist(), recalled_scores, strict=True)), len(own))
    leading = {passage for passage, _ in ordered[: sufficiency.EVIDENCE_PASSAGES]}
    evidence = [
        replace(one, passage_id=stand_in_by_passage.get(one.passage_id, one.passage_id))
        for one in walk.recall.past_evidence
    ]
    return PassageRanking(
        ordered,
        candidates.ids[order],
        features[order],
        prior.prior.mean,
        recalled=bool(walk.recall.probabilities) or bool(rejections),
        rejections=rejections,
        cosines=candidates.similarity[order],
        even_odds=float(find_even_odds(scores, walk.recall.evidence_count)) if len(scores) else None,
        pool=pool,
        expanded=bool(plan.query.expansions),
        sufficiency=replace(
            estimate, remembered=remembered_sufficiency.compute_remembered_sufficiency(evidence, leading)
        ),
        stand_in_by_passage=stand_in_by_passage,
        reranked=None if reranked is None else reranked.reorder(order),
        level=choose_level(search.reader, plan, prior, estimate.weights)
        if plan.query.min_sufficiency == "auto" or "sufficiency_level" in plan.query.include
        else None,
    )


def _add_recall(
    walk: Walk,
    passages: NDArray[np.int64],
    scores: NDArray[np.float64],
    rejections: Mapping[int, float],
    stand_in_by_passage: Mapping[int, int],
) -> list[float]:
    """Scores, (n,), with what recall and rejections change of each."""
    if not len(scores):
        return []
    holders = {past.sentence_id: past.passage_id for past in walk.recall.supports}
    probabilities = collect_passage_probabilities(walk.recall.probabilities, holders, stand_in_by_passage)
    lifts = compute_recall_lifts(
        scores,
        passage_scores.gather_values(passages, probabilities),
        walk.recall.evidence_count,
        passage_scores.gather_values(passages, rejections),
    )
    changed: list[float] = (scores + lifts).tolist()
    return changed


def _build_pool(
    search: Search, walk: Walk, collected: Candidates, models: Sequence[PriorIdentity]
) -> tuple[CandidatePool | None, Mapping[PriorIdentity, LearnedWeights]]:
    """Build the pool that passages complete, and load what verdicts taught of each model with the same statement.

    The pool is None where it has no member.

    Args:
        models: of which verdicts taught; none if what they taught is not to be read.
    """
    reader, plan, candidates = search.reader, search.plan, collected.passages
    if not len(candidates.ids):
        return None, learned_weights.find_all(reader, plan.collection.id, models) if models else {}
    best = candidates.ids[select_pool(candidates.ids, collected.features @ search.prior.base_weights)].tolist()
    start_entities = list(walk.hops[0].start.activation) if walk.hops else []
    links = complementarity_links.look(
        reader,
        plan.focus,
        best,
        candidates.ids,
        carried=learned_weights.build_query_of_all(models) if models else None,
    )
    learned = learned_weights.collect_weights(links.aside, models)
    if not links.members:
        return None, learned
    pool = build_pool(
        np.searchsorted(candidates.ids, links.members),
        _find_named_entities(search, collected, best, start_entities),
        candidates.words,
        GapSimilarities(keys=candidates.similarity, sentences=links.similarities, member_to_candidate=links.across),
    )
    return pool, learned


def _find_named_entities(
    search: Search, collected: Candidates, pool: Sequence[int], start_entities: Sequence[int]
) -> EntityIncidence:
    """Find which candidates name the entities of the question and of the pool, or are titled after them."""
    reader, graph, titles = search.reader, search.graph, collected.titles
    candidates = collected.passages.ids
    held = graph.read_entities_of_passages(reader, candidates.tolist())
    entity_ids = {*start_entities}.union(*(held[passage].tolist() for passage in pool if passage in held))
    entities = graph.read_entities(reader, sorted(entity_ids))
    ids = np.array(list(entities), dtype=np.int64)
    named, titled = (np.zeros((len(titles), len(ids)), dtype=bool) for _ in range(2))
    if held:
        rows = np.repeat(np.searchsorted(candidates, list(held)), [len(own) for own in held.values()])
        columns, is_known = passage_scores.find_rows(ids, np.concatenate(list(held.values())))
        named[rows[is_known], columns] = True
    called = {entity.name: at for at, entity in enumerate(entities.values())}
    for row, names in enumerate(titles):
        for name in names:
            if name in called:
                titled[row, called[name]] = True
    passages = np.array([max(entity.passages, 1) for entity in entities.values()], dtype=np.float64)
    return EntityIncidence(1.0 / np.log2(1.0 + passages), np.isin(ids, start_entities), named, titled)


def _apply_reranker(
    search: Search,
    candidates: CandidatePassages,
    features: NDArray[np.float64],
    believed: Mapping[PriorIdentity, tuple[NDArray[np.float64], int]],
) -> RerankedScores | None:
    """Scores of a reranker for the candidates, weighed by the trust in it."""
    plan, prior = search.plan, search.prior
    if not plan.reranked or prior.reranker is None or not len(candidates.ids):
        return None
    both = reranking.features(features @ prior.prior.mean, candidates.ids.tolist(), plan.reranked)
    weights, _ = believed[prior.of_reranker]
    return RerankedScores(prior.reranker_name, both, float(weights[1]))


def _compute_beliefs(
    prior: RankingPrior, learned: Mapping[PriorIdentity, LearnedWeights]
) -> dict[PriorIdentity, tuple[NDArray[np.float64], int]]:
    """Return for each belief the mean weights, (k,), and the number of verdicts in them."""
    return {
        of: (sufficiency.compute_mean(of.model, began, learned[of].evidence), learned[of].events)
        if of in learned
        else (began.mean, 0)
        for of, began in prior.priors.items()
    }
