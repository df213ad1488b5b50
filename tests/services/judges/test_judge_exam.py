"""A judge's model has to pass control questions before its verdicts teach."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engram.context.errors import LlmError, UnfitModelError
from engram.core.budget import Budget
from engram.providers.llm import Llm
from engram.services.judges.judge_exam import CONTROL_QUESTIONS, ExamResult, ModelExam, examine
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from tests.conftest import Scoped
from tests.support.modelled import ModelApplications
from tests.support.openai_server import Handler, OpenAiServer, Reply, keyword_handler
from tests.support.strict_client import TestClient

QUESTION = "Where was Marie Curie born?"
CONTROLS = {control.question: control for control in CONTROL_QUESTIONS}


def read_tag(request: dict[str, Any], tag: str) -> str:
    return re.search(f"<{tag}>\n(.*?)\n</{tag}>", request["messages"][1]["content"], re.DOTALL)[1]


def answer_controls(request: dict[str, Any]) -> str:
    """A model that gets the control questions right, and other questions by their words."""
    control = CONTROLS.get(read_tag(request, "question"))
    if control is None:
        return keyword_handler(request)
    return json.dumps({"supporting": sorted(number + 1 for number in control.supporting)})


def build_handler(choose: Callable[[int], list[int]]) -> Handler:
    """A model that goes by how many sentences there are."""

    def reply(request: dict[str, Any]) -> str:
        return json.dumps({"supporting": choose(read_tag(request, "evidence").count("\n") + 1)})

    return reply


@pytest.fixture
def llm_of() -> Iterator[Callable[[Handler], Llm]]:
    opened: list[Any] = []

    def build(handler: Handler) -> Llm:
        server = OpenAiServer(handler).__enter__()
        made = Llm(base_url=server.base_url, api_key=None, model="small", max_attempts=1)
        opened.extend([made, server])
        return made

    yield build
    for one in opened:
        one.__exit__(None, None, None)


def require(llm: Llm) -> None:
    ModelExam(llm, required=True).require()


def test_a_model_that_is_right_passes(llm_of: Callable[[Handler], Llm]) -> None:
    assert examine(llm_of(answer_controls)) == ExamResult(named=7, right=7, expected=7, refused=0)
    require(llm_of(answer_controls))


@pytest.mark.parametrize(
    "choose",
    [
        lambda count: list(range(1, count + 1)),
        lambda count: [1],
        lambda count: [],
        lambda count: [2, 5] if count >= 5 else [2],  # the prompt's own example
        lambda count: [count],
    ],
    ids=["all", "first", "none", "example", "last"],
)
def test_a_model_that_does_not_read_fails(
    llm_of: Callable[[Handler], Llm], choose: Callable[[int], list[int]]
) -> None:
    with pytest.raises(UnfitModelError, match="ENGRAM_JUDGE_EXAM"):
        require(llm_of(build_handler(choose)))


def test_a_model_that_rambles_fails_and_an_endpoint_that_fails_is_no_model(
    llm_of: Callable[[Handler], Llm],
) -> None:
    with pytest.raises(UnfitModelError, match=r"0 of 7 .* 6 replies were unusable"):
        require(llm_of(lambda _: "Let me think."))
    with pytest.raises(LlmError, match="overloaded") as raised:
        require(llm_of(lambda _: Reply("overloaded", status=503)))
    assert not isinstance(raised.value, UnfitModelError)


def test_verdicts_of_an_unfit_model_are_not_learned(
    http: TestClient, modelled: ModelApplications, curie: str, scoped: Scoped
) -> None:
    http.post("/query", json={"collection": curie, "query": QUESTION})
    judge = modelled.application(build_handler(lambda count: [1])).learning.llm_judge
    for once in (True, False):  # and it does not wait for the model to become better
        with pytest.raises(UnfitModelError):
            judge.run(lambda: [scoped(curie)], once=once)
    assert http.get("/feedback", params={"collection": curie}).json()["feedback"] == []


def test_a_model_that_passes_judges_and_is_examined_once(
    http: TestClient, modelled: ModelApplications, curie: str, scoped: Scoped
) -> None:
    judge = modelled.application(answer_controls).learning.llm_judge
    assert judge.run(lambda: [scoped(curie)], once=True) == 0
    assert modelled.server.requests == []  # nothing waits, so nothing is asked
    for _ in range(2):
        http.post("/query", json={"collection": curie, "query": QUESTION})
        assert judge.run(lambda: [scoped(curie)], once=True) == 1
    assert len(modelled.server.requests) == len(CONTROL_QUESTIONS) + 2


@pytest.mark.wing("sessions")
def test_conclusion_of_an_unfit_model_is_not_learned(
    http: TestClient, modelled: ModelApplications, curie: str, scoped: Scoped
) -> None:
    """The session is answered all the same, and its job says why it taught nothing."""

    def confident(request: dict[str, Any]) -> str:
        system = request["messages"][0]["content"]
        if '"supporting"' in system:
            return json.dumps({"supporting": [1]})
        if '"answer"' in system:
            return json.dumps({"answer": "Warsaw", "cited": [1], "sufficient": True})
        return json.dumps({"answerable": True, "sufficient": True})

    for exam, taught in ((True, False), (False, True)):
        services = modelled.application(confident, judge_exam=exam)
        asked = SessionRequest(top_k=2, threshold=1.0, learn=True, answer=True, stop="llm")
        new = NewSession(question=QUESTION, planner="pool", request=asked, budget=Budget())
        session = sessions_of(services).sessions.wait(
            scoped(curie), sessions_of(services).sessions.start(scoped(curie), new)
        )
        assert session.stored.conclusion is not None
        jobs = http.get(f"/collections/{curie}/jobs").json()["jobs"]
        (latest,) = (one for one in jobs[:1] if one["kind"] == "session")
        assert ("not_learned" in latest["result"]) is not taught
        assert bool(http.get("/feedback", params={"collection": curie}).json()["feedback"]) is taught
