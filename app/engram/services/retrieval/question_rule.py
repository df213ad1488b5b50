"""The rule of a wing about questions."""

from typing import Protocol

from engram.services.retrieval.passage_ranking import PassageRanking
from engram.services.retrieval.query import Query
from engram.services.retrieval.query_plan import QueryPlan
from engram.services.retrieval.shown_passages import ShownPassages
from engram.storage.database import Reader


class QuestionRule(Protocol):
    """Changes a question before it is planned, and its answer after the ranking."""

    def prepare(self, query: Query) -> Query:
        """Return the query as it is asked. A query in shadow has no memory and must stay without.

        Called by ``QuestionPipeline.prepare``, without a transaction.
        """
        ...

    def choose(
        self, reader: Reader, plan: QueryPlan, ranking: PassageRanking, shown: ShownPassages
    ) -> ShownPassages:
        """Return the passages that the answer shows.

        Called for each retrieval whose answer is not withheld, on the snapshot of the answer.

        Args:
            shown: as the rules before this one chose; at first the best of the ranking.
        """
        ...
