"""Ratings over HTTP: what each teaches, once, replaced by the next, taken back, and replayed to the bit."""

from typing import Any
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.api.conftest import Counts
from tests.api.operations import assert_refused
from tests.support import state, undo
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
LEARNED = ("sentence_memory", "question_support", "memory_audit", "learned_weights", "weight_audit")


@pytest.fixture
def answer(http: TestClient, curie: str) -> dict[str, Any]:
    asked: dict[str, Any] = http.post("/query", json={"collection": curie, "query": QUESTION}).json()
    return asked


@pytest.fixture
def rate(http: TestClient, curie: str, answer: dict[str, Any]) -> Any:
    """Rate the answer."""

    def send(key: str | None = None, **rating: Any) -> Any:
        body = {"collection": curie, "query_id": answer["query_id"], "wait": True} | rating
        return http.post("/feedback", json=body, headers={"idempotency-key": key or str(uuid4())})

    return send


def read_changes(response: Any) -> dict[int, set[tuple[int, float]]]:
    """Sentence -> what the verdict said of it for the question: target and noise."""
    assert response.status_code == 200, response.text
    found: dict[int, set[tuple[int, float]]] = {}
    for change in response.json()["changes"]:
        found.setdefault(change["sentence_id"], set()).add((change["target"], change["observation_noise"]))
    return found


def nearest(http: TestClient, name: str, passage: str) -> list[int]:
    sentences = http.get(f"/passages/{passage}", params={"collection": name}).json()["sentences"]
    return [row["sentence_id"] for row in sentences]


def test_up_with_a_passage_supports_it_and_nothing_else(
    rate: Any, http: TestClient, curie: str, application: Application
) -> None:
    said = read_changes(rate(rating="up", cited=["curie"]))
    assert len(said) == 1
    ((sentence, words),) = said.items()
    assert sentence in nearest(http, curie, "curie")
    assert words == {(1, 1.0)}, "R is .5, and the nearest sentence helped one time in two"
    (event,) = state.rows(application, curie, "feedback_event")
    assert (event["rating"], event["reason"], event["partial"]) == ("up", None, True)


def test_up_with_a_sentence_supports_it_in_full(rate: Any, http: TestClient, curie: str) -> None:
    last = nearest(http, curie, "curie")[-1]
    for citation in (last, {"sentence_id": last}):
        assert read_changes(rate(rating="up", cited=[citation])) == {last: {(1, 0.5)}}


def test_up_alone_supports_the_first_passages_by_position(rate: Any, answer: dict[str, Any]) -> None:
    noises = sorted(noise for words in read_changes(rate(rating="up")).values() for _, noise in words)
    shown = min(len(answer["passages"]), 5)
    assert noises == pytest.approx([0.5 / (0.5 / 8 / rank) for rank in range(1, shown + 1)])


@pytest.mark.parametrize("cited", [[], ["curie"]])
def test_down_wrong_answer_teaches_retrieval_nothing(
    rate: Any, curie: str, application: Application, cited: list[str]
) -> None:
    assert read_changes(rate(rating="down", reason="wrong_answer", cited=cited)) == {}
    assert all(state.rows(application, curie, table) == [] for table in LEARNED)
    (event,) = state.rows(application, curie, "feedback_event")
    assert event["reason"] == "wrong_answer"
    assert (event["generation_success"], event["retrieval_success"]) == (False, None)


@pytest.mark.parametrize(("reason", "noise"), [("irrelevant", 1.0), ("outdated", 1.0), (None, 2.0)])
def test_down_with_a_passage_rejects_its_sentences(
    rate: Any, http: TestClient, curie: str, reason: str | None, noise: float
) -> None:
    said = read_changes(
        rate(rating="down", cited=[{"passage_id": "tokyo"}], **({} if reason is None else {"reason": reason}))
    )
    assert said == {sentence: {(0, noise)} for sentence in nearest(http, curie, "tokyo")}


def test_a_rating_replaces_the_judges_earlier_one(rate: Any, curie: str, application: Application) -> None:
    other = rate(rating="up", judge="ben")
    only = undo.list_learned(application, curie)
    first = rate(rating="up", cited=["curie"], judge="ana").json()["feedback_id"]
    assert rate(rating=None, judge="ana").json()["status"] == "applied"
    undo.assert_same(only, undo.list_learned(application, curie))
    down = rate(rating="down", judge="ana").json()["feedback_id"]
    up = rate(rating="up", judge="ana").json()["feedback_id"]
    status = state.event_statuses(application, curie)
    assert (status[first], status[down], status[up], status[other.json()["feedback_id"]]) == (
        "revoked",
        "revoked",
        "applied",
        "applied",
    )
    undo.assert_verified(application, curie)


def test_a_rating_can_be_read(rate: Any, http: TestClient, curie: str) -> None:
    one = rate(rating="down", reason="outdated", cited=["tokyo"]).json()["feedback_id"]
    verdict = http.get(f"/feedback/{one}", params={"collection": curie}).json()["verdict"]
    assert (verdict["rating"], verdict["reason"]) == ("down", "outdated")


