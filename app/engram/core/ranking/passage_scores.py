"""From sentence evidence to a passage ranking by weighted features.

Base features say what each passage is by itself, those of ``complementarity`` what it adds to others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import complementarity
from engram.core.ranking.complementarity import CandidatePool

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

FEATURE_HOPS = 3
"""Hops with features of their own; what later ones reach counts with the last of them."""
HOP_FEATURES = ("evidence", "rank", "share", "titled", "titled_similarity")
NO_TITLE_MATCH_FEATURES = ("similarity", "lexical", "evidence_1", "rank_1")
PLAIN_FEATURES = ("similarity", "lexical", "timely", "title_similarity", "best_sentence")
BASE_FEATURES = (
    *PLAIN_FEATURES,
    *(f"{name}_{hop}" for hop in range(1, FEATURE_HOPS + 1) for name in HOP_FEATURES),
    *(f"{name}_untitled" for name in NO_TITLE_MATCH_FEATURES),
)
"""What a passage is by itself.

- similarity: cosine of passage and question.
- lexical: BM25 score over the number of the question's terms, so that long questions do not count for more.
- timely: agreement of the days that it names with those that the question names, in [0, 1].
- title_similarity: cosine of the question and its title, or ``similarity`` if that is more; 0 in encyclopedias.
- best_sentence: cosine of the question and its best sentence, reached or not; 0 in encyclopedias.
- evidence: cosine of the question and the passage's best sentence that the hop reached; 0 if it reached none.
- rank: reciprocal rank of its best sentence among all that the hop reached.
- share: score of its best sentence, divided by the best score of the hop.
- titled: activation of the entity that its title names, divided by the highest of the hop.
- titled_similarity: the product of titled and similarity.
- NAME_untitled: the feature again if no candidate of the query is titled after an entity of the question, else 0.
"""
PASSAGE_FEATURES = (*BASE_FEATURES, *complementarity.COMPLEMENTARITY_FEATURES)
"""Columns of a feature matrix."""


@dataclass(frozen=True, slots=True)
class HopReach:
    """Sentences that one hop reached, best first; all arrays are (n,).

    Attributes:
        passage_ids: the passage that holds each.
        semantic: cosine of sentence and question, in [-1, 1].
        scores: of Eq. 6, none below 0, in falling order.
        title_activation: passage whose title names an activated entity -> the entity's activation over the hop's
            highest, in [0, 1].
    """

    passage_ids: Ids
    semantic: Floats
    scores: Floats
    title_activation: Mapping[int, float]


def passage_features(passages: Ids, plain: Floats, hops: Sequence[HopReach]) -> Floats:
    """Base features of passages, (n, k), in the order of ``BASE_FEATURES``.

    Args:
        passages: ids in ascending order, (n,).
        plain: what hops do not change, (n, len(PLAIN_FEATURES)).
        hops: in order.
    """
    features = np.zeros((len(passages), len(BASE_FEATURES)))
    features[:, : len(PLAIN_FEATURES)] = plain
    for number, hop in enumerate(hops):
        start = BASE_FEATURES.index("evidence_1") + len(HOP_FEATURES) * min(number, FEATURE_HOPS - 1)
        block = features[:, start : start + len(HOP_FEATURES)]
        np.maximum(block, _hop_features(passages, features[:, 0], hop), out=block)
    if not features[:, BASE_FEATURES.index("titled_1")].any():
        features[:, -len(NO_TITLE_MATCH_FEATURES) :] = features[
            :, [BASE_FEATURES.index(name) for name in NO_TITLE_MATCH_FEATURES]
        ]
    return features


def has_title_match(features: NDArray[np.floating]) -> bool:
    """Whether any candidate is titled after an entity of the question, by the features of one of them, (k,)."""
    untitled = [BASE_FEATURES.index(f"{name}_untitled") for name in NO_TITLE_MATCH_FEATURES]
    return not features[untitled].any()


def add_complementarity(base: Floats, pool: CandidatePool | None, weights: Floats) -> Floats:
    """All features, (n, len(PASSAGE_FEATURES)), of candidates with these base features, (n, k).

    Args:
        pool: their pool; without one the added features are 0.
        weights: of the base features, (len(BASE_FEATURES),).
    """
    if pool is None:
        return np.column_stack([base, np.zeros((len(base), len(complementarity.COMPLEMENTARITY_FEATURES)))])
    return np.column_stack(
        [
            base,
            complementarity.compute_complementarity(
                pool, complementarity.compute_evidence_probabilities(base @ weights)
            ),
        ]
    )


def _hop_features(passages: Ids, similarity: Floats, hop: HopReach) -> Floats:
    """Return the features of one hop for each passage, (n, len(HOP_FEATURES)), in the order of ``HOP_FEATURES``.

    Args:
        passages: ids in ascending order, (n,).
        similarity: cosine of each passage and the question, (n,).
    """
    features = np.zeros((len(passages), len(HOP_FEATURES)))
    rows, is_candidate = find_rows(passages, hop.passage_ids)
    best = hop.scores.max(initial=0.0)
    sentence_values = {
        "evidence": hop.semantic,
        "rank": 1.0 / np.arange(1, len(hop.scores) + 1),
        "share": hop.scores / best if best > 0 else hop.scores,
    }
    for name, values in sentence_values.items():
        column = features[:, HOP_FEATURES.index(name)]
        np.maximum.at(column, rows, values[is_candidate])
    activation = gather_values(passages, hop.title_activation)
    features[:, HOP_FEATURES.index("titled")] = activation
    features[:, HOP_FEATURES.index("titled_similarity")] = activation * similarity
    return features


def gather_values(passages: Ids, values: Mapping[int, float]) -> Floats:
    """Gather the value of each passage, (n,); 0 for one that has none.

    Args:
        passages: ids in ascending order, (n,).
    """
    gathered = np.zeros(len(passages))
    rows, is_candidate = find_rows(passages, np.array(list(values)))
    gathered[rows] = np.array(list(values.values()))[is_candidate]
    return gathered


def find_rows(ids: Ids, sought: Ids) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Find the rows of those sought ids that are there, (m,), and say which these are, (n,).

    Args:
        ids: in ascending order.
    """
    rows = np.searchsorted(ids, sought)
    is_found = rows < len(ids)
    is_found[is_found] = ids[rows[is_found]] == sought[is_found]
    return rows[is_found], is_found


def select_best(scores: Mapping[int, float], limit: int) -> list[tuple[int, float]]:
    """The ``limit`` highest scores, best first; equal scores in id order."""
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:limit]
