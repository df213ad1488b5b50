"""Answers in words over turns of verdicts, by a program that speaks the endpoint's protocol."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engram.context.errors import InvalidRequestError, LlmError, LlmNotConfiguredError
from engram_evaluation.dataset import Dataset
from engram_evaluation.protocols import JUDGED_GROUP, OTHER_HALF, PARAPHRASES, UNJUDGED
from engram_evaluation.report_page import gather
from engram_evaluation.report_table import ANSWER_COLUMNS
from engram_evaluation.run_options import Options
from tests.evaluation.conftest import Evaluate
from tests.support.openai_server import OpenAiServer, Reply


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    """Five questions that accept a word of their gold sentence, and their paraphrases; the last accepts none."""
    questions = [
        replace(question, answers=(max(question.gold[0].text.split(), key=len),))
        for question in sample_dataset.questions[:5]
    ]
    questions[-1] = replace(questions[-1], answers=())
    paraphrases = {
        question.id: (replace(sample_dataset.paraphrases[question.id][0], answers=question.answers),)
        for question in questions
    }
    return replace(sample_dataset, questions=tuple(questions), paraphrases=paraphrases)


def drafts(server: OpenAiServer) -> int:
    """Count the requests for an answer."""
    return sum('"cited"' in request.json["messages"][0]["content"] for request in server.requests)


def test_each_turn_is_answered_in_words_and_marked(
    answering: Evaluate, server: OpenAiServer, few: Dataset, tmp_path: Path
) -> None:
    report = answering("unrelated", few, limit=2, turns=2, answered=True)

    assert {(line.group, line.turn) for line in report.lines()} == {
        (group, turn) for group in (JUDGED_GROUP, PARAPHRASES, UNJUDGED) for turn in (0, 1, 2)
    }
    assert all(set(ANSWER_COLUMNS) <= line.values.keys() for line in report.lines())
    assert drafts(server) == 3 * (2 + 2 + 2)  # three unjudged ones, of which one accepts no answer
    unjudged = [phase for phase in report.phases if phase.group == UNJUDGED]
    assert [["f1" in row.values for row in phase.rows] for phase in unjudged] == [[True, True, False]] * 3
    assert all("recall@5" in row.values for phase in unjudged for row in phase.rows)
    markdown = report.markdown()
    assert "|  | EM | F1 | contains | strict | lenient | unusable |" in markdown
    assert "judged questions, turn 2" in markdown
    _, table = report.build_further_tables()
    assert [column.header for column in table.columns][1:3] == ["EM", "F1"]
    document = json.loads(next(tmp_path.glob("*.json")).read_text(encoding="utf-8"))
    assert document["engine"]["llm_model"]
    assert document["command"].endswith("--answered --limit 2")
    assert "EM / F1 / contains" in gather([tmp_path])


def test_a_later_turn_asks_for_its_own_answers_only(
    answering: Evaluate, server: OpenAiServer, few: Dataset
) -> None:
    first = answering("same", few, limit=1, turns=1, answered=True)
    asked = drafts(server)
    assert answering("same", few, limit=1, turns=1, answered=True).phases == first.phases
    assert drafts(server) == asked
    longer = answering("same", few, limit=1, turns=2, answered=True)
    assert drafts(server) == asked * 3 // 2
    assert [phase for phase in longer.phases if phase.turn < 2] == list(first.phases)
    answering("same", few, limit=1, turns=1, answered=True, top_k=1)
    assert drafts(server) == asked * 5 // 2


def test_turns_that_were_measured_are_answered_afterwards(
    answering: Evaluate, server: OpenAiServer, few: Dataset
) -> None:
    measured = answering("same", few, limit=1, turns=1)
    assert not server.requests
    worded = answering("same", few, limit=1, turns=1, answered=True)
    assert [[row.ranking for row in phase.rows] for phase in worded.phases] == [
        [row.ranking for row in phase.rows] for phase in measured.phases
    ]
    assert all("f1" in phase.rows[0].values for phase in worded.phases)


def test_what_was_answered_before_the_endpoint_failed_is_kept(
    answering: Evaluate, server: OpenAiServer, few: Dataset
) -> None:
    whole = answering("different", few, limit=1, turns=1, answered=True)
    asked = drafts(server)
    server.queue(Reply("no", status=503))
    with pytest.raises(LlmError):
        answering("different", few, limit=1, turns=2, answered=True)
    again = answering("different", few, limit=1, turns=2, answered=True)
    assert [phase for phase in again.phases if phase.turn < 2] == list(whole.phases)
    assert {phase.group for phase in again.phases} == {JUDGED_GROUP, PARAPHRASES, OTHER_HALF}
    assert drafts(server) == asked + 1 + asked // 2


def test_variations_answer_alike_before_any_verdict(
    answering: Evaluate, server: OpenAiServer, few: Dataset
) -> None:
    report = answering("noise", few, limit=1, turns=1, answered=True)
    arms = {phase.arm for phase in report.phases}
    before = {
        phase.arm: [row.values["f1"] for row in phase.rows]
        for phase in report.phases
        if phase.turn == 0 and phase.group == JUDGED_GROUP
    }
    assert before.keys() == arms
    assert len({tuple(values) for values in before.values()}) == 1
    assert len(report.build_further_tables()) == 2


def test_what_answers_need_is_checked_first(run_protocol: Evaluate, few: Dataset) -> None:
    with pytest.raises(LlmNotConfiguredError, match="--answered needs ENGRAM_LLM_BASE_URL"):
        run_protocol("same", few, answered=True)


def test_without_accepted_answers_there_is_nothing_to_mark(answering: Evaluate, few: Dataset) -> None:
    mute = tuple(replace(question, answers=()) for question in few.questions)
    with pytest.raises(InvalidRequestError, match="has no answers"):
        answering("same", replace(few, questions=mute), answered=True)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"protocol": "stream", "answered": True}, "--answered means nothing"),
        ({"protocol": "same", "top_k": 3}, "--top-k means nothing to same without --answered"),
        ({"protocol": "same", "oracle_errors": 0.0}, "--oracle-errors means nothing to same without --answered"),
        ({"protocol": "same", "answered": True, "live": True}, "--live means nothing"),
    ],
)
def test_options_are_checked(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        Options(**wrong)
    assert Options(protocol="same", answered=True, top_k=3, oracle_errors=0.0).answered
