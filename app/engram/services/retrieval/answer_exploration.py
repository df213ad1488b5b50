"""Letting a query explore: its last positions to passages from beyond the cut, each with a sentence to judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from engram.core.experiments.exploration import draw, room, weights
from engram.services.retrieval.answer import PassageAnswer, SentenceAnswer
from engram.services.retrieval.graph_walk import Walk
from engram.services.retrieval.passage_ranking import RECORDED_CANDIDATES, PassageRanking
from engram.services.retrieval.query_plan import QueryPlan
from engram.storage.corpus.passages import StoredSentence
from engram.storage.database import Reader
from engram.storage.retrieval import exploration_candidates

DEPTH = 50
"""Candidates below the cut that a draw is made from."""


@dataclass(frozen=True, slots=True)
class ExploredAnswer:
    """Passages that an answer shows.

    Attributes:
        best: passage and score, in order.
        passages: those of them that exploration put there, each with its sentence nearest to the question.
        displaced: passages that made room.
        withheld: whether nothing is shown, because it is too likely not enough.
    """

    best: Sequence[tuple[int, float]]
    passages: Mapping[int, StoredSentence] = field(default_factory=dict)
    displaced: frozenset[int] = frozenset()
    withheld: bool = False

    def mark_exploration(self, passage: int, hit: PassageAnswer) -> PassageAnswer:
        """The hit as it is answered: an explored one is marked, and shows at least its nearest sentence."""
        nearest = self.passages.get(passage)
        if nearest is None:
            return hit
        sentences = list(hit.sentences)
        if all(sentence.sentence_id != nearest.id for sentence in sentences):
            sentences.append(SentenceAnswer(nearest.id, nearest.position, nearest.text, None, []))
        return replace(hit, sentences=sorted(sentences, key=lambda row: row.position), explored=True)

    def list_activated(self, walk: Walk, ranking: PassageRanking) -> list[int]:
        """The sentences that a verdict rejects if it does not name them.

        None of a passage that chance put into the answer or took out of it: nobody expected the one to help, and
        nobody saw the other. None of a duplicate that was left out either, and none at all of what was withheld.
        """
        if self.withheld:
            return []
        spared = {*self.passages, *self.displaced, *ranking.stand_in_by_passage}
        return [sentence for sentence, selected in walk.evidence.items() if selected.passage_id not in spared]

    def select_recorded(self, ranking: PassageRanking) -> NDArray[np.intp]:
        """Positions of the candidates that an episode keeps: the best and the explored, not those nobody saw."""
        candidates = ranking.candidates
        is_recorded = np.arange(len(candidates)) < RECORDED_CANDIDATES
        is_recorded |= np.isin(candidates, list(self.passages))
        is_recorded &= ~np.isin(candidates, list(self.displaced))
        return np.flatnonzero(is_recorded)


def depth(plan: QueryPlan) -> int:
    """Count the passages a plain search must find: those to show, and those to draw from if the query explores."""
    return plan.query.top_k + (0 if plan.query.exploring is None else DEPTH)


def explore(reader: Reader, plan: QueryPlan, ranking: PassageRanking) -> ExploredAnswer:
    """Select the passages to show: the best, unless the query explores and there is a candidate for it.

    Nothing if the query wants an answer that is enough and it is too likely not.
    """
    exploring, focus = plan.query.exploring, plan.focus
    least, enough = plan.query.min_sufficiency, ranking.sufficiency
    if least == "auto":
        least = None if ranking.level is None else ranking.level.value
    if least is not None and enough is not None and enough.probability < least:
        return ExploredAnswer([], withheld=True)
    if exploring is None:
        return ExploredAnswer(ranking.best)
    slots = room(exploring.slots, plan.query.top_k, len(ranking.best))
    beyond = ranking.beyond[:DEPTH]
    if not slots or not beyond:
        return ExploredAnswer(ranking.best)
    touched = exploration_candidates.touches(reader, focus.collection.id, [passage for passage, _ in beyond])
    evidence = np.array([touched.get(passage, 0) for passage, _ in beyond], dtype=np.int64)
    drawn = [beyond[at] for at in draw(weights(evidence), slots, exploring.entropy)]
    ids = [passage for passage, _ in drawn]
    nearest = exploration_candidates.find_nearest_sentences(reader, focus.collection.id, focus.vector, ids)
    drawn = [(passage, score) for passage, score in drawn if passage in nearest]
    kept_count = len(ranking.best) - len(drawn)
    displaced = frozenset(passage for passage, _ in ranking.best[kept_count:])
    return ExploredAnswer([*ranking.best[:kept_count], *drawn], nearest, displaced)
