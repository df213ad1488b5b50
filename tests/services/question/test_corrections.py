"""Corrections of typing errors while a collection changes."""

import pytest

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


@pytest.mark.parametrize(
    ("text", "language", "typed", "meant"),
    [
        ("The office has Wi-Fi on each floor.", "en", "wifi", "Wi-Fi"),
        ("The username is printed on the badge.", "en", "user name", "username"),
        ("Die Donaudampfschifffahrtsgesellschaft.", "de", "Dampfschifffahrt", "Donaudampfschifffahrtsgesellschaft"),
    ],
)
def test_a_word_apart_together_or_in_a_compound_is_found(
    http: TestClient, ingest: Ingest, collection: str, text: str, language: str, typed: str, meant: str
) -> None:
    ingest(
        {"id": "wanted", "text": text, "language": language},
        {"id": "other", "text": "Xylophon", "language": language},
    )
    body = {"collection": collection, "query": typed, "include": ["trace"]}
    answer = http.post("/query", json=body).json()
    assert answer["passages"][0]["passage_id"] == "wanted"
    assert answer["trace"]["corrections"] == [{"typed": typed, "corrected": meant}]