@pytest.mark.parametrize(
    "wrong",
    [
        {"rating": "sideways"},
        {"rating": True},
        {"rating": "up", "supporting": []},
        {"rating": "up", "complete": False},
        {"rating": "up", "reason": "missing"},
        {"rating": None, "reason": "why"},
        {"rating": None, "cited": ["curie"]},
        {"rating": "up", "reason": ""},
        {"rating": "up", "reason": "x" * 1_001},
        {"rating": "up", "cited": "curie"},
        {"rating": "up", "cited": [""]},
        {"rating": "up", "cited": [{"passage_id": "curie", "text": "Not there."}]},
        {"rating": "up", "cited": ["nowhere"]},
        {"rating": "down", "reason": "wrong_answer", "cited": ["nowhere"]},
        {"rating": "up", "cited": [2**62]},
        {"cited": ["curie"]},
        {"reason": "missing"},
    ],
)
def test_meaningless_ratings_are_refused(rate: Any, counts: Counts, wrong: dict[str, Any]) -> None:
    before = counts()
    response = rate(**wrong)
    assert response.status_code == 422, response.text
    assert_refused(response)
    assert counts() == before


def test_a_session_is_not_rated(http: TestClient, curie: str) -> None:
    body = {"collection": curie, "session_id": str(uuid4()), "rating": "up"}
    response = http.post("/feedback", json=body, headers={"idempotency-key": "s"})
    assert response.status_code == 422
    assert_refused(response)


def list_shown(http: TestClient, name: str, question: str) -> list[tuple[str, float]]:
    asked = http.post("/query", json={"collection": name, "query": question}).json()
    return [(row["passage_id"], row["score"]) for row in asked["passages"]]


def test_an_irrelevant_passage_is_not_first_again_until_the_rating_is_taken_back(
    rate: Any, http: TestClient, curie: str, answer: dict[str, Any]
) -> None:
    other = "Which river flows through Warsaw?"
    before, others_before = list_shown(http, curie, QUESTION), list_shown(http, curie, other)
    first = answer["passages"][0]["passage_id"]

    assert rate(rating="down", reason="irrelevant", cited=[first]).status_code == 200
    after = list_shown(http, curie, QUESTION)

    assert before[0][0] == first
    assert after[0][0] != first
    assert {passage for passage, _ in after} == {passage for passage, _ in before}
    assert [passage for passage, _ in list_shown(http, curie, other)] == [passage for passage, _ in others_before]

    assert rate(rating=None).status_code == 200
    assert list_shown(http, curie, QUESTION) == before


def ask_sufficiency(http: TestClient, name: str, question: str) -> float:
    asked = http.post("/query", json={"collection": name, "query": question}).json()
    return float(asked["sufficiency"])


@pytest.mark.parametrize(
    "verdict", [{"rating": "down", "reason": "missing"}, {"none_helped": True}, {"rating": "down"}]
)
def test_a_denied_answer_lowers_the_same_question_until_it_is_taken_back(
    rate: Any, http: TestClient, curie: str, verdict: dict[str, Any]
) -> None:
    other = "Which river flows through Warsaw?"
    before, other_before = ask_sufficiency(http, curie, QUESTION), ask_sufficiency(http, curie, other)

    denied = rate(judge="ana", **verdict).json()
    assert ask_sufficiency(http, curie, QUESTION.upper()) < 0.8 * before
    assert ask_sufficiency(http, curie, other) == pytest.approx(other_before, abs=0.005)

    assert http.delete(f"/feedback/{denied['feedback_id']}", params={"collection": curie}).status_code == 200
    assert ask_sufficiency(http, curie, QUESTION) == pytest.approx(before)


@pytest.mark.parametrize(
    ("verdict", "effect"),
    [
        ({"rating": "down", "reason": "missing"}, "The next answer to this question counts as less sufficient."),
        ({"rating": "up", "cited": ["curie"]}, "1 sentence up for this question."),
        (
            {"rating": "down", "reason": "wrong_answer"},
            "Nothing: the verdict judges the words of the answer, which retrieval does not learn from.",
        ),
        ({"rating": None}, "Nothing: the judge has not rated this answer."),
    ],
)
def test_the_receipt_says_what_a_rating_changed_or_why_nothing(
    rate: Any, http: TestClient, curie: str, verdict: dict[str, Any], effect: str
) -> None:
    receipt = rate(**verdict).json()
    assert receipt["effect"] == effect
    read = http.get(f"/feedback/{receipt['feedback_id']}", params={"collection": curie}).json()
    assert read["effect"] == effect


def test_the_receipt_of_a_withdrawal_says_that_a_rating_is_taken_back(rate: Any) -> None:
    rate(rating="up", judge="ana")
    receipt = rate(rating=None, judge="ana").json()
    assert receipt["effect"] == "The judge's earlier rating of this answer is taken back."
    assert rate(rating=None, judge="ben").json()["effect"] == "Nothing: the judge has not rated this answer."


def test_the_receipt_of_none_helped_names_rejections_and_denial(rate: Any, http: TestClient, curie: str) -> None:
    receipt = rate(none_helped=True).json()
    rejected = len({one["sentence_id"] for one in receipt["changes"]})
    assert receipt["effect"] == (
        f"{rejected} sentences down for this question. The next answer to this question counts as less sufficient."
    )
    http.delete(f"/feedback/{receipt['feedback_id']}", params={"collection": curie})
    revoked = http.get(f"/feedback/{receipt['feedback_id']}", params={"collection": curie}).json()
    assert revoked["effect"] == "Nothing: the verdict was taken back."
