"""Verdicts on what a chain retrieved, given by the run that a user saw."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document

from engram_client import Engram
from engram_client.documents import build_repeat_key, name_person
from engram_client.models import FeedbackOut
from engram_client.requests import FeedbackIn

MOST_RUNS = 10_000
"""Runs, by default, whose queries a handler knows."""


class EngramFeedback(BaseCallbackHandler):
    """Remembers which queries a run asked, so that its user can be heard long after.

    Put it among a chain's ``callbacks`` with a ``run_id`` of your own, and keep that with the answer you show::

        feedback = EngramFeedback(Engram(collection="notes"))
        chain.invoke(question, {"callbacks": [feedback], "run_id": run})
        feedback.mark_helpful(run, ["titan"])   # or feedback.mark_unhelpful(run)

    It lives in this process: where thumbs arrive in another, keep ``query_id`` of the documents' metadata instead
    and call the client.
    """

    def __init__(self, engram: Engram, *, judge: str | None = None, remember: int = MOST_RUNS) -> None:
        """
        Args:
            engram: the client that verdicts go through; stays the caller's to close.
            judge: whose verdicts these are.
            remember: runs that are kept, the latest.
        """
        self._engram = engram
        self._said: FeedbackIn = {} if judge is None else {"judge": judge}
        self._remember = remember
        self._roots: OrderedDict[UUID, UUID] = OrderedDict()
        self._on_behalf_of: OrderedDict[UUID, dict[str, FeedbackIn]] = OrderedDict()

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        """Note which run is part of which."""
        self._belongs(run_id, parent_run_id)

    def on_retriever_start(
        self, serialized: Any, query: str, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        """Note which run is part of which."""
        self._belongs(run_id, parent_run_id)

    def on_retriever_end(self, documents: Sequence[Document], *, run_id: UUID, **_: Any) -> None:
        """Note the queries that were asked."""
        on_behalf_of = self._on_behalf_of.setdefault(self._roots.get(run_id, run_id), {})
        for document in documents:
            origin = document.metadata.get("engram")
            if origin:
                where = FeedbackIn(collection=origin["collection"])
                on_behalf_of[origin["query_id"]] = where | name_person(origin.get("as"))
        while len(self._on_behalf_of) > self._remember:
            self._on_behalf_of.popitem(last=False)

    def queries(self, run_id: UUID) -> dict[str, str]:
        """Query -> its collection, of all that the run asked.

        Raises:
            KeyError: the run is not known here, or no longer.
        """
        return {query_id: where["collection"] for query_id, where in self._find(run_id).items()}

    def mark_helpful(self, run_id: UUID, passage_ids: Iterable[str]) -> list[FeedbackOut]:
        """These passages helped; of the others nothing is said.

        Sent again, it counts once.

        Raises:
            KeyError: as ``queries``.
            EngramError: as the client.
        """
        passages = sorted(set(passage_ids))
        verdict = FeedbackIn(supporting_passages=passages)
        return self._judge_all(run_id, "helped", verdict)

    def mark_unhelpful(self, run_id: UUID) -> list[FeedbackOut]:
        """Reject everything that was found; raises as ``mark_helpful`` does."""
        return self._judge_all(run_id, "nothing", FeedbackIn(none_helped=True))

    def _judge_all(self, run_id: UUID, judgement: str, verdict: FeedbackIn) -> list[FeedbackOut]:
        verdict |= self._said
        return [
            self._engram.feedback(
                query_id,
                idempotency_key=build_repeat_key(str(run_id), query_id, judgement, verdict),
                **(verdict | where),
            )
            for query_id, where in self._find(run_id).items()
        ]

    def _find(self, run_id: UUID) -> dict[str, FeedbackIn]:
        """Query -> its collection, and whom it was asked for, as verdicts name them."""
        if run_id not in self._on_behalf_of:
            raise KeyError(f"run {run_id} asked nothing that is remembered here")
        return self._on_behalf_of[run_id]

    def _belongs(self, run_id: UUID, parent: UUID | None) -> None:
        self._roots[run_id] = run_id if parent is None else self._roots.get(parent, parent)
        while len(self._roots) > 16 * self._remember:
            self._roots.popitem(last=False)
