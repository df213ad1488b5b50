"""Answers to who does not see a passage, before and after it comes: its words and language change nothing."""

from typing import Any

import pytest

from tests.readers.conftest import Client, Put
from tests.support.strict_client import TestClient

VISIBLE = (
    {"id": "garden", "text": "The garden has a pond with goldfish."},
    {"id": "office", "text": "The office opens at eight, and the garden at nine."},
    {"id": "canteen", "text": "The canteen serves goldfish crackers."},
)
GUESSED = "garden goldfish office salary dismissal merger"


def ask(client: TestClient, collection: str, question: str, strategy: str) -> dict[str, Any]:
    answer = (
        client.post(
            "/query",
            json={"collection": collection, "query": question, "arm": {"strategy": strategy}, "include": ["trace"]},
        )
        .raise_for_status()
        .json()
    )
    scores = {passage["passage_id"]: passage["score"] for passage in answer["passages"]}
    trace = answer["trace"]
    return {
        "scores": scores,
        "sufficiency": answer["sufficiency"],
        "language": trace["language"],
        "lexical_terms": trace["lexical_terms"],
    }


@pytest.mark.parametrize("strategy", ["lexical", "hybrid"])
def test_a_hidden_passage_does_not_tell_its_words(put: Put, client: Client, strategy: str) -> None:
    put(f"words-{strategy}", *VISIBLE, {"id": "secret-0", "text": "Nothing of note.", "readers": []})
    staff, collection = client("group:staff"), f"words-{strategy}"
    before = ask(staff, collection, GUESSED, strategy)
    put(collection, {"id": "secret-1", "text": "Dismissal before merger in June.", "readers": []})
    assert ask(staff, collection, GUESSED, strategy) == before


@pytest.mark.parametrize("strategy", ["lexical", "graph"])
def test_hidden_passages_do_not_tell_their_language(put: Put, client: Client, strategy: str) -> None:
    put(f"languages-{strategy}", *VISIBLE, {"id": "secret-0", "text": "Nothing of note.", "readers": []})
    staff, collection = client("group:staff"), f"languages-{strategy}"
    before = ask(staff, collection, "Wo ist der garden?", strategy)
    hidden = [
        {
            "id": f"geheim-{n}",
            "text": f"Der Garten ist im Sommer für alle Besucher geöffnet, Tag {n}.",
            "readers": [],
        }
        for n in range(4)
    ]
    put(collection, *hidden)
    after = ask(staff, collection, "Wo ist der garden?", strategy)
    assert after["language"] == before["language"]
    assert after["lexical_terms"] == before["lexical_terms"]
    assert list(after["scores"]) == list(before["scores"])


def test_hidden_passages_neither_correct_nor_complete(put: Put, client: Client) -> None:
    put("completed", *VISIBLE, {"id": "secret", "text": "Quellbrunn of Gardener before Goldsmith.", "readers": []})
    staff, admin = client("group:staff"), client(scopes=["admin"])

    def see(asking: TestClient) -> tuple[list[dict[str, str]], list[str]]:
        body = {"collection": "completed", "query": "quelbrunn goldfsh", "include": ["trace"]}
        trace = asking.post("/query", json=body).raise_for_status().json()["trace"]
        path = "/collections/completed/suggestions"
        return trace["corrections"], asking.get(path, params={"prefix": "go"}).json()["suggestions"]

    fish = {"typed": "goldfsh", "corrected": "goldfish"}
    assert see(admin) == ([{"typed": "quelbrunn", "corrected": "Quellbrunn"}, fish], ["Goldsmith"])
    assert see(staff) == ([fish], [])
