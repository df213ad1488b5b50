"""Why, over HTTP: a sentence's memory with its history, and traces that name verdicts."""

from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from engram.composition.container import Application
from engram.wings.why.parts import why_of
from tests.api.operations import assert_refused
from tests.api.test_access import KeyedClient, guarded, keyed
from tests.conftest import Ingest
from tests.support import state
from tests.support.strict_client import TestClient

__all__ = ["guarded", "keyed"]

QUESTION = "Where was Marie Curie born?"
OTHER_QUESTION = "Which element did Marie Curie discover in 1898?"
BORN = "Marie Curie was born in Warsaw in 1867."
DISCOVERY = "Marie Curie discovered polonium in 1898."


def ask(http: TestClient, name: str, text: str = QUESTION, **more: Any) -> dict[str, Any]:
    response = http.post("/query", json={"collection": name, "query": text} | more)
    assert response.status_code == 200, response.text
    document: dict[str, Any] = response.json()
    return document


def judge(http: TestClient, name: str, query_id: str, supporting: list[int], who: str) -> int:
    """The verdict's id."""
    body = {"collection": name, "query_id": query_id, "judge": who, "wait": True}
    body |= {"supporting": [{"sentence_id": sentence} for sentence in supporting], "complete": True}
    receipt = http.post("/feedback", json=body, headers={"idempotency-key": str(uuid4())})
    assert receipt.status_code == 200, receipt.text
    event: int = receipt.json()["feedback_id"]
    return event


@pytest.fixture
def taught(http: TestClient, application: Application, curie: str) -> tuple[dict[str, int], list[int]]:
    """Sentences of the passage curie by text, and three verdicts on it, the second of another question."""
    ids = state.sentences(application, curie, "curie")
    asked = [ask(http, curie, text)["query_id"] for text in (QUESTION, OTHER_QUESTION, QUESTION)]
    verdicts = ((ids[BORN], "alice"), (ids[DISCOVERY], "bob"), (ids[BORN], "carol"))
    pairs = zip(asked, verdicts, strict=True)
    return ids, [judge(http, curie, query_id, [sentence], who) for query_id, (sentence, who) in pairs]


def memory(http: TestClient, name: str, sentence: int, **more: Any) -> Any:
    return http.get(f"/sentences/{sentence}/memory", params={"collection": name} | more)


def test_a_sentence_that_no_verdict_touched(http: TestClient, application: Application, curie: str) -> None:
    born = state.sentences(application, curie, "curie")[BORN]
    shown = memory(http, curie, born, query=QUESTION).json()
    channels = {channel.pop("channel"): channel for channel in shown.pop("channels")}
    assert shown == {
        "sentence_id": born, "collection": curie, "text": BORN, "position": 0, "passage_id": "curie",
        "title": "Marie Curie", "supports": [], "support_count": 0, "history": [], "next_after": None,
    }  # fmt: skip
    assert channels.keys() == {"task", "time"}
    for channel in channels.values():
        assert (channel["perplexity"], channel["update_count"]) == (1.0, 0)
        assert channel["similarity"] == channel["base_similarity"]
    assert memory(http, curie, born).json()["channels"][0]["similarity"] is None


def test_a_sentence_s_history_is_that_of_its_memory(
    http: TestClient, application: Application, curie: str, taught: tuple[dict[str, int], list[int]]
) -> None:
    """Each similarity "then" is that of the state replayed up to the verdict."""
    ids, events = taught
    shown = memory(http, curie, ids[BORN], query=QUESTION).json()
    assert [event["feedback_id"] for event in shown["history"]] == events
    assert [event["judge"] for event in shown["history"]] == ["alice", "bob", "carol"]
    assert [event["question"] for event in shown["history"]] == [QUESTION, OTHER_QUESTION, QUESTION]
    tasks = [move for event in shown["history"] for move in event["moves"] if move["channel"] == "task"]
    assert [move["target"] for move in tasks] == [1, 0, 1]
    towards = {
        text: application.models.embedder.embed([text])[0].astype(np.float64) for text in (QUESTION, OTHER_QUESTION)
    }
    standing = why_of(application).explain.memories(application.auth.access.scope(curie), [ids[BORN]])[ids[BORN]][
        "task"
    ]
    vector = standing.base.astype(np.float64)
    for event, move in zip(shown["history"], tasks, strict=True):
        along = towards[event["question"]]
        assert move["similarity_before"] == pytest.approx(vector @ along, abs=1e-6)
        moved = vector + move["gain"] * move["residual"] * along
        vector = moved / np.linalg.norm(moved)
        assert move["similarity_after"] == pytest.approx(vector @ along, abs=1e-6)
        assert move["similarity_now"] == pytest.approx(standing.vector @ along, abs=1e-6)
    np.testing.assert_allclose(vector, standing.vector, atol=1e-6)
    channel = shown["channels"][0]
    assert channel["perplexity"] == tasks[-1]["perplexity_after"]
    assert channel["update_count"] == 3
    assert channel["similarity"] == pytest.approx(tasks[-1]["similarity_after"], abs=1e-6)
    assert channel["base_similarity"] == pytest.approx(tasks[0]["similarity_before"], abs=1e-6)


