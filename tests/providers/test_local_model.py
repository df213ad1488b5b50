"""A real chat model behind OpenAI's protocol: SmolLM2-135M, which is weak, served by llama.cpp.

One test is short and always run. The others ask every use and take minutes: ``pytest -m model tests/providers``.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from engram.context.errors import LlmRefusalError, UnfitModelError
from engram.providers.llm import Judgement, Llm
from engram.services.judges.judge_exam import ModelExam
from engram.wings.agent.llm import agent_model
from tests.providers.test_llm_bad_replies import OBSERVATION, SENTENCES, USES, Use
from tests.support.local_model import local_model

REPLY_TOKENS = 200


@pytest.fixture(scope="module")
def llm() -> Iterator[Llm]:
    with (
        local_model(REPLY_TOKENS) as url,
        Llm(base_url=url, api_key=None, model="SmolLM2-135M", timeout_seconds=240.0, max_attempts=1) as client,
    ):
        yield client


def test_the_schema_is_taken_and_its_reply_read(llm: Llm) -> None:
    """A grammar made of the schema leaves the model no other reply, whatever it makes of the question."""
    assert llm.is_sufficient("Where was Ada born?", ["Ada was born in Lisbon."]) in {True, False}
    assert llm.usage.calls == 1
    assert llm.usage.prompt_tokens > 100
    assert 0 < llm.usage.completion_tokens < REPLY_TOKENS


def result_of(call: Callable[[], Any]) -> Any:
    """Make a call; None if the model twice replied with something unusable."""
    try:
        return call()
    except LlmRefusalError as error:
        if "twice replied with something unusable" not in error.detail:
            raise
        return None


@pytest.mark.model
@pytest.mark.parametrize("use", USES.values(), ids=USES.keys())
def test_a_use_comes_to_a_valid_result_or_is_refused(llm: Llm, use: Use) -> None:
    came = result_of(lambda: use.call(llm))
    if isinstance(came, Judgement):
        assert set(came.supporting) <= {key for key, _ in SENTENCES}


@pytest.mark.model
def test_a_turn_is_one_that_is_offered_or_is_refused(llm: Llm) -> None:
    turn = result_of(lambda: agent_model.ask_turn(llm, OBSERVATION))
    assert turn is None or turn.act in OBSERVATION.offered


@pytest.mark.model
def test_the_model_may_not_judge(llm: Llm) -> None:
    with pytest.raises(UnfitModelError, match="SmolLM2-135M failed the control questions"):
        ModelExam(llm, required=True).require()
