"""Two groups with passages of their own: what one teaches does not reach the answers of the other."""

import re
from uuid import uuid4

from tests.readers.conftest import Client, Put
from tests.support.strict_client import TestClient

TOWNS = ["Warsaw", "Tokyo", "Lagos", "Quito", "Oslo", "Hanoi", "Sofia", "Lima"]
QUESTIONS = [f"Who founded the school of {town}?" for town in TOWNS]


def ask(client: TestClient, question: str) -> str:
    """The answer, without what differs each time."""
    body = {"query": question, "collection": "halves", "top_k": 10, "include": ["sentences", "trace", "entities"]}
    answer = client.post("/query", json=body)
    assert answer.status_code == 200, answer.text
    return re.sub(r'"query_id":"[^"]*"|"[a-z_]*_ms":[\d.]+', "", answer.text)


def teach(client: TestClient, question: str) -> None:
    """Support the first sentence of the answer, and reject the others."""
    body = {"query": question, "collection": "halves", "include": ["sentences"]}
    answer = client.post("/query", json=body).json()
    sentences = [one["sentence_id"] for passage in answer["passages"] for one in passage["sentences"]]
    verdict = {
        "query_id": answer["query_id"],
        "collection": "halves",
        "supporting": sentences[:1],
        "complete": True,
    }
    given = client.post("/feedback", json=verdict | {"wait": True}, headers={"idempotency-key": str(uuid4())})
    assert (given.status_code, given.json()["status"]) == (200, "applied"), given.text


def test_verdicts_of_one_group_leave_the_answers_of_the_other_as_they_were(put: Put, client: Client) -> None:
    passages = [
        {
            "id": f"{town}-{group}",
            "title": f"School of {town}",
            "text": f"The school of {town} was founded by Marie {name}. Its hall lies near {town} Park.",
            "readers": [f"group:{group}"],
        }
        for town in TOWNS
        for group, name in (("a", "Curie"), ("b", "Lovelace"))
    ]
    put("halves", *passages)
    one, other = client("group:a"), client("group:b")
    before = [ask(other, question) for question in QUESTIONS]
    own = [ask(one, question) for question in QUESTIONS]
    for question in QUESTIONS:
        teach(one, question)
    assert [ask(other, question) for question in QUESTIONS] == before
    assert [ask(one, question) for question in QUESTIONS] != own
    assert not any("Curie" in answer for answer in before)
