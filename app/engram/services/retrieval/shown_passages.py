"""Passages that an answer shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from engram.services.retrieval.answer import PassageAnswer, SentenceAnswer
from engram.services.retrieval.graph_walk import Walk
from engram.services.retrieval.passage_ranking import RECORDED_CANDIDATES, PassageRanking
from engram.services.retrieval.query_plan import QueryPlan
from engram.storage.corpus.passages import StoredSentence


@dataclass(frozen=True, slots=True)
class ShownPassages:
    """Passages that an answer shows.

    Attributes:
        best: passage and score, in order.
        explored: those of them that exploration put there, each with its sentence nearest to the question.
        displaced: passages that made room.
        withheld: whether nothing is shown, because it is too likely not enough.
    """

    best: Sequence[tuple[int, float]]
    explored: Mapping[int, StoredSentence] = field(default_factory=dict)
    displaced: frozenset[int] = frozenset()
    withheld: bool = False

    def mark_exploration(self, passage: int, hit: PassageAnswer) -> PassageAnswer:
        """The hit as it is answered: an explored one is marked, and shows at least its nearest sentence."""
        nearest = self.explored.get(passage)
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
        spared = {*self.explored, *self.displaced, *ranking.stand_in_by_passage}
        return [sentence for sentence, selected in walk.evidence.items() if selected.passage_id not in spared]

    def select_recorded(self, ranking: PassageRanking) -> NDArray[np.intp]:
        """Positions of the candidates that an episode keeps: the best and the explored, not those nobody saw."""
        candidates = ranking.candidates
        is_recorded = np.arange(len(candidates)) < RECORDED_CANDIDATES
        is_recorded |= np.isin(candidates, list(self.explored))
        is_recorded &= ~np.isin(candidates, list(self.displaced))
        return np.flatnonzero(is_recorded)


def depth(plan: QueryPlan) -> int:
    """Count the passages a plain search must find: those to show, and those to draw from if the query explores."""
    return plan.query.top_k + (0 if plan.query.exploring is None else plan.query.exploring.depth)


def choose_best(plan: QueryPlan, ranking: PassageRanking) -> ShownPassages:
    """Show the best passages, or nothing if the query wants an answer that is enough and it is too likely not."""
    least, enough = plan.query.min_sufficiency, ranking.sufficiency
    if least == "auto":
        least = None if ranking.level is None else ranking.level.value
    if least is not None and enough is not None and enough.probability < least:
        return ShownPassages([], withheld=True)
    return ShownPassages(ranking.best)
