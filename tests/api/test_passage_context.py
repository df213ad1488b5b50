"""What stands around the passages of an answer."""

from typing import Any

import pytest

from tests.conftest import Ingest
from tests.support.strict_client import TestClient

QUESTION = "How many days may a sick employee stay at home?"
LEAVE = [
    ("Everybody has thirty days of leave.", ["Leave"]),
    ("A sick employee may stay at home for three days.", ["Leave", "Sickness"]),
    ("After that a doctor has to be seen.", ["Leave", "Sickness"]),
    ("The office pays for the doctor abroad.", ["Leave", "Sickness", "Abroad"]),
    ("Trains are paid in second class.", ["Travel"]),
]


@pytest.fixture
def handbook(ingest: Ingest, collection: str) -> str:
    ingest(
        *(
            {"id": f"leave.md#{number}", "document": "leave.md", "text": text, "metadata": {"heading": heading}}
            for number, (text, heading) in enumerate(LEAVE, start=1)
        ),
        {"id": "leave.md#6", "document": "other.md", "text": "Tea is free."},
        {"id": "plain#1", "document": "plain", "text": "The garden is open."},
        {"id": "plain#2", "document": "plain", "text": "Its gate is green."},
    )
    return collection


def find_context(http: TestClient, collection: str, question: str = QUESTION, **options: Any) -> Any:
    body = {"collection": collection, "query": question, "top_k": 1} | options
    answer = http.post("/query", json=body)
    assert answer.status_code == 200, answer.text
    (hit,) = answer.json()["passages"]
    return hit["context"]


def list_ids(context: Any) -> tuple[list[str], list[str]]:
    return [one["passage_id"] for one in context["before"]], [one["passage_id"] for one in context["after"]]


def test_nothing_stands_around_unless_asked_for(http: TestClient, handbook: str) -> None:
    assert find_context(http, handbook) is None


def test_neighbours_come_in_reading_order(http: TestClient, handbook: str) -> None:
    context = find_context(http, handbook, include=["context"])
    assert list_ids(context) == (["leave.md#1"], ["leave.md#3"])
    (before,) = context["before"]
    assert (before["text"], before["source"]["document"], before["sentences"]) == (LEAVE[0][0], "leave.md", [])
    wider = find_context(http, handbook, context={"before": 0, "after": 10}, include=["sentences"])
    assert list_ids(wider) == ([], ["leave.md#3", "leave.md#4", "leave.md#5"])  # the next number is of another one
    assert [one["text"] for one in wider["after"][0]["sentences"]] == [LEAVE[2][0]]


def test_a_section_has_its_own_headings_and_those_below(http: TestClient, handbook: str) -> None:
    context = {"section": True}
    assert list_ids(find_context(http, handbook, context=context)) == ([], ["leave.md#3", "leave.md#4"])
    plain = find_context(http, handbook, "Where is the green gate?", context=context)
    assert list_ids(plain) == (["plain#1"], [])


def test_nearer_passages_have_room_first(http: TestClient, handbook: str) -> None:
    room = len(LEAVE[2][0]) + len(LEAVE[0][0])
    wanted = {"before": 2, "after": 2, "characters": room}
    assert list_ids(find_context(http, handbook, context=wanted)) == (["leave.md#1"], ["leave.md#3"])
    wanted["characters"] = room - 1
    assert list_ids(find_context(http, handbook, context=wanted)) == ([], ["leave.md#3"])


def test_a_batch_may_ask_for_it(http: TestClient, handbook: str) -> None:
    queries = [{"collection": handbook, "query": QUESTION, "top_k": 1, "include": ["context"]}]
    (answered,) = http.post("/queries:batch", json={"queries": queries}).json()["answers"]
    assert list_ids(answered["answer"]["passages"][0]["context"]) == (["leave.md#1"], ["leave.md#3"])
