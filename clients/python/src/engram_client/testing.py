"""A conformance suite for adapters: what a retriever of any framework must do with Engram.

Subclass it in your tests and say how your adapter searches. A test runner that collects classes, such as pytest,
then runs every ``test_`` method against the service that ``ENGRAM_URL`` names::

    from engram_client.testing import AdapterSuite, AdapterResult

    class TestMyAdapter(AdapterSuite):
        def search(self, question, *, url, collection, k):
            results = MyRetriever(url=url, collection=collection, k=k).search(question)
            return [AdapterResult(one.id, one.text, one.metadata, one.score) for one in results]

The service needs a worker, as ``engram up`` has one. Each test makes a collection of its own and deletes it.
"""

import asyncio
import uuid
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from engram_client._core import NotFoundError, UnreachableError, service_url
from engram_client._sync import Engram
from engram_client.documents import KEY, mark_helpful
from engram_client.requests import PassageIn

PASSAGES: tuple[PassageIn, ...] = (
    {
        "id": "titan",
        "title": "Titan",
        "text": "Titan is the largest moon of Saturn. It has lakes of liquid methane.",
        "metadata": {"topic": "moons"},
    },
    {
        "id": "europa",
        "title": "Europa",
        "text": "Europa is a moon of Jupiter. Its ice covers an ocean of salt water.",
        "metadata": {"topic": "moons"},
    },
    {
        "id": "huygens",
        "title": "Christiaan Huygens",
        "text": "Christiaan Huygens discovered Titan in 1655. He built the first pendulum clock.",
        "metadata": {"topic": "people"},
    },
    {
        "id": "galileo",
        "title": "Galileo Galilei",
        "text": "Galileo Galilei discovered Europa in 1610. He taught at Padua.",
        "metadata": {"topic": "people"},
    },
)
QUESTION = "Which moon of Saturn has lakes of liquid methane?"
BEST = "titan"
"""The passage that answers the question."""
JOB_SECONDS = 120.0
UNREACHABLE_URL = "http://127.0.0.1:1"
"""An address where nobody listens."""


@dataclass(frozen=True, slots=True)
class AdapterResult:
    """A result as the framework has it.

    Attributes:
        passage_id: the passage's id, as the framework's own document or node has it.
        text: the passage's text.
        metadata: the framework's metadata; those of ``engram_client.documents`` must be in it.
        score: of the ranking; None if the framework has no place for one.
    """

    passage_id: str | None
    text: str
    metadata: Mapping[str, Any]
    score: float | None = None


class AdapterSuite(ABC):
    """Tests of one adapter; see the module."""

    url: str | None = None
    """The service's address; None: ``ENGRAM_URL``, else this machine."""

    @abstractmethod
    def search(self, question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
        """Search by the adapter, which is made anew with these arguments."""

    async def asearch(self, question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
        """Search by the adapter's own ``await``; override it if the framework has one."""
        return self.search(question, url=url, collection=collection, k=k)

    @contextmanager
    def collection(self) -> Iterator[Engram]:
        """A client at a collection of its own that holds ``PASSAGES``; deleted in the end."""
        with Engram(self.url, collection=f"adapter-{uuid.uuid4().hex}") as engram:
            engram.wait(engram.ingest(PASSAGES), poll_seconds=0.1, timeout_seconds=JOB_SECONDS)
            try:
                yield engram
            finally:
                engram.delete_collection(engram.collection)

    def search_answer(self, engram: Engram, k: int = 4) -> Sequence[AdapterResult]:
        """Search for the answer to ``QUESTION``."""
        return self.search(QUESTION, url=service_url(self.url), collection=engram.collection, k=k)

    def test_the_best_passage_comes_first_with_its_text_and_id(self) -> None:
        """Order, ids and texts are the service's."""
        with self.collection() as engram:
            results = self.search_answer(engram)
            answer = engram.query(QUESTION, top_k=4)
        assert [one.passage_id for one in results] == [passage.passage_id for passage in answer.passages]
        assert results[0].passage_id == BEST
        texts = {passage["id"]: passage["text"] for passage in PASSAGES}
        assert all(one.text == texts[str(one.passage_id)] for one in results)
        scores = [one.score for one in results if one.score is not None]
        assert scores == sorted(scores, reverse=True)

    def test_as_many_results_as_asked_for(self) -> None:
        """``k`` is neither ignored nor a lower bound."""
        with self.collection() as engram:
            assert [len(self.search_answer(engram, k)) for k in (1, 2, 3)] == [1, 2, 3]

    def test_metadata_have_what_a_verdict_needs(self) -> None:
        """A passage's own metadata stay, and the query, the passage and its sentences are under ``engram``."""
        with self.collection() as engram:
            results = self.search_answer(engram)
            episode = engram.episode(results[0].metadata[KEY]["query_id"])
            collection = engram.collection
        assert episode.query == QUESTION
        assert [one.metadata[KEY]["rank"] for one in results] == list(range(1, len(results) + 1))
        own = {passage["id"]: passage["metadata"]["topic"] for passage in PASSAGES}
        for one in results:
            assert one.metadata["topic"] == own[str(one.passage_id)]
            known = one.metadata[KEY]
            assert (known["passage_id"], known["collection"]) == (one.passage_id, collection)
            assert all(sentence["text"] in one.text for sentence in known["sentences"])

    def test_a_verdict_on_a_result_is_learned(self) -> None:
        """A verdict counts once, however often it is sent, and judges the query that the result is from."""
        with self.collection() as engram:
            best = self.search_answer(engram)[0]
            first, again = (mark_helpful(engram, [best.metadata], judge="adapter-suite") for _ in range(2))
        assert [one.query_id for one in first] == [best.metadata[KEY]["query_id"]]
        assert [one.feedback_id for one in first] == [one.feedback_id for one in again]

    def test_an_awaited_search_finds_the_same(self) -> None:
        """Sync and async agree."""
        with self.collection() as engram:
            waited = self.search_answer(engram)
            awaited = asyncio.run(
                self.asearch(QUESTION, url=service_url(self.url), collection=engram.collection, k=4)
            )
        assert [one.passage_id for one in awaited] == [one.passage_id for one in waited]

    def test_a_refusal_is_an_error_and_not_an_empty_result(self) -> None:
        """A collection that is not there raises what the client raises."""
        name = f"adapter-{uuid.uuid4().hex}"
        try:
            self.search(QUESTION, url=service_url(self.url), collection=name, k=1)
        except NotFoundError:
            return
        raise AssertionError("a missing collection must raise NotFoundError")

    def test_a_service_that_is_away_is_an_error_and_not_an_empty_result(self) -> None:
        """A service that cannot be reached raises what the client raises."""
        try:
            self.search(QUESTION, url=UNREACHABLE_URL, collection="default", k=1)
        except UnreachableError:
            return
        raise AssertionError("a service that is away must raise UnreachableError")
