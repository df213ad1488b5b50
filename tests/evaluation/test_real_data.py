"""Real questions, a part small enough for every run: the promises of the README hold in kind, not to the digit."""

from dataclasses import replace
from pathlib import Path

import pytest

from engram_evaluation.dataset import Dataset, load
from tests.evaluation.conftest import FULL, IS_FULL, Evaluate

QUESTIONS = 20 if IS_FULL else 12
JUDGED = 10
OTHER_QUESTIONS = 40 if IS_FULL else 24
"""Passages, at most, that are no question's evidence: most of the time goes into embedding them."""


@pytest.fixture(scope="module", params=["2wiki", pytest.param("hotpotqa", marks=FULL)])
def part(request: pytest.FixtureRequest, evaluation_data: Path) -> Dataset:
    """The first questions of a data set, over all of their passages and some of every part of it."""
    whole = load(evaluation_data / request.param)
    questions = whole.questions[:QUESTIONS]
    gold = {passage for question in questions for passage in question.relevant}
    others = [passage["id"] for passage in whole.passages if passage["id"] not in gold]
    kept = gold.union(others[:: -(-len(others) // OTHER_QUESTIONS)])
    passages = [passage for passage in whole.passages if passage["id"] in kept]
    return replace(whole, name=f"{whole.name}-part", passages=tuple(passages), questions=questions)


@pytest.mark.evaluation_data
def test_the_graph_beats_dense_retrieval_before_anything_is_learned(run_protocol: Evaluate, part: Dataset) -> None:
    report = run_protocol("cold", part)
    recall = {arm: report.value("recall@5", "all questions", 0, arm) for arm in ("dense", "paper", "default")}
    assert recall["paper"] >= recall["dense"] + 0.02
    assert recall["default"] >= recall["paper"] - 0.01


@pytest.mark.evaluation_data
@FULL
def test_one_turn_of_verdicts_helps_and_harms_no_group(run_protocol: Evaluate, part: Dataset) -> None:
    report = run_protocol("similar", part, turns=1, limit=JUDGED)
    assert report.value("recall@5", "judged questions", 1) >= 0.97
    assert report.value("recall@5", "their paraphrases", 1) >= 0.93
    before = report.value("recall@5", "unjudged questions", 0)
    assert report.value("recall@5", "unjudged questions", 1) >= before - 0.025  # about one gold passage
    assert report.value("hops", "judged questions", 1) < report.value("hops", "judged questions", 0)
