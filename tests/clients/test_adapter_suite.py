"""The suite of adapters: the client itself passes it, and adapters with a defect do not."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from engram_client import Engram, EngramError
from engram_client.documents import documents
from engram_client.testing import AdapterResult, AdapterSuite


def results(question: str, url: str, collection: str, k: int) -> list[AdapterResult]:
    with Engram(url, collection=collection, retries=0) as engram:
        answer = engram.query(question, top_k=k)
    return [
        AdapterResult(passage.passage_id, passage.text, metadata, passage.score)
        for passage, metadata in documents(answer)
    ]


@pytest.mark.usefixtures("working")
class TestPlainAdapter(AdapterSuite):
    @pytest.fixture(autouse=True)
    def _at_service(self, service: str) -> None:
        self.url = service

    def search(self, question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
        return results(question, url, collection, k)


class DefectiveAdapter(AdapterSuite):
    """An adapter with one defect."""

    def __init__(self, url: str, defect: Callable[..., Sequence[AdapterResult]]) -> None:
        self.url = url
        self._defect = defect

    def search(self, question: str, **where: Any) -> Sequence[AdapterResult]:
        return self._defect(question, **where)


def ignore_k(question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
    return results(question, url, collection, 4)


def reverse_order(question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
    return results(question, url, collection, k)[::-1]


def drop_metadata(question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
    return [AdapterResult(one.passage_id, one.text, {}) for one in results(question, url, collection, k)]


def swallow_errors(question: str, *, url: str, collection: str, k: int) -> Sequence[AdapterResult]:
    try:
        return results(question, url, collection, k)
    except EngramError:
        return []


@pytest.mark.usefixtures("working")
@pytest.mark.parametrize(
    ("defect", "test", "error"),
    [
        (ignore_k, "test_as_many_results_as_asked_for", AssertionError),
        (reverse_order, "test_the_best_passage_comes_first_with_its_text_and_id", AssertionError),
        (drop_metadata, "test_metadata_have_what_a_verdict_needs", KeyError),
        (drop_metadata, "test_a_verdict_on_a_result_is_learned", KeyError),
        (swallow_errors, "test_a_refusal_is_an_error_and_not_an_empty_result", AssertionError),
        (swallow_errors, "test_a_service_that_is_away_is_an_error_and_not_an_empty_result", AssertionError),
    ],
)
def test_a_defect_fails_its_test(
    service: str, defect: Callable[..., Sequence[AdapterResult]], test: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        getattr(DefectiveAdapter(service, defect), test)()
