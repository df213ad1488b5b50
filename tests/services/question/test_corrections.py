"""Corrections of typing errors while a collection changes."""

from tests.conftest import Ingest
from tests.support.strict_client import TestClient


def test_a_word_that_comes_later_is_meant_from_then_on(http: TestClient, ingest: Ingest, collection: str) -> None:
    def correct(question: str) -> list[dict[str, str]]:
        body = {"collection": collection, "query": question, "include": ["trace"]}
        corrections: list[dict[str, str]] = http.post("/query", json=body).json()["trace"]["corrections"]
        return corrections

    ingest({"id": "first", "text": "Warsaw is a town."})
    assert [correct("Is Warsaw near the Zernavka?") for _ in range(2)] == [[], []]
    ingest({"id": "second", "text": "Warsaw lies near the Zernovka."})
    assert correct("Is Warsaw near the Zernavka?") == [{"typed": "Zernavka", "corrected": "Zernovka"}]
