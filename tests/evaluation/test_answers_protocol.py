"""Answers in words: how they are compared, and the protocol against a real endpoint with a program for a model."""

import json
import re
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError, LlmError, LlmNotConfiguredError
from engram_evaluation.answer_marking import contains, normalise_answer, score_exact_match, token_f1
from engram_evaluation.answers_protocol import GROUP, marks
from engram_evaluation.dataset import Dataset
from engram_evaluation.protocols import QUESTIONS_PER_FILE
from engram_evaluation.report_page import gather
from engram_evaluation.run_options import Options
from tests.evaluation.conftest import Evaluate
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.openai_server import OpenAiServer, Reply


def test_squad_normalisation() -> None:
    assert normalise_answer("  The U.S.  of an   America! ") == "us of america"
    assert normalise_answer("another theory") == "another theory"


@pytest.mark.parametrize(
    ("answer", "accepted", "em", "f1", "inside"),
    [
        ("The Tagus.", ["Tagus"], 1.0, 1.0, 1.0),
        ("the river Tagus in Lisbon", ["Tagus River"], 0.0, 2 * 2 / (4 + 2), 0.0),
        ("It is the Tagus river, of course", ["Lisbon", "a Tagus river"], 0.0, 2 * 2 / (6 + 2), 1.0),
        ("north", ["no"], 0.0, 0.0, 0.0),
        ("Douro Douro", ["Douro"], 0.0, 2 * 1 / (2 + 1), 1.0),
        ("", ["Tagus"], 0.0, 0.0, 0.0),
        ("", ["the"], 1.0, 1.0, 0.0),
    ],
)
def test_marks_by_hand(answer: str, accepted: list[str], em: float, f1: float, inside: float) -> None:
    assert score_exact_match(answer, accepted) == em
    assert token_f1(answer, accepted) == pytest.approx(f1)
    assert contains(answer, accepted) == inside
    assert marks(answer, accepted) == {"em": em, "f1": pytest.approx(f1), "contains": inside}


def test_exact_match_needs_an_accepted_answer() -> None:
    with pytest.raises(ValueError, match="no accepted answer"):
        score_exact_match("Tagus", [])


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    """Three questions, of which the first accepts a word that stands in its gold sentence."""
    first, *others = sample_dataset.questions[:3]
    word = max(first.gold[0].text.split(), key=len)
    accepted = [replace(first, answers=(word,)), *(replace(other, answers=("Zyxwvut",)) for other in others)]
    return replace(sample_dataset, questions=tuple(accepted))


def test_answers_are_marked_by_words_and_by_a_model(
    answering: Evaluate, server: OpenAiServer, few: Dataset, tmp_path: Path
) -> None:
    report = answering("answers", few)

    rows = report.phases[0].rows
    asked = [request.json for request in server.requests]
    drafts = [request for request in asked if '"cited"' in request["messages"][0]["content"]]
    marked = [request for request in asked if '"strict"' in request["messages"][0]["content"]]
    assert len(drafts) == 3
    assert len(marked) <= 3  # none for an empty answer
    assert [row.id for row in rows] == [question.id for question in few.questions]
    assert all({"em", "f1", "contains", "strict", "lenient", "recall@5"} <= row.values.keys() for row in rows)
    assert all(row.values["lenient"] == row.values["em"] == 0.0 for row in rows[1:])
    words = sum(len(message["content"].split()) for request in drafts for message in request["messages"])
    assert sum(row.values["prompt_tokens"] for row in rows) == words
    judged = sum(len(message["content"].split()) for request in marked for message in request["messages"])
    assert sum(row.values["judge_prompt_tokens"] for row in rows) == judged
    markdown = report.markdown()
    assert "| | n | EM | F1 | contains | strict | lenient | unusable | R@5 |".replace("| |", "|  |") in markdown
    assert "Indexing the corpus took" in markdown
    document = json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))
    assert document["engine"]["llm_model"]
    assert document["indexing"]["seconds"] > 0
    assert "EM / F1 / contains" in gather([tmp_path])


