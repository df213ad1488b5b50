"""What a collection could not answer."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from engram.composition.container import Application
from tests.conftest import Ingest
from tests.support import state
from tests.support.command import Cli
from tests.support.strict_client import TestClient

LEAVE = ("How many days of leave do I get?", "How many leave days do I get?")
CANTEEN = "What does the canteen cook on Fridays?"
BORN = "Where was Marie Curie born?"


def ask(
    application: Application,
    name: str,
    question: str,
    sufficiency: float,
    by: str = "local",
    showing: str = "curie",
) -> UUID:
    """A stored query whose answer showed one passage, and was enough with this probability."""
    shown = [_find_passage(application, name, showing)]
    return state.add_episode(application, name, question, [], shown=shown, sufficiency=sufficiency, principal=by)


def _find_passage(application: Application, name: str, passage: str) -> int:
    stored, _ = application.corpus.ingest.passage(application.auth.access.scope(name), passage)
    return stored.id


def find(http: TestClient, name: str, **params: Any) -> dict[str, Any]:
    answer = http.get(f"/collections/{name}/gaps", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def count(found: dict[str, Any]) -> list[tuple[str, int]]:
    return [(gap["question"], gap["queries"]) for gap in found["gaps"]]


def judge(http: TestClient, name: str, query: UUID, **verdict: Any) -> None:
    body = {"collection": name, "query_id": str(query), "wait": True} | verdict
    answer = http.post("/feedback", json=body, headers={"idempotency-key": str(uuid4())})
    assert answer.status_code in (200, 202), answer.text


def reject_passage(http: TestClient, name: str) -> list[dict[str, Any]]:
    """All sentences of the passage, as a verdict rejects them."""
    sentences = http.get("/passages/curie", params={"collection": name}).json()["sentences"]
    return [{"sentence_id": one["sentence_id"], "examined": 0.5} for one in sentences]


def test_questions_of_one_need_are_one_gap(application: Application, http: TestClient, curie: str) -> None:
    assert find(http, curie)["gaps"] == []
    queries = [ask(application, curie, LEAVE[place], 0.01, by) for place, by in ((0, "a"), (0, "b"), (1, "a"))]
    ask(application, curie, CANTEEN, 0.02)
    ask(application, curie, BORN, 0.99)
    found = find(http, curie)
    assert (found["queries"], 0.02 < found["level"] < 0.99) == (5, True)
    assert count(found) == [(LEAVE[0], 3), (CANTEEN, 1)]
    leave = found["gaps"][0]
    assert (leave["wordings"], leave["people"], leave["denials"]) == ([LEAVE[1]], 2, 0)
    assert (leave["sufficiency"], leave["last_query_id"]) == (pytest.approx(0.01), str(queries[-1]))
    assert leave["documents"] == ["curie"]
    assert leave["first_at"] < leave["last_at"]
    assert leave["later"] == {"answered_at": None, "query_id": None, "documents": [], "feedback_id": None}
    assert count(find(http, curie, limit=1)) == [(LEAVE[0], 3)]


def test_a_thumb_down_makes_a_gap_until_it_is_taken_back(
    application: Application, http: TestClient, curie: str
) -> None:
    query = ask(application, curie, BORN, 0.99)
    judge(http, curie, query, rating="down")
    (gap,) = find(http, curie)["gaps"]
    assert (gap["question"], gap["denials"], gap["sufficiency"]) == (BORN, 1, pytest.approx(0.99))
    judge(http, curie, query, rating=None)
    assert find(http, curie)["gaps"] == []


def test_a_passage_that_did_not_help_makes_a_gap_unless_another_helped(
    application: Application, http: TestClient, curie: str
) -> None:
    query = ask(application, curie, BORN, 0.99)
    judge(http, curie, query, rejected=reject_passage(http, curie)[:1])
    assert [gap["denials"] for gap in find(http, curie)["gaps"]] == [1]
    judge(http, curie, query, supporting_passages=["curie"])
    assert find(http, curie)["gaps"] == []


@pytest.mark.parametrize(
    "verdict",
    [
        {},
        {"generation_success": True},
        {"generation_score": 0.9},
        {"expansions": [{"method": "hyde", "text": "Marie Curie was born in Warsaw."}]},
    ],
    ids=str,
)
def test_a_verdict_that_rejects_nothing_makes_no_gap(
    application: Application, http: TestClient, curie: str, verdict: dict[str, Any]
) -> None:
    judge(http, curie, ask(application, curie, BORN, 0.99), **verdict)
    assert find(http, curie)["gaps"] == []


@pytest.mark.parametrize("complete", [False, True])
def test_a_passage_that_helped_without_a_likely_sentence_makes_no_gap(
    application: Application, http: TestClient, curie: str, complete: bool
) -> None:
    query, rejected = ask(application, curie, BORN, 0.99), reject_passage(http, curie)
    judge(http, curie, query, complete=complete, rejected=rejected, supporting_passages=["curie"])
    assert find(http, curie)["gaps"] == []


def test_a_gap_says_what_happened_later(
    application: Application, http: TestClient, ingest: Ingest, curie: str
) -> None:
    missed = ask(application, curie, LEAVE[0], 0.01)
    ask(application, curie, CANTEEN, 0.01)
    ingest({"id": "leave.md#1", "document": "leave.md", "text": "You get thirty days of leave."})
    sentence = http.get("/passages/leave.md%231", params={"collection": curie}).json()["sentences"][0]
    body = {"collection": curie, "query_id": str(missed), "supporting": [sentence["sentence_id"]], "wait": True}
    said = http.post("/feedback", json=body, headers={"idempotency-key": str(uuid4())}).json()
    answered = ask(application, curie, LEAVE[1], 0.99, showing="leave.md#1")

    found = find(http, curie)
    assert count(found) == [(CANTEEN, 1), (LEAVE[0], 1)]  # the open ones first
    later = found["gaps"][1]["later"]
    assert later.pop("answered_at") > found["gaps"][1]["last_at"]
    assert later == {"query_id": str(answered), "documents": ["leave.md"], "feedback_id": said["feedback_id"]}


def test_an_erased_query_is_in_no_gap(application: Application, http: TestClient, curie: str) -> None:
    kept, erased = (ask(application, curie, question, 0.01) for question in (CANTEEN, LEAVE[0]))
    answer = http.delete(f"/queries/{erased}", params={"collection": curie})
    assert answer.status_code == 202, answer.text
    application.jobs.runner.run_ready()
    (gap,) = find(http, curie)["gaps"]
    assert (gap["question"], gap["last_query_id"]) == (CANTEEN, str(kept))
    http.delete("/queries", params={"collection": curie, "to": "2100-01-01T00:00:00Z"}).raise_for_status()
    application.jobs.runner.run_ready()
    assert find(http, curie)["gaps"] == []


def test_a_collection_without_passages_groups_equal_questions(
    application: Application, http: TestClient, curie: str
) -> None:
    for question in (*LEAVE, f"{LEAVE[0].lower()} "):
        ask(application, curie, question, 0.01)
    for passage in http.get(f"/collections/{curie}/passages").json()["passages"]:
        http.delete(f"/passages/{passage['id']}", params={"collection": curie}).raise_for_status()
    found = find(http, curie)
    assert sorted(queries for _, queries in count(found)) == [1, 2]
    assert all(gap["documents"] == [] for gap in found["gaps"])


def test_the_command_shows_gaps(application: Application, cli: Cli, curie: str) -> None:
    for question in (LEAVE[0], LEAVE[0], CANTEEN):
        ask(application, curie, question, 0.01)
    shown = cli("gaps", "-c", curie)
    assert shown.returncode == 0, shown.stderr
    assert f"{LEAVE[0]!r}: 2 times by one caller" in shown.stdout
    assert f"{CANTEEN!r}: once by one caller" in shown.stdout
    assert "nearest: curie" in shown.stdout
