"""Paraphrases by a model: what is refused, and protocols that ask them."""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from engram.context.errors import InvalidRequestError, LlmError, LlmNotConfiguredError
from engram.providers.language import Language, load_language
from engram.providers.llm import Llm
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.model_paraphrases import refusal, to_reword
from engram_evaluation.protocols import PARAPHRASES
from engram_evaluation.run_options import Options
from tests.evaluation.conftest import Evaluate
from tests.support.openai_server import OpenAiServer, Reply, keyword_handler

REWORDING = "You put a question into other words"


@pytest.fixture(scope="module")
def language() -> Language:
    return load_language("rules")


@pytest.mark.parametrize(
    ("question", "text", "reason"),
    [
        ("Who directed Green Fields?", "Which person was the director of Green Fields?", None),
        ("Where does Dai Jitao's wife live?", "In what place is the wife of Dai Jitao at home?", None),
        ("How old was Ada Berg in 1950?", "What was the age of Ada Berg in 1950?", None),
        ("Who directed Green Fields?", "who directed the Green Fields", "identical"),
        ("Who directed Green Fields?", "Who was the director of the film?", "names"),
        ("Who directed Green Fields?", "Who was the director of Green River?", "names"),
        ("Who directed Green Fields?", "Which American was the director of Green Fields?", "names"),
        ("Who sang it in 1998?", "By whom was it sung in 1999?", "numbers"),
        ("Who sang it in 1998?", "By whom was it sung?", "numbers"),
        ("Who sang it?", "By whom was it sung 2 times?", "numbers"),
        ("What flows through Lisbon?", "Which river, the tagus perhaps, flows in Lisbon?", "answer"),
        ("Is the Tagus in Lisbon?", "Does the Tagus flow through Lisbon?", None),
    ],
)
def test_names_and_numbers_stay_and_words_change(
    language: Language, question: str, text: str, reason: str | None
) -> None:
    asked = Question("q", question, frozenset("a"), (), "", answers=("Tagus",))
    assert refusal(asked, text, language) == reason


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    return replace(sample_dataset, questions=sample_dataset.questions[:4])


@pytest.fixture
def rewording(run_protocol: Evaluate, few: Dataset) -> Iterator[tuple[Evaluate, Any]]:
    """Protocols with a model that rewords as ``wordings`` say, by question."""
    wordings: dict[str, str] = {question.text: f"{question.text} (please)" for question in few.questions}

    def reply(request: dict[str, Any]) -> str:
        system, user = (message["content"] for message in request["messages"][:2])
        if REWORDING not in system:
            return keyword_handler(request)
        text = wordings[user.removeprefix("<question>\n").removesuffix("\n</question>")]
        return text if text == "no JSON" else json.dumps({"question": text})

    with (
        OpenAiServer(reply) as server,
        closing(Llm(base_url=server.base_url, api_key=None, model="small", max_attempts=1)) as llm,
    ):
        yield partial(run_protocol, models={"llm": llm}), (server, wordings)


def paraphrase_requests(server: OpenAiServer) -> int:
    return sum(REWORDING in request.json["messages"][0]["content"] for request in server.requests)


def test_refused_ones_give_way_to_the_data_sets_own_and_are_counted(
    rewording: tuple[Evaluate, Any], few: Dataset
) -> None:
    run, (server, wordings) = rewording
    first, second, third, fourth = few.questions
    wordings[second.text] = second.text.upper()
    wordings[third.text] = "no JSON"
    own = {key: few.paraphrases[key] for key in (first.id, second.id, fourth.id)}
    dataset = replace(few, paraphrases=own)

    report = run("same", dataset, turns=1, paraphrases="model")

    assert report.rewording is not None
    assert (report.rewording.questions, report.rewording.refused, report.rewording.replaced) == (
        4,
        {"identical": 1, "unusable": 1},
        1,
    )
    assert {key: one.text for key, (one,) in report.dataset.paraphrases.items()} == {
        first.id: f"{first.text} (please)",
        second.id: few.paraphrases[second.id][0].text,
        fourth.id: f"{fourth.text} (please)",
    }
    assert {len(phase.rows) for phase in report.phases if phase.group == PARAPHRASES} == {3}
    markdown = report.markdown()
    assert "2 of 4 paraphrases are by small. Refused: 2 (identical 1, unusable 1)." in markdown
    assert "--paraphrases model" in markdown
    assert report.as_json()["rewording"]["refused"] == {"identical": 1, "unusable": 1}
    assert report.dataset.fingerprint != dataset.fingerprint
    asked = paraphrase_requests(server)
    assert asked == 3 + 2  # what is no JSON is asked for once more
    assert run("same", dataset, turns=1, paraphrases="model").phases == report.phases
    assert paraphrase_requests(server) == asked
    assert run("same", dataset, turns=1).dataset == dataset


def test_a_session_asks_what_the_model_worded(rewording: tuple[Evaluate, Any], few: Dataset) -> None:
    run, (server, _) = rewording
    report = run(
        "session", few, paraphrased=True, paraphrases="model", limit=1, rounds=1, stops=("planner",), llm_calls=2
    )
    assert paraphrase_requests(server) == 1
    prompts = [request.json["messages"][1]["content"] for request in server.requests[1:]]
    assert any("(please)" in prompt for prompt in prompts)
    assert report.rewording is not None
    assert report.rewording.remark() == "1 of 1 paraphrases are by small."


def test_a_failing_endpoint_ends_the_run_and_nothing_is_left_is_told(
    rewording: tuple[Evaluate, Any], few: Dataset
) -> None:
    run, (server, wordings) = rewording
    server.queue(Reply("no", status=503))
    with pytest.raises(LlmError):
        run("similar", few, limit=1, paraphrases="model")
    wordings.update({text: text for text in wordings})
    with pytest.raises(InvalidRequestError, match="made no paraphrase that can be asked"):
        run("same", replace(few, paraphrases={}), limit=2, paraphrases="model")


def test_reworded_questions_are_chosen_by_protocol(few: Dataset) -> None:
    second, third = few.questions[1:3]
    partly = replace(few, paraphrases={one.id: few.paraphrases[one.id] for one in (second, third)})
    model: dict[str, Any] = {"paraphrases": "model", "limit": 2}
    assert to_reword(partly, Options(protocol="similar", **model)) == [second, third]
    assert to_reword(partly, Options(protocol="same", **model)) == list(few.questions[:2])
    assert to_reword(replace(few, paraphrases={}), Options(protocol="similar", **model)) == list(few.questions[:2])
    deep = Options(protocol="session", paraphrased=True, at_least=2, **model)
    assert all(len(one.relevant) >= 2 for one in to_reword(few, deep))


def test_no_model_no_paraphrases(run_protocol: Evaluate, few: Dataset) -> None:
    with pytest.raises(LlmNotConfiguredError, match="--paraphrases model needs ENGRAM_LLM_BASE_URL"):
        run_protocol("same", few, paraphrases="model")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"protocol": "same", "paraphrases": "mine"}, "--paraphrases must be one of data, model"),
        ({"protocol": "cold", "paraphrases": "model"}, "goes with protocols that ask paraphrases"),
        ({"protocol": "different", "paraphrases": "model"}, "goes with protocols that ask paraphrases"),
        ({"protocol": "session", "paraphrases": "model"}, "goes with protocols that ask paraphrases"),
        (
            {"protocol": "same", "paraphrases": "model", "answered": True, "oracle_errors": 0.0},
            "--oracle-errors rewords nothing",
        ),
    ],
)
def test_options_are_checked(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        Options(**wrong)