def test_the_answer_is_made_of_the_first_passages(answering: Evaluate, server: OpenAiServer, few: Dataset) -> None:
    lengths = []
    for top_k in (1, 5):
        before = len(server.requests)
        answering("answers", few, limit=1, top_k=top_k)
        lengths.append(len(server.requests[before].json["messages"][1]["content"]))
    assert lengths[0] < lengths[1]


def test_a_data_set_without_any_label_can_be_answered(answering: Evaluate, few: Dataset) -> None:
    bare = tuple(replace(question, relevant=frozenset(), gold=()) for question in few.questions)
    report = answering("answers", replace(few, questions=(), unlabelled=bare, paraphrases={}))
    (line,) = report.lines()
    assert (line.group, line.questions) == (GROUP, 3)
    assert "recall@5" not in line.values
    assert "passages, 3 questions." in report.markdown()
    assert "f1" in line.values


def test_marks_made_before_an_endpoint_failure_are_reused(
    answering: Evaluate, server: OpenAiServer, sample_dataset: Dataset
) -> None:
    several = replace(
        sample_dataset,
        questions=tuple(
            replace(q, answers=("Zyxwvut",)) for q in sample_dataset.questions[: QUESTIONS_PER_FILE + 2]
        ),
    )
    answering("answers", several, limit=QUESTIONS_PER_FILE)
    done = len(server.requests)
    server.queue(Reply("no", status=503))
    with pytest.raises(LlmError):
        answering("answers", several)
    report = answering("answers", several)
    assert len(report.phases[0].rows) == QUESTIONS_PER_FILE + 2
    assert len(server.requests) - done <= 1 + 2 * 2


def test_an_unusable_reply_is_a_wrong_answer_and_is_counted(
    answering: Evaluate, server: OpenAiServer, few: Dataset
) -> None:
    server.queue("I would rather not say.", "Still not.")
    (line,) = answering("answers", few).lines()
    assert (line.questions, line.values["unusable"]) == (3, pytest.approx(1 / 3))
    number = re.search(r"^\[(\d+)\]", server.requests[0].json["messages"][1]["content"], re.MULTILINE)
    assert number is not None
    draft = {"answer": "Lisbon", "cited": [int(number[1])], "sufficient": True}
    server.queue(json.dumps(draft), "no mark", "none again")
    (row,) = answering("answers", few, limit=1).phases[0].rows
    assert row.values["unusable"] == 1.0
    assert "strict" not in row.values
    assert "f1" in row.values


def test_no_endpoint_no_answers(run_protocol: Evaluate, few: Dataset) -> None:
    with pytest.raises(LlmNotConfiguredError, match="--protocol answers needs ENGRAM_LLM_BASE_URL"):
        run_protocol("answers", few)


def test_the_command_without_an_endpoint_fails_in_one_line(tmp_path: Path, application: Application) -> None:
    cli = Cli(tmp_path, UNREACHABLE_URL, application.settings.data_dir)
    assert "needs ENGRAM_LLM_BASE_URL" in cli.fails("evaluate", "sample", "--protocol", "answers")
    assert not (tmp_path / "reports").exists()


def test_the_command_answers_through_an_endpoint(
    tmp_path: Path, application: Application, server: OpenAiServer
) -> None:
    cli = Cli(tmp_path, UNREACHABLE_URL, application.settings.data_dir)
    done = cli(
        *("evaluate", "sample", "--protocol", "answers", "--limit", "2"), ENGRAM_LLM_BASE_URL=server.base_url
    )
    assert done.returncode == 0, done.stderr
    assert "lenient" in done.stdout
    assert server.requests


def test_questions_without_answers_cannot_be_marked(answering: Evaluate, sample_dataset: Dataset) -> None:
    mute = tuple(replace(question, answers=()) for question in sample_dataset.questions[:2])
    with pytest.raises(InvalidRequestError, match="has no answers"):
        answering("answers", replace(sample_dataset, questions=mute, name=f"sample-{uuid4().hex[:6]}"))


@pytest.mark.parametrize("top_k", [0, 11])
def test_top_k_is_checked(top_k: int) -> None:
    with pytest.raises(InvalidRequestError, match="--top-k"):
        Options(protocol="answers", top_k=top_k)
    with pytest.raises(InvalidRequestError, match="--top-k means nothing"):
        Options(protocol="cold", top_k=3)
