"""What a wing says of the verdicts behind answers."""

from typing import Protocol

from engram.core.ranking.ranking_weights import Floats, Prior, PriorIdentity
from engram.services.retrieval.answer_trace import Trace
from engram.services.retrieval.query_plan import QueryPlan
from engram.services.retrieval.retrieval_service import RetrievalResult, RetrievalService
from engram.storage.database import Reader


class Explainer(Protocol):
    """Finds the verdicts behind answers."""

    def find(self, retrieve: RetrievalService, plan: QueryPlan) -> tuple[RetrievalResult, Trace]:
        """Find what ``retrieve.find`` does, and trace it with the verdicts behind every sentence and passage.

        Called without a transaction, for queries that ask for a trace by whom may see what others asked.
        """
        ...

    def find_strongest_verdicts(
        self, reader: Reader, collection_id: int, model: tuple[PriorIdentity, Prior], features: Floats, most: int
    ) -> tuple[dict[int, float], bool]:
        """Find the ``most`` verdicts that moved a probability of a taught model most, the strongest first.

        Args:
            model: of whose weights the probability is.
            features: whose probability it is, (k,).

        Returns:
            Verdict -> the probability less that without the verdict, and whether there are more verdicts.
        """
        ...
