"""The factors of a passage's score: every feature with its weight, and which passage of the pool it completes."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from engram.core.ranking.complementarity import PAIR_FEATURES, find_best_partner
from engram.core.ranking.passage_scores import PASSAGE_FEATURES
from engram.core.ranking.reranking import FEATURE
from engram.core.ranking.version_order import HALVING
from engram.services.question.search import RetrievalResult
from engram.services.question.trace import FeatureTrace

_FIRST_PAIR_FEATURE = PASSAGE_FEATURES.index(PAIR_FEATURES[0])
_STANDING = PASSAGE_FEATURES.index("standing")


@dataclass(frozen=True, slots=True)
class Factors:
    """Factors of one passage: see ``PassageTrace``."""

    features: dict[str, FeatureTrace]
    completes: str | None
    completes_id: int | None


UNKNOWN_FACTORS = Factors({}, None, None)


def factors(retrieved: RetrievalResult) -> dict[int, Factors]:
    """Passage shown -> the factors of its score; none where features do not rank."""
    ranking = retrieved.ranking
    place = {passage: at for at, passage in enumerate(ranking.candidates.tolist())}
    completes = np.full(len(place), -1)
    if ranking.pool is not None:
        links = ranking.weights[_FIRST_PAIR_FEATURE : _FIRST_PAIR_FEATURE + len(PAIR_FEATURES)]
        completes = find_best_partner(ranking.pool, ranking.features[:, _STANDING], links)
    by_passage = {}
    for passage, _, _ in retrieved.shown_passages:
        if passage in place:
            at = place[passage]
            values: Iterable[tuple[str, float, float]] = zip(
                PASSAGE_FEATURES, ranking.features[at].tolist(), ranking.weights.tolist(), strict=True
            )
            if ranking.reranked is not None:
                odds = float(ranking.reranked.log_odds[at])
                values = chain(values, [(FEATURE, odds, ranking.reranked.trust)])
            age = ranking.age_terms.get(passage, 0.0)
            values = chain(values, [("age", age / HALVING, HALVING)])
            member = retrieved.passages.get(ranking.pooled[completes[at]]) if completes[at] >= 0 else None
            by_passage[passage] = Factors(
                {name: FeatureTrace(value, weight) for name, value, weight in values if value},
                None if member is None else member.external_id,
                None if member is None else member.id,
            )
    return by_passage
