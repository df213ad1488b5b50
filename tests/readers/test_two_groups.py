"""Two groups with passages of their own: what one teaches does not reach the answers of the other."""

import gzip
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.readers.conftest import Client, Put
from tests.support.strict_client import TestClient

TOWNS = ["Warsaw", "Tokyo", "Lagos", "Quito", "Oslo", "Hanoi", "Sofia", "Lima"]
QUESTIONS = [f"Who founded the school of {town}?" for town in TOWNS]


MUSIQUE = os.environ.get("ENGRAM_EVALUATION_MUSIQUE")
"""A BEIR folder whose queries name their passages."""
QUESTIONS_OF_A_GROUP = int(os.environ.get("ENGRAM_EVALUATION_MUSIQUE_QUESTIONS", "20"))


def ask(client: TestClient, question: str, collection: str = "halves") -> str:
    """The answer, without what differs each time."""
    body = {"query": question, "collection": collection, "top_k": 10, "include": ["sentences", "trace", "entities"]}
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


def read_rows(name: str) -> Iterator[Mapping[str, Any]]:
    with gzip.open(Path(str(MUSIQUE)) / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


@pytest.mark.skipif(MUSIQUE is None, reason="ENGRAM_EVALUATION_MUSIQUE is not set")
def test_verdicts_of_one_half_of_musique_leave_the_answers_of_the_other_as_they_were(
    put: Put, client: Client
) -> None:
    questions = [row for _, row in zip(range(2 * QUESTIONS_OF_A_GROUP), read_rows("queries"), strict=False)]
    halves = {"a": questions[:QUESTIONS_OF_A_GROUP], "b": questions[QUESTIONS_OF_A_GROUP:]}
    holder: dict[str, str] = {}
    for group, asked in halves.items():
        for row in asked:
            for passage in row["metadata"]["context_ids"]:
                holder.setdefault(passage, group)
    passages = [
        {"id": row["_id"], "title": row["title"], "text": row["text"], "readers": [f"group:{holder[row['_id']]}"]}
        for row in read_rows("corpus")
        if row["_id"] in holder
    ]
    for start in range(0, len(passages), 200):
        put("musique", *passages[start : start + 200])
    one, other = client("group:a"), client("group:b")
    before = [ask(other, row["text"], "musique") for row in halves["b"]]
    own = [ask(one, row["text"], "musique") for row in halves["a"]]
    taught = 0
    for row in halves["a"]:
        named = [
            {"passage_id": passage, "text": text}
            for passage, _, text in row["metadata"]["supporting_sentences"]
            if holder[passage] == "a"
        ]
        answer = one.post("/query", json={"query": row["text"], "collection": "musique"}).json()
        verdict = {"query_id": answer["query_id"], "collection": "musique", "supporting": named, "wait": True}
        given = one.post("/feedback", json=verdict, headers={"idempotency-key": str(uuid4())})
        assert (given.status_code, given.json()["status"]) == (200, "applied"), given.text
        taught += 1
    assert taught == QUESTIONS_OF_A_GROUP
    assert [ask(one, row["text"], "musique") for row in halves["a"]] != own
    assert [ask(other, row["text"], "musique") for row in halves["b"]] == before
