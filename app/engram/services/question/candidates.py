"""Step 6: collect the passages to rank: those of the walk, and those whose keys are near to the question."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import duplicates, fusion, passage_scores
from engram.core.ranking.cosine_scale import rescale_cosines
from engram.core.ranking.duplicates import merge_duplicates
from engram.core.ranking.passage_scores import HopReach
from engram.providers.language import normalise_entity, title_entities
from engram.services.question.caches import NearestLookup
from engram.services.question.plan import Search
from engram.services.question.query import Strategy
from engram.services.question.walk import Walk, WalkHop
from engram.storage.corpus import lexical_index, passages
from engram.storage.database import Reader
from engram.storage.question import passage_candidates, passages_by_key
from engram.storage.question.passage_candidates import CandidatePassages
from engram.storage.question.query_focus import Focus

TITLES = 20_000
"""Titles whose names a process caches."""
MOST_NEAREST = 1_000
"""Most nearest passages that a search reads to fill the places of duplicates."""
COMPARED_PASSAGES = 100
"""Passages that are compared at first, best first; their terms decide whose texts are read."""
SPARE_PASSAGES = 20
"""Distinct passages beyond ``top_k`` that are to be among those compared."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Passages that features rank, without near-duplicates.

    Attributes:
        titles: of each passage the normalised names that its title stands for.
        features: of the base ranking, (n, len(BASE_FEATURES)).
        stand_in_by_passage: left-out passage -> the passage with nearly its text that stands for it.
    """

    passages: CandidatePassages
    titles: Sequence[Sequence[str]]
    features: NDArray[np.float64]
    stand_in_by_passage: Mapping[int, int]


def collect_candidates(search: Search, walk: Walk) -> Candidates:
    """Collect candidates without near-duplicates. Look for more passages where few of the nearest are distinct."""
    plan = search.plan
    limit = max(plan.query.top_k, plan.profile.ranked_passages)
    while True:
        pool = _find_candidates(search, walk, limit)
        titles = [_names(title) for title in pool.titles]
        plain = _compute_plain_features(search, pool, titles)
        base_features = _compute_base_features(search, walk, pool.ids, titles, plain)
        ordered = pool.ids[np.lexsort((pool.ids, -(base_features @ search.prior.base_weights)))].tolist()
        stand_in_by_passage = _find_stand_ins(search, ordered)
        if not stand_in_by_passage:
            return Candidates(pool, titles, base_features, stand_in_by_passage)
        distinct = len(ordered) - len(stand_in_by_passage)
        if distinct >= plan.query.top_k + SPARE_PASSAGES or len(ordered) < limit or limit >= MOST_NEAREST:
            break
        limit *= 2
    mask = ~np.isin(pool.ids, list(stand_in_by_passage))
    pool, titles = pool.select(mask), [titles[at] for at in np.flatnonzero(mask).tolist()]
    base_features = _compute_base_features(search, walk, pool.ids, titles, plain[mask], stand_in_by_passage)
    return Candidates(pool, titles, base_features, stand_in_by_passage)


def _find_candidates(search: Search, walk: Walk, limit: int) -> CandidatePassages:
    """Find the candidates: those the walk reached, and ``limit`` nearest by each key."""
    reader, plan = search.reader, search.plan
    touched = {sentence.passage_id for sentence in walk.evidence.values()}
    for hop in walk.hops:
        touched.update(hop.candidates.passage_ids[hop.order[: plan.profile.ranked_sentences]].tolist())
    near = walk.near or search.keys(limit) or ()
    return passage_candidates.find(reader, plan.focus, plan.terms, limit, sorted(touched), near)


@lru_cache(maxsize=TITLES)
def _names(title: str | None) -> Sequence[str]:
    """The normalised names that a title stands for."""
    return tuple(normalise_entity(name) for name in title_entities(title))


def _compute_plain_features(
    search: Search, candidates: CandidatePassages, titles: Sequence[Sequence[str]]
) -> NDArray[np.float64]:
    """Compute the features of the base ranking that hops do not change, (n, len(PLAIN_FEATURES))."""
    reader, plan = search.reader, search.plan
    length = max(sum(plan.terms.values()) * plan.reading_share, 1)
    plain = np.zeros((len(candidates.ids), len(passage_scores.PLAIN_FEATURES)))
    plain[:, 0] = rescale_cosines(candidates.similarity, plan.unrelated_cosine)
    plain[:, 1] = candidates.word_scores / length
    timely = passages_by_key.find_timely_passages(reader, plan.focus, candidates.ids.tolist())
    plain[:, 2] = passage_scores.gather_values(candidates.ids, timely)
    if plan.collection.corpus_kind == "general" and len(candidates.ids):
        title_names = [names[0] if names else None for names in titles]
        likeness = passage_candidates.measure_likeness(reader, plan.focus, candidates.ids, title_names)
        best = np.maximum(likeness.titles, candidates.similarity)
        plain[:, 3] = rescale_cosines(best, plan.unrelated_cosine)
        plain[:, 4] = rescale_cosines(likeness.sentences, plan.unrelated_cosine)
    return plain


def _compute_base_features(
    search: Search,
    walk: Walk,
    passages: NDArray[np.int64],
    titles: Sequence[Sequence[str]],
    plain: NDArray[np.float64],
    stand_in_by_passage: Mapping[int, int] | None = None,
) -> NDArray[np.float64]:
    """Compute the features of the base ranking, those of each candidate by itself, (n, len(BASE_FEATURES)).

    Args:
        plain: of the candidates, (n, len(PLAIN_FEATURES)).
        stand_in_by_passage: left-out passage -> the passage that stands for it.
    """
    called: dict[str, list[int]] = {}
    for passage, names in zip(passages.tolist(), titles, strict=True):
        for name in names:
            called.setdefault(name, []).append(passage)
    reaches = [_reach(hop, called, search.plan.unrelated_cosine) for hop in walk.hops]
    return passage_scores.passage_features(
        passages, plain, [merge_duplicates(reach, stand_in_by_passage or {}) for reach in reaches]
    )


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


def search_by_keys(
    reader: Reader,
    focus: Focus,
    strategy: Strategy,
    terms: Mapping[str, float],
    limit: int,
    nearest_lookup: NearestLookup = lambda count: None,
) -> list[tuple[int, float]]:
    """Passage and score of the ``limit`` passages whose keys are most like the question, best first.

    A score is a cosine if dense, a BM25 score if lexical, a sum of reciprocal ranks if hybrid.

    Args:
        terms: what the question is matched by word for word: term -> weight > 0.
        nearest_lookup: tells which passages are nearest, where the process knows them; by default it does not.
    """
    match strategy:
        case "dense":
            return list(_search_by_vector(reader, focus, limit, nearest_lookup).items())
        case "lexical":
            return list(search_by_words(reader, focus, terms, limit).items())
        case "hybrid":
            depth = max(fusion.DEPTH, limit)
            near = _search_by_vector(reader, focus, depth, nearest_lookup)
            matching = search_by_words(reader, focus, terms, depth)
            return passage_scores.select_best(fusion.reciprocal_rank_fusion([list(near), list(matching)]), limit)
        case "graph":
            raise ValueError("the graph is walked, not searched")


def search_by_words(reader: Reader, focus: Focus, terms: Mapping[str, float], limit: int) -> dict[int, float]:
    """The ``limit`` passages with the highest BM25 score, passage -> score, best first."""
    if not terms:
        return {}
    statement = passage_candidates.build_word_search(focus)
    return lexical_index.search(
        reader, focus.collection, terms, limit, statement, evolved=focus.evolved, **focus.condition_values
    )


def _search_by_vector(reader: Reader, focus: Focus, limit: int, nearest_lookup: NearestLookup) -> dict[int, float]:
    nearest = passages_by_key.find_nearest_passages(reader, focus, limit, known=nearest_lookup(limit))
    return {passage: key.similarity for passage, key in nearest.items()}


def rank_distinct(
    search: Search, least: int, ranked: Callable[[int], list[tuple[int, float]]]
) -> tuple[list[tuple[int, float]], Mapping[int, int]]:
    """Rank passages without near-duplicates, at least ``least`` if there are so many.

    Args:
        ranked: gives passages with their scores, best first, for a number of nearest passages.

    Returns:
        (passage, score), best first, and left-out passage -> the passage that stands for it.
    """
    limit = least
    while True:
        ranked_passages = ranked(limit)
        stand_in_by_passage = _find_stand_ins(search, [passage for passage, _ in ranked_passages])
        distinct = [pair for pair in ranked_passages if pair[0] not in stand_in_by_passage]
        if (
            not stand_in_by_passage
            or len(distinct) >= least
            or len(ranked_passages) < limit
            or limit >= MOST_NEAREST
        ):
            return distinct, stand_in_by_passage
        limit *= 2


def _find_stand_ins(search: Search, ordered: Sequence[int]) -> dict[int, int]:
    """Duplicate -> the better passage that stands for it, among the first of those given.

    More of them are compared until ``top_k`` and some more are distinct.

    Args:
        ordered: passages, best first.
    """
    plan = search.plan
    if not plan.collapses or len(ordered) < 2:
        return {}
    size = max(COMPARED_PASSAGES, 2 * plan.query.top_k)
    while True:
        stand_in_by_passage = _find_duplicates(search, ordered[:size])
        if size >= len(ordered) or size - len(stand_in_by_passage) >= plan.query.top_k + SPARE_PASSAGES:
            return stand_in_by_passage
        size *= 2


def _find_duplicates(search: Search, ordered: Sequence[int]) -> dict[int, int]:
    reader, collection_id = search.reader, search.plan.collection.id
    pairs = duplicates.find_similar_pairs(search.graph.read_terms(reader, ordered))
    if not pairs:
        return {}
    stored = passages.load_by_id(reader, collection_id, sorted({passage for pair in pairs for passage in pair}))
    texts = {passage: f"{row.title or ''}\n{row.text}" for passage, row in stored.items()}
    return duplicates.stand_ins(ordered, pairs, texts)
