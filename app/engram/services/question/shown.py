"""Step 9: choose the passages that the answer shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engram.services.question.plan import QueryPlan
from engram.services.question.query import Query
from engram.services.question.ranking import PassageRanking
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