def test_supports_follow_from_the_history(
    http: TestClient, curie: str, taught: tuple[dict[str, int], list[int]]
) -> None:
    ids, _ = taught
    shown = memory(http, curie, ids[BORN]).json()
    assert [support["question"] for support in shown["supports"]] == [QUESTION, OTHER_QUESTION]
    assert shown["support_count"] == 2
    for support in shown["supports"]:
        last = [
            move
            for event in shown["history"]
            if event["question"] == support["question"]
            for move in event["moves"]
            if move["channel"] == "recall"
        ][-1]
        assert last["similarity_after"] == pytest.approx(support["support"], abs=1e-12)
        assert last["perplexity_after"] == support["perplexity"]
        assert last["similarity_now"] is None
    assert all(channel["similarity"] is None for channel in shown["channels"])


def test_a_history_comes_in_pages_and_without_revoked_verdicts(
    http: TestClient, curie: str, taught: tuple[dict[str, int], list[int]]
) -> None:
    ids, events = taught
    whole = memory(http, curie, ids[BORN]).json()["history"]
    paged: list[Any] = []
    last: int | None = 0
    while last is not None:
        page = memory(http, curie, ids[BORN], after=last, limit=2).json()
        paged += page["history"]
        last = page["next_after"]
    assert paged == whole
    assert memory(http, curie, ids[BORN], limit=len(whole)).json()["next_after"] is None
    assert http.delete(f"/feedback/{events[0]}", params={"collection": curie}).status_code == 200
    left = memory(http, curie, ids[BORN]).json()["history"]
    assert [event["feedback_id"] for event in left] == events[1:]
    before, after = (
        next(move for move in event["moves"] if move["channel"] == "task") for event in (whole[1], left[0])
    )
    assert after["similarity_before"] != before["similarity_before"]
    assert after["perplexity_before"] == 1.0


def test_no_vector_leaves(http: TestClient, curie: str, taught: tuple[dict[str, int], list[int]]) -> None:
    ids, _ = taught
    for document in (
        memory(http, curie, ids[BORN], query=QUESTION).json(),
        ask(http, curie, include=["trace"]),
    ):
        assert longest(document) < 50


def longest(node: Any) -> int:
    """The most numbers in any list."""
    if isinstance(node, dict):
        return max((longest(value) for value in node.values()), default=0)
    if isinstance(node, list):
        numbers = sum(isinstance(value, int | float) for value in node)
        return max([numbers, *(longest(value) for value in node)])
    return 0


def test_missing_sentence_or_collection_is_404(http: TestClient, curie: str) -> None:
    assert "no sentence 4611686018427387904" in memory(http, curie, 2**62).json()["detail"]
    for response in (memory(http, curie, 2**62), memory(http, "nowhere", 1)):
        assert response.status_code == 404
        assert_refused(response)


@pytest.mark.parametrize(
    "wrong", [{"after": -1}, {"limit": 0}, {"limit": 1001}, {"query": "a\x00b"}, {"query": "x" * 10_001}]
)
def test_odd_parameters_are_refused(http: TestClient, curie: str, wrong: dict[str, Any]) -> None:
    response = memory(http, curie, 1, **wrong)
    assert response.status_code == 422
    assert_refused(response)


def test_a_sentence_of_another_collection_is_not_shown(
    http: TestClient, application: Application, curie: str, ingest: Ingest
) -> None:
    born = state.sentences(application, curie, "curie")[BORN]
    other = f"{curie}-b"
    ingest({"id": "x", "text": "It says little."}, into=other)
    assert memory(http, other, born).status_code == 404


def test_trace_names_its_verdicts_and_is_stored(
    http: TestClient, curie: str, taught: tuple[dict[str, int], list[int]]
) -> None:
    _, events = taught
    answer = ask(http, curie, include=["trace"], max_hops=1)
    trace = answer["trace"]
    first = trace["passages"][0]
    assert (first["passage_id"], first["rank"], first["score"]) == (
        answer["passages"][0]["passage_id"], 1, answer["passages"][0]["score"],
    )  # fmt: skip
    plain = ask(http, curie, arm={"memory": "off"}, top_k=100, max_hops=1)["passages"]
    ranks = {passage["passage_id"]: rank for rank, passage in enumerate(plain, start=1)}
    assert {row["passage_id"]: row["rank_without_memory"] for row in trace["passages"]} == {
        passage["passage_id"]: ranks[passage["passage_id"]] for passage in answer["passages"]
    }
    born = next(row for row in trace["hops"][0]["sentences"] if row["text"] == BORN)
    named = {influence["feedback_id"]: influence for influence in born["influences"]}
    assert named.keys() <= set(events)
    assert (named[events[0]]["judge"], named[events[0]]["question"]) == ("alice", QUESTION)
    assert named[events[0]]["recall_probability"] > 0
    assert first["recall"] > 0
    stored = http.get(f"/queries/{answer['query_id']}", params={"collection": curie}).json()
    assert stored["trace"] == trace


def test_a_query_without_a_trace_keeps_no_causes(
    http: TestClient, curie: str, taught: tuple[dict[str, int], list[int]]
) -> None:
    answer = ask(http, curie)
    assert answer["trace"] is None
    stored = http.get(f"/queries/{answer['query_id']}", params={"collection": curie}).json()["trace"]
    assert stored["passages"] is None
    assert all(row["influences"] == [] for hop in stored["hops"] for row in hop["sentences"])


@pytest.mark.usefixtures("taught")
def test_only_an_auditor_is_told_of_verdicts(keyed: KeyedClient, curie: str) -> None:
    for scopes, is_told in ((["query"], False), (["query", "audit"], True)):
        trace = ask(keyed("asker", {curie: scopes}), curie, include=["trace"])["trace"]
        assert any(row["influences"] for hop in trace["hops"] for row in hop["sentences"]) is is_told
        assert (trace["passages"] is not None) is is_told
