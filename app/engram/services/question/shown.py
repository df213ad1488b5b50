"""Step 9: choose the passages that the answer shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from engram.services.question.plan import QueryPlan
from engram.services.question.query import Query
from engram.services.question.ranking import RECORDED_CANDIDATES, PassageRanking
from engram.services.question.walk import Walk
from engram.storage.corpus.passages import StoredSentence
from engram.storage.database import Reader


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


class QuestionRule(Protocol):
    """Rule of a wing: changes a question before it is planned, and its answer after the ranking."""

    def prepare(self, query: Query) -> Query:
        """Return the query as it is asked. A query in shadow has no memory and must stay without.

        Called by ``QuestionPipeline.apply_settings``, without a transaction.
        """
        ...

    def choose(
        self, reader: Reader, plan: QueryPlan, ranking: PassageRanking, chosen: ShownPassages
    ) -> ShownPassages:
        """Return the passages that the answer shows.

        Called for each retrieval whose answer is not withheld, on the snapshot of the answer.

        Args:
            chosen: as the rules before this one chose; at first the best of the ranking.
        """
        ...


def choose_best(plan: QueryPlan, ranking: PassageRanking) -> ShownPassages:
    """Show the best passages, or nothing if the query wants an answer that is enough and it is too likely not."""
    least, enough = plan.query.min_sufficiency, ranking.sufficiency
    if least == "auto":
        least = None if ranking.level is None else ranking.level.value
    if least is not None and enough is not None and enough.probability < least:
        return ShownPassages([], withheld=True)
    return ShownPassages(ranking.ordered[: plan.query.top_k])
