"""`engram-pull dify` against a server that speaks Dify's published contract."""

import json
import uuid
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Any

import pytest

from tests.integrations.pull.conftest import Ask, RatingRecorder
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.product_servers import DifyServer, dify_feedback

Pull = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def dify() -> Iterator[DifyServer]:
    with DifyServer() as server:
        yield server


@pytest.fixture
def pull(pulling: Cli, dify: DifyServer, curie: str) -> Pull:
    def run_pull(*arguments: str, **env: str) -> "CompletedProcess[str]":
        told = {"DIFY_API_URL": f"{dify.url}/v1", "DIFY_API_KEY": "app-1"} | env
        return pulling("dify", "-c", curie, "--json", *arguments, **told)

    return run_pull


def counts(done: "CompletedProcess[str]") -> dict[str, int]:
    assert done.returncode == 0, done.stderr
    found: dict[str, int] = json.loads(done.stdout)
    return {name: number for name, number in found.items() if number}


def test_feedback_of_a_message_is_followed_until_it_is_taken_back(
    pull: Pull, dify: DifyServer, ratings: RatingRecorder, ask: Ask
) -> None:
    message = str(uuid.uuid4())
    query = ask(message)
    dify.records += [dify_feedback("a", message, "like"), dify_feedback("b", str(uuid.uuid4()), "like")]
    assert counts(pull()) == {"up": 1, "unknown": 1}
    dify.records[0] |= {"rating": "dislike", "content": "outdated", "updated_at": "2026-11-21T00:00:00"}
    assert counts(pull()) == {"down": 1, "unknown": 1}
    del dify.records[0]  # as Dify does when the thumb is cleared
    assert counts(pull()) == {"revoked": 1, "unknown": 1}
    judge = "dify:end-user-1"
    assert [(one["judge"], one["query_id"], one["rating"], one.get("reason")) for one in ratings.ratings] == [
        (judge, query, "up", None),
        (judge, query, "down", "outdated"),
        (judge, query, None, None),
    ]


def test_all_pages_are_read(pull: Pull, dify: DifyServer, ratings: RatingRecorder, ask: Ask) -> None:
    message = str(uuid.uuid4())
    ask(message)
    dify.records += [dify_feedback(f"f{number:03}", f"m{number}", "like") for number in range(200)]
    dify.records.append(dify_feedback("z", message, "dislike", created_at="2026-01-01T00:00:00"))
    assert counts(pull()) == {"down": 1, "unknown": 200}
    assert [path.split("?")[1] for path in dify.paths if "feedbacks" in path] == [
        f"page={page}&limit=100" for page in (1, 2, 3)
    ]


def test_a_message_whose_resources_name_the_query_needs_no_trace_id(
    pull: Pull, dify: DifyServer, ratings: RatingRecorder, ask: Ask
) -> None:
    query, elsewhere = ask(uuid.uuid4().hex), "019a0000-0000-7000-8000-000000000001"
    dify.messages += [message(f"m{number}") for number in range(150)]
    dify.messages[3]["retriever_resources"] = [
        {"document_id": f"{elsewhere}:titan", "document_name": "Titan"},
        {"document_id": f"{query}:curie", "document_name": "Curie"},
    ]
    dify.records += [
        dify_feedback("a", "m3", "like"),
        dify_feedback("b", "m4", "like"),
        dify_feedback("c", "m3", "like", from_end_user_id=None, from_account_id="admin", from_source="admin"),
    ]
    assert counts(pull()) == {"up": 1, "unknown": 2}
    assert ratings.current() == {("dify:end-user-1", query): "up"}


def message(message_id: str) -> dict[str, Any]:
    return {"id": message_id, "conversation_id": "conversation-1", "answer": "Warsaw", "retriever_resources": []}


def test_a_feedback_that_a_shifting_page_hides_is_not_revoked(
    pull: Pull, dify: DifyServer, ratings: RatingRecorder, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = str(uuid.uuid4())
    query = ask(first)
    dify.records.append(dify_feedback("a", first, "like"))
    assert counts(pull()) == {"up": 1}
    answer = dify.answer
    hidden = [True]

    def answer_shifted(path: str, where: Any) -> Any:
        if path.endswith("/feedbacks") and hidden.pop() if hidden else False:
            return 200, {"data": []}
        return answer(path, where)

    monkeypatch.setattr(dify, "answer", answer_shifted)
    assert counts(pull()) == {}
    assert ratings.current() == {("dify:end-user-1", query): "up"}


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({"DIFY_API_KEY": "wrong"}, "refuses the credentials (401)"),
        ({"DIFY_API_KEY": ""}, "DIFY_API_KEY is not set"),
        ({"DIFY_API_URL": UNREACHABLE_URL}, "out of reach"),
    ],
)
def test_a_slip_is_one_line_and_a_failure(
    pull: Pull, ratings: RatingRecorder, env: dict[str, str], words: str
) -> None:
    done = pull(**env)
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert ratings.posts == 0


def test_another_product_at_the_address_is_one_line(pull: Pull, dify: DifyServer) -> None:
    done = pull(DIFY_API_URL=dify.url)  # without /v1
    assert done.returncode == 1
    assert "has no /app/feedbacks (404)" in done.stderr
