"""Questions asked of a corpus without their evidence.

A question's relevant passages are left out of its search, and of no other question's. Nothing is deleted: the query
is narrowed to the other passages. How rare words are stays a matter of the whole corpus.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from engram.services.question.query import Query
from engram.services.question.search import RetrievalResult, RetrievalService
from engram_evaluation.dataset import Question
from engram_evaluation.harness import Harness

PAGE = 500
"""Passages read at a time."""


@dataclass(frozen=True, slots=True)
class MaskableCorpus:
    """Passages of a corpus, some of which a question may not find.

    Attributes:
        ids: external id -> id of every passage.
    """

    harness: Harness
    retrieve: RetrievalService
    ids: Mapping[str, int]

    def ask(self, question: Question, *, absent: bool = False, top_k: int = 5) -> RetrievalResult:
        """Ask a question without memory.

        Args:
            absent: whether its relevant passages are left out.
        """
        among = self._list_others(question.relevant) if absent else None
        query = Query(text=question.text, scope=self.harness.scope, memory="off", among=among, top_k=top_k)
        return self.retrieve.find(self.retrieve.plan(query))

    def _list_others(self, relevant: Collection[str]) -> list[int]:
        return sorted(passage for name, passage in self.ids.items() if name not in relevant)


def build_maskable_corpus(harness: Harness, retrieve: RetrievalService | None = None) -> MaskableCorpus:
    """Read which passages the harness's collection has.

    Args:
        retrieve: finds the answers; None for the harness's own.
    """
    ids: dict[str, int] = {}
    after: str | None = None
    while page := harness.services.corpus.ingest.passages(harness.scope, after, PAGE):
        ids |= {passage.external_id: passage.id for passage in page}
        after = page[-1].external_id
    return MaskableCorpus(harness, retrieve or harness.services.retrieval.retrieve, ids)
