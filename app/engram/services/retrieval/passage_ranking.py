"""The passages of one query in order: as published, or by weighted features."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import (
    passage_scores,
    propagation,
    remembered_sufficiency,
    reranking,
    sufficiency,
)
from engram.core.ranking.complementarity import CandidatePool
from engram.core.ranking.cosine_scale import rescale_cosines
from engram.core.ranking.duplicates import merge_duplicates
from engram.core.ranking.learned_means import compute_mean
from engram.core.ranking.passage_scores import HopReach
from engram.core.ranking.question_memory import collect_passage_probabilities, compute_recall_lifts
from engram.core.ranking.ranking_weights import PriorIdentity
from engram.core.ranking.reranking import RerankedScores
from engram.providers.language import normalise_entity, title_entities
from engram.providers.ranking_prior import RankingPrior
from engram.services.retrieval.answer_sufficiency import SufficiencyEstimate, estimate_sufficiency
from engram.services.retrieval.collapse import SPARE_PASSAGES, stand_ins
from engram.services.retrieval.complementarity_reranking import build_reranking_pool
from engram.services.retrieval.graph_cache import CachedGraph
from engram.services.retrieval.graph_walk import Walk, WalkHop
from engram.services.retrieval.key_search import search
from engram.services.retrieval.passage_key_cache import NearestLookup
from engram.services.retrieval.query_plan import QueryPlan
from engram.services.retrieval.withholding_level import WithholdingLevel, choose_level
from engram.storage.database import Reader
from engram.storage.learning.learned_weights import LearnedWeights
from engram.storage.retrieval import passage_candidates, passage_likeness, passages_by_key
from engram.storage.retrieval.passage_candidates import CandidatePassages

TITLES = 20_000
"""Titles whose names a process caches."""
GAP_PASSAGES = 10
"""Passages that are looked for in each gap."""
RECORDED_CANDIDATES = 64
"""Best candidates that an episode records: their ids, and their scores by the reranker if there is one."""
MOST_NEAREST = 1_000
"""Most nearest passages that a search reads to fill the places of duplicates."""


@dataclass(frozen=True, slots=True)
class PassageRanking:
    """The ranked passages of one query.

    Attributes:
        best: passage and score of the ``top_k`` best, best first.
        candidates: all that were ranked by features, best before recall first, (n,); empty if ranked as published.
        features: of the candidates, (n, k).
        weights: of the features, (k,).
        cosines: of each candidate's key and the question, (n,).
        pool: the best few by base features; None without reranking.
        recalled: whether recall changed what was reached or its order.
        expanded: whether the question came with expansions.
        beyond: passage and score of those that come after ``best``, as many as were reached, best first.
        sufficiency: how probably the first five hold all evidence; None where features do not rank.
        stand_in_by_passage: left-out passage -> the shown passage with nearly its text that stands for it.
        reranked: scores of a reranker for the candidates; None where none was asked, or it failed.
        level: sufficiency below which the answer is withheld; None unless ``min_sufficiency`` is "auto".
    """

    best: list[tuple[int, float]]
    candidates: NDArray[np.int64]
    features: NDArray[np.float64]
    weights: NDArray[np.float64]
    recalled: bool
    cosines: NDArray[np.float64] = field(default_factory=partial(np.zeros, 0))
    pool: CandidatePool | None = None
    expanded: bool = False
    beyond: Sequence[tuple[int, float]] = ()
    sufficiency: SufficiencyEstimate | None = None
    stand_in_by_passage: Mapping[int, int] = field(default_factory=dict)
    reranked: RerankedScores | None = None
    level: WithholdingLevel | None = None

    @property
    def ordered(self) -> list[tuple[int, float]]:
        """Passage and score of all that were ranked, best first."""
        return [*self.best, *self.beyond]

    @property
    def pooled(self) -> list[int]:
        """The passages of the pool, best first."""
        return [] if self.pool is None else self.candidates[self.pool.places].tolist()

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


_NO_FEATURES = (
    np.zeros(0, dtype=np.int64),
    np.zeros((0, len(passage_scores.PASSAGE_FEATURES))),
    np.zeros(len(passage_scores.PASSAGE_FEATURES)),
)


def rank(
    reader: Reader,
    plan: QueryPlan,
    walk: Walk,
    prior: RankingPrior,
    depth: int,
    nearest_lookup: NearestLookup,
    graph: CachedGraph,
) -> PassageRanking:
    """Rank the passages that a walk touched and those nearest to the question; without a walk, those of a search.

    Args:
        prior: shipped weights, from which a collection starts.
        depth: how many passages a search has to find.
        nearest_lookup: finds the passages nearest to the question among the keys that the process keeps.
        graph: what the process has read of the collection's graph.
    """
    top_k = plan.query.top_k
    if plan.query.strategy != "graph":
        strategy = plan.query.strategy

        def search_passages(limit: int) -> list[tuple[int, float]]:
            return search(reader, plan.focus, strategy, plan.terms, limit, nearest_lookup)

        ordered, stand_in_by_passage = _fill_ranking(reader, plan, graph, depth, search_passages)
        ordered = ordered[:depth]
        return PassageRanking(
            ordered[:top_k],
            *_NO_FEATURES,
            recalled=False,
            beyond=ordered[top_k:],
            stand_in_by_passage=stand_in_by_passage,
        )
    if plan.profile.by_features:
        return _rank_by_features(reader, plan, walk, prior, nearest_lookup, graph)
    bonuses = [_bonuses(hop, plan.profile.sentences_per_hop) for hop in walk.hops]
    touched = {passage for bonus in bonuses for passage in bonus}
    touched.update(sentence.passage_id for sentence in walk.evidence.values())

    def score_as_published(limit: int) -> list[tuple[int, float]]:
        near = passages_by_key.find_nearest_passages(reader, plan.focus, limit, touched, nearest_lookup(limit))
        similarities = {passage: key.similarity for passage, key in near.items()}
        scores = passage_scores.score_passages_published(similarities, bonuses, plan.profile.prior_weight)
        return passage_scores.select_best(scores, len(scores))

    ordered, stand_in_by_passage = _fill_ranking(reader, plan, graph, top_k, score_as_published)
    return PassageRanking(
        ordered[:top_k],
        *_NO_FEATURES,
        recalled=bool(walk.priors),
        beyond=ordered[top_k:],
        stand_in_by_passage=stand_in_by_passage,
    )


def _fill_ranking(
    reader: Reader,
    plan: QueryPlan,
    graph: CachedGraph,
    least: int,
    ranked: Callable[[int], list[tuple[int, float]]],
) -> tuple[list[tuple[int, float]], Mapping[int, int]]:
    """Rank passages without near-duplicates, at least ``least`` if there are so many.

    Args:
        ranked: gives passages with their scores, best first, for a number of nearest passages.

    Returns:
        (passage, score), best first, and left-out passage -> the passage that stands for it.
    """
    limit, before = least, -1
    while True:
        ranked_passages = ranked(limit)
        stand_in_by_passage = stand_ins(reader, plan, graph, [passage for passage, _ in ranked_passages])
        distinct = [pair for pair in ranked_passages if pair[0] not in stand_in_by_passage]
        if (
            not stand_in_by_passage
            or len(distinct) >= least
            or len(ranked_passages) <= before
            or limit >= MOST_NEAREST
        ):
            return distinct, stand_in_by_passage
        limit, before = 2 * limit, len(ranked_passages)


def _rank_by_features(
    reader: Reader,
    plan: QueryPlan,
    walk: Walk,
    prior: RankingPrior,
    nearest_lookup: NearestLookup,
    graph: CachedGraph,
) -> PassageRanking:
    """Rank candidates by the base ranking, then by complementarity reranking and the reranker; add recall last."""
    top_k = plan.query.top_k
    candidates, titles, base_features, stand_in_by_passage = _collect_distinct(
        reader, plan, walk, prior, nearest_lookup, graph
    )
    identities = list(prior.of_answers) if plan.focus.use_memory else []
    pool, learned = build_reranking_pool(
        reader, plan, walk, graph, candidates, titles, base_features @ prior.base_weights, identities
    )
    features = passage_scores.add_reranking_features(base_features, pool, prior.base_weights)
    believed = _compute_beliefs(prior, learned)
    scores_by_place = features @ prior.prior.mean
    reranked = _apply_reranker(plan, prior, candidates, features, believed)
    if reranked is not None:
        scores_by_place = scores_by_place + reranked.added
    order = np.lexsort((candidates.ids, -scores_by_place))
    pool = None if pool is None else pool.reorder(order)
    first_places = order[: sufficiency.EVIDENCE_PASSAGES]
    estimate = estimate_sufficiency(
        plan,
        walk,
        scores_by_place[order],
        features[order],
        replace(candidates.words, in_passages=candidates.words.in_passages[first_places]),
        pool,
        *believed[prior.of_sufficiency],
        prior.sufficiency_expected,
    )
    holders = {past.sentence_id: past.passage_id for past in walk.recalled}
    priors = collect_passage_probabilities(walk.priors, holders, stand_in_by_passage)
    if len(scores_by_place):
        recalled = np.array([priors.get(passage, 0.0) for passage in candidates.ids.tolist()])
        scores_by_place = scores_by_place + compute_recall_lifts(scores_by_place, recalled, walk.evidence_count)
    scores = dict(zip(candidates.ids.tolist(), scores_by_place.tolist(), strict=True))
    ordered = passage_scores.select_best(scores, len(scores))
    leading = {passage for passage, _ in ordered[: sufficiency.EVIDENCE_PASSAGES]}
    evidence = [
        replace(one, passage_id=stand_in_by_passage.get(one.passage_id, one.passage_id))
        for one in walk.evidence_known
    ]
    return PassageRanking(
        ordered[:top_k],
        candidates.ids[order],
        features[order],
        prior.prior.mean,
        recalled=bool(walk.priors),
        cosines=candidates.similarity[order],
        pool=pool,
        expanded=bool(plan.query.expansions),
        beyond=ordered[top_k:],
        sufficiency=replace(
            estimate, remembered=remembered_sufficiency.compute_remembered_sufficiency(evidence, leading)
        ),
        stand_in_by_passage=stand_in_by_passage,
        reranked=None if reranked is None else reranked.reorder(order),
        level=choose_level(reader, plan, prior, believed[prior.of_sufficiency][0])
        if plan.query.min_sufficiency == "auto"
        else None,
    )


def _apply_reranker(
    plan: QueryPlan,
    prior: RankingPrior,
    candidates: CandidatePassages,
    features: NDArray[np.float64],
    believed: Mapping[PriorIdentity, tuple[NDArray[np.float64], int]],
) -> RerankedScores | None:
    """Scores of a reranker for the candidates, weighed by the trust in it."""
    if not plan.reranked or prior.reranker is None or not len(candidates.ids):
        return None
    both = reranking.features(features @ prior.prior.mean, candidates.ids.tolist(), plan.reranked)
    weights, _ = believed[prior.of_reranker]
    return RerankedScores(prior.reranker_name, both, float(weights[1]))


def _collect_distinct(
    reader: Reader,
    plan: QueryPlan,
    walk: Walk,
    prior: RankingPrior,
    nearest_lookup: NearestLookup,
    graph: CachedGraph,
) -> tuple[CandidatePassages, Sequence[Sequence[str]], NDArray[np.float64], Mapping[int, int]]:
    """Collect candidates without near-duplicates. Look for more passages where few of the nearest are distinct.

    Returns:
        The candidates, the names in their titles, their base features, (n, len(BASE_FEATURES)), and left-out
        passage -> the passage that stands for it.
    """
    limit, before = max(plan.query.top_k, plan.profile.ranked_passages), -1
    while True:
        candidates = _candidates(reader, plan, walk, nearest_lookup, limit)
        titles = [_names(title) for title in candidates.titles]
        base_features = _compute_base_features(reader, plan, walk, candidates, titles)
        ordered = candidates.ids[np.lexsort((candidates.ids, -(base_features @ prior.base_weights)))].tolist()
        stand_in_by_passage = stand_ins(reader, plan, graph, ordered)
        if not stand_in_by_passage:
            return candidates, titles, base_features, stand_in_by_passage
        distinct = len(ordered) - len(stand_in_by_passage)
        if distinct >= plan.query.top_k + SPARE_PASSAGES or len(ordered) <= before or limit >= MOST_NEAREST:
            break
        limit, before = 2 * limit, len(ordered)
    candidates = candidates.exclude(stand_in_by_passage)
    titles = [_names(title) for title in candidates.titles]
    return (
        candidates,
        titles,
        _compute_base_features(reader, plan, walk, candidates, titles, stand_in_by_passage),
        stand_in_by_passage,
    )


def _candidates(
    reader: Reader, plan: QueryPlan, walk: Walk, nearest_lookup: NearestLookup, limit: int
) -> CandidatePassages:
    """Collect the candidates: those the walk reached, and ``limit`` nearest by each key."""
    touched = {sentence.passage_id for sentence in walk.evidence.values()}
    for hop in walk.hops:
        touched.update(hop.candidates.passage_ids[hop.order[: plan.profile.ranked_sentences]].tolist())
    if plan.focus.gaps:
        searches = [passages_by_key.Search(gap, GAP_PASSAGES, plan.query.filter) for gap in plan.focus.gaps]
        for found_in in passages_by_key.find_nearest_to_each(reader, plan.collection, searches, plan.focus.limits):
            touched.update(found_in)
    near = walk.near or nearest_lookup(limit) or ()
    return passage_candidates.find(reader, plan.focus, plan.terms, limit, sorted(touched), near)


@lru_cache(maxsize=TITLES)
def _names(title: str | None) -> Sequence[str]:
    """The normalised names that a title stands for."""
    return tuple(normalise_entity(name) for name in title_entities(title))


def _compute_base_features(
    reader: Reader,
    plan: QueryPlan,
    walk: Walk,
    candidates: CandidatePassages,
    titles: Sequence[Sequence[str]],
    stand_in_by_passage: Mapping[int, int] | None = None,
) -> NDArray[np.float64]:
    """Compute the features of the base ranking, those of each candidate by itself, (n, len(BASE_FEATURES)).

    Args:
        stand_in_by_passage: left-out passage -> the passage that stands for it.
    """
    length = max(sum(plan.terms.values()) * plan.reading_share, 1)
    ids = candidates.ids.tolist()
    called: dict[str, list[int]] = {}
    for passage, names in zip(ids, titles, strict=True):
        for name in names:
            called.setdefault(name, []).append(passage)
    title_similarity, best_sentence = None, None
    if plan.collection.corpus_kind == "general" and ids:
        title_names = [names[0] if names else None for names in titles]
        likeness = passage_likeness.measure(reader, plan.focus, candidates.ids, title_names)
        titled = rescale_cosines(np.maximum(likeness.titles, candidates.similarity), plan.unrelated_cosine)
        title_similarity = dict(zip(ids, titled.tolist(), strict=True))
        sentences = rescale_cosines(likeness.sentences, plan.unrelated_cosine)
        best_sentence = dict(zip(ids, sentences.tolist(), strict=True))
    _, features = passage_scores.passage_features(
        dict(zip(ids, rescale_cosines(candidates.similarity, plan.unrelated_cosine).tolist(), strict=True)),
        dict(zip(ids, (candidates.word_scores / length).tolist(), strict=True)),
        passages_by_key.find_timely_passages(reader, plan.focus, ids),
        [
            merge_duplicates(_reach(hop, called, plan.unrelated_cosine), stand_in_by_passage or {})
            for hop in walk.hops
        ],
        title_similarity=title_similarity,
        best_sentence=best_sentence,
    )
    return features


def _compute_beliefs(
    prior: RankingPrior, learned: Mapping[PriorIdentity, LearnedWeights]
) -> dict[PriorIdentity, tuple[NDArray[np.float64], int]]:
    """Return for each belief the mean weights, (k,), and the number of verdicts in them."""
    return {
        of: (compute_mean(of.model, began, learned[of].evidence), learned[of].events)
        if of in learned
        else (began.mean, 0)
        for of, began in prior.of_answers.items()
    }


def _bonuses(hop: WalkHop, most: int) -> dict[int, float]:
    """Passage -> summed score of its ranking sentences (Eq. 7)."""
    chosen = hop.order[:most]
    return propagation.passage_bonuses(hop.scores[chosen], hop.candidates.passage_ids[chosen])


def _reach(hop: WalkHop, called: Mapping[str, Sequence[int]], unrelated: float) -> HopReach:
    """Return a hop's result with passages titled after the entities it started from.

    Args:
        called: normalised name -> the passages titled after it.
        unrelated: cosine of unrelated texts, see ``cosine_scale``.
    """
    highest = max(hop.start.activation.values(), default=0.0)
    title_activation: dict[int, float] = {}
    for entity, activation in hop.start.activation.items():
        share = activation / highest if highest > 0 else 0.0
        for passage in called.get(normalise_entity(hop.start.names[entity]), ()):
            title_activation[passage] = max(title_activation.get(passage, 0.0), share)
    return HopReach(
        passage_ids=hop.candidates.passage_ids[hop.order],
        semantic=rescale_cosines(hop.candidates.semantic[hop.order], unrelated),
        scores=hop.scores[hop.order],
        title_activation=title_activation,
    )
