"""Scores of passages under other memories or recall probabilities."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import propagation
from engram.core.ranking.cosine_scale import rescale_cosines
from engram.core.ranking.duplicates import merge_duplicates
from engram.core.ranking.passage_scores import HopReach
from engram.core.ranking.question_memory import collect_passage_probabilities, compute_recall_lifts, select_likely
from engram.services.question.search import RetrievalResult
from engram.services.question.walk import WalkHop
from engram.wings.why.core import influence
from engram.wings.why.storage.influence_rows import SentencePlace

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class PastJudgements:
    """The judgements on past questions as they concern the present one.

    Attributes:
        recall_probabilities: sentence -> recall probability, in [0, 1].
        rejection_probabilities: passage -> probability that it is no evidence, in [0, 1].
    """

    recall_probabilities: Mapping[int, float]
    rejection_probabilities: Mapping[int, float]


class Scoring(Protocol):
    """Ranking of passages. Results are of its ``m`` ``passages``."""

    @property
    def passages(self) -> Sequence[int]: ...

    def passage_features(self, scores: Sequence[Floats], probabilities: Mapping[int, float]) -> Floats:
        """Return the features of passages by sentences with these scores, by hop, and recall probabilities."""
        ...

    def compute_scores(self, features: Floats, past: PastJudgements) -> Floats:
        """Return the scores, (m,), with these past judgements."""
        ...

    def compute_recall(self, features: Floats, past: PastJudgements) -> Floats:
        """Return what recall adds to the scores, (m,)."""
        ...


class FeatureScoring:
    """Passages ranked by their features: those shown, and candidates that judges rejected.

    Args:
        placed: sentences that could be recalled.
        base_weights: of the base features.
    """

    def __init__(self, retrieved: RetrievalResult, placed: Mapping[int, SentencePlace], first: Floats) -> None:
        self._first = first
        place = {passage: index for index, passage in enumerate(retrieved.ranking.candidates.tolist())}
        concerned = [passage for passage, _, _ in retrieved.shown_passages] + [*retrieved.walk.recall.rejections]
        self.passages = [passage for passage in dict.fromkeys(concerned) if passage in place]
        self._rows = np.array([place[passage] for passage in self.passages], dtype=np.intp)
        self._retrieved = retrieved
        reranked = retrieved.ranking.reranked
        self._reranked = 0.0 if reranked is None else reranked.added
        self._placed = placed
        self._stand_in_by_passage = retrieved.ranking.stand_in_by_passage
        self._holders = {sentence: evidence.passage_id for sentence, evidence in retrieved.walk.evidence.items()}
        self._holders |= {sentence: sentence_place.passage_id for sentence, sentence_place in placed.items()}

    def passage_features(self, scores: Sequence[Floats], probabilities: Mapping[int, float]) -> Floats:
        """Features of all candidates, (n, k)."""
        hops = self._retrieved.walk.hops
        unrelated = self._retrieved.plan.unrelated_cosine
        reaches = [_reach(hop, values, unrelated) for hop, values in zip(hops, scores, strict=True)]
        if hops and hops[0].start.activation:
            reaches[0] = self._reach_recalled(hops[0], scores[0], probabilities)
        reaches = [merge_duplicates(reach, self._stand_in_by_passage) for reach in reaches]
        ranked = self._retrieved.ranking
        return influence.compute_features(ranked.features, ranked.candidates, reaches, ranked.pool, self._first)

    def compute_scores(self, features: Floats, past: PastJudgements) -> Floats:
        """Return the scores, (m,), with these past judgements."""
        values = self._compute_values(features)
        return (values + self._lift(values, past))[self._rows]

    def compute_recall(self, features: Floats, past: PastJudgements) -> Floats:
        """Return what recall adds to the scores, (m,)."""
        return self._lift(self._compute_values(features), past)[self._rows]

    def _reach_recalled(self, hop: WalkHop, scores: Floats, probabilities: Mapping[int, float]) -> HopReach:
        """Return a hop's result where sentences without a link are reached only by recall."""
        rows, leading = hop.candidates, select_likely(probabilities)
        reached = (rows.activation > 0) | np.isin(rows.sentence_ids, list(leading))
        more = [
            self._placed[s] for s in sorted(leading.keys() - set(rows.sentence_ids.tolist())) if s in self._placed
        ]
        ids = np.append(rows.sentence_ids[reached], np.array([new.sentence_id for new in more], dtype=np.int64))
        passages = np.append(rows.passage_ids[reached], np.array([new.passage_id for new in more], dtype=np.int64))
        semantic = np.append(rows.semantic[reached], [new.similarity for new in more])
        semantic = rescale_cosines(semantic, self._retrieved.plan.unrelated_cosine)
        values = np.append(scores[reached], np.zeros(len(more)))
        order = propagation.select_strongest(values, ids, len(ids))
        return HopReach(passages[order], semantic[order], values[order], {})

    def _compute_values(self, features: Floats) -> Floats:
        """Return the score of each candidate before recall, (n,)."""
        return np.asarray(features @ self._retrieved.ranking.weights + self._reranked)

    def _lift(self, values: Floats, past: PastJudgements) -> Floats:
        """Return what recall and rejections add to the score of each candidate, (n,)."""
        of_passages = collect_passage_probabilities(
            past.recall_probabilities, self._holders, self._stand_in_by_passage
        )
        candidates = self._retrieved.ranking.candidates.tolist()
        recalled, rejected = (
            np.array([of_each.get(passage, 0.0) for passage in candidates])
            for of_each in (of_passages, past.rejection_probabilities)
        )
        return compute_recall_lifts(values, recalled, self._retrieved.walk.recall.evidence_count, rejected)


class RetrieverScoring:
    """Passages that no features rank, of which verdicts move what sentences add."""

    def __init__(self, retrieved: RetrievalResult) -> None:
        self.passages = [passage for passage, _, _ in retrieved.shown_passages]
        self._retrieved = retrieved

    def passage_features(self, scores: Sequence[Floats], probabilities: Mapping[int, float]) -> Floats:
        """Return what sentences add to the shown passages, (m,)."""
        retriever = self._retrieved.plan.retriever
        hops = [hop.candidates for hop in self._retrieved.walk.hops]
        added = {} if retriever is None else retriever.score_passages({}, list(zip(hops, scores, strict=True)))
        return np.array([added.get(passage, 0.0) for passage in self.passages])

    def compute_scores(self, features: Floats, past: PastJudgements) -> Floats:
        """Return the features as they are: this profile has neither weights nor recall."""
        return features

    def compute_recall(self, features: Floats, past: PastJudgements) -> Floats:
        """Return zeros: this profile has no recall."""
        return np.zeros(len(self.passages))


def _reach(hop: WalkHop, scores: Floats, unrelated: float) -> HopReach:
    """Return a hop's result under these scores."""
    rows = hop.candidates
    order = propagation.select_strongest(scores, rows.sentence_ids, len(rows))
    return HopReach(rows.passage_ids[order], rescale_cosines(rows.semantic[order], unrelated), scores[order], {})
