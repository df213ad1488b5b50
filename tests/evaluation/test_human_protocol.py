"""Ratings by people: what they say as verdicts, who is held out, and what they teach a real collection."""

from dataclasses import replace
from itertools import cycle
from math import log2
from typing import Any
from uuid import uuid4

import pytest

from engram.context.errors import InvalidRequestError
from engram.services.verdict.verdict import Verdict
from engram_evaluation import change_table, ratings_table
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.harness import Harness
from engram_evaluation.human_protocol import split
from engram_evaluation.learning_variations import HUMAN
from engram_evaluation.rating_scale import SCALE, PassageRatings, as_verdict, is_agreed, mean_value
from engram_evaluation.report_page import gather
from engram_evaluation.retrieval_metrics import compute_graded_ndcg
from tests.evaluation.conftest import Evaluate

OURS, _, FIXED, LAST = (rule.name for rule in HUMAN)


@pytest.fixture
def rated(sample_dataset: Dataset) -> Dataset:
    """Eight questions, six of them rated: their passage is excellent, and so is one that answers something else.

    Of every second one raters disagree. The last rated question has no label.
    """
    questions = sample_dataset.questions[:8]
    words = cycle([("Excellent", "Excellent", "Acceptable"), ("Excellent", "Bad", "Acceptable")])
    pairs: dict[str, tuple[PassageRatings, ...]] = {}
    for at, question in enumerate(questions[:6]):
        foreign = min(questions[(at + 1) % 8].relevant - question.relevant)
        pairs[question.id] = (
            PassageRatings(min(question.relevant), ("Bad", "Bad", "Could be Improved")),
            PassageRatings(foreign, next(words)),
        )
    last = replace(questions[5], relevant=frozenset())
    return replace(
        sample_dataset,
        questions=(*questions[:5], *questions[6:]),
        unlabelled=(last,),
        ratings=pairs,
        paraphrases={},
    )


def test_words_are_verdicts_and_as_sure_as_they_are_far_from_the_middle() -> None:
    assert {word: as_verdict(word) for word in SCALE} == {
        "Excellent": (1, 1.0),
        "Acceptable": (1, pytest.approx(1 / 3)),
        "Could be Improved": (0, pytest.approx(1 / 3)),
        "Bad": (0, 1.0),
    }
    assert mean_value(["Excellent", "Acceptable", "Bad"]) == pytest.approx((1 + 2 / 3 + 0) / 3)


def test_raters_agree_unless_they_split_on_a_passage() -> None:
    assert is_agreed(
        [PassageRatings("a", ("Excellent", "Acceptable")), PassageRatings("b", ("Bad", "Could be Improved"))]
    )
    assert not is_agreed(
        [PassageRatings("a", ("Excellent", "Excellent")), PassageRatings("b", ("Bad", "Acceptable"))]
    )


def test_graded_ndcg_by_hand() -> None:
    gains = {"a": 1.0, "b": 1 / 3, "c": 0.0}
    best = 1.0 / log2(2) + (1 / 3) / log2(3)
    assert compute_graded_ndcg(["b", "x", "a"], gains) == pytest.approx(((1 / 3) / log2(2) + 1.0 / log2(4)) / best)
    assert compute_graded_ndcg(["a", "b", "c"], gains) == pytest.approx(1.0)
    assert compute_graded_ndcg(["x", "a"], gains, depth=1) == 0.0
    assert compute_graded_ndcg([], gains) == 0.0
    with pytest.raises(ValueError, match="above 0"):
        compute_graded_ndcg(["c"], {"c": 0.0})


def test_half_of_the_rated_questions_teach_and_one_rater_of_each_is_held_out(rated: Dataset) -> None:
    parts = split(rated, None, 0)
    assert parts == split(rated, None, 0)
    assert parts != split(rated, None, 1)
    taught = {question.id for question, _ in parts.taught}
    untaught = {question.id for question in parts.untaught}
    assert (len(taught), taught | untaught, taught & untaught) == (3, rated.ratings.keys(), set())
    assert {question.id for question in parts.others} == {q.id for q in rated.questions} - rated.ratings.keys()
    assert {held for seed in range(9) for _, held in split(rated, None, seed).taught} == {0, 1, 2}
    few = split(rated, 2, 0)
    assert [len(part) for part in (few.taught, few.untaught, few.others)] == [1, 1, 2]


def test_a_rater_is_held_out_of_all_passages_of_a_question(rated: Dataset) -> None:
    short = {
        key: (pairs[0], PassageRatings(pairs[1].passage_id, pairs[1].words[:2]))
        for key, pairs in rated.ratings.items()
    }
    of_two = replace(rated, ratings=short)
    assert {held for seed in range(9) for _, held in split(of_two, None, seed).taught} == {0, 1}


def test_split_needs_ratings_by_several_people(rated: Dataset, run_protocol: Evaluate) -> None:
    alone = {
        key: tuple(PassageRatings(p.passage_id, p.words[:1]) for p in pairs) for key, pairs in rated.ratings.items()
    }
    for without in (alone, {}):
        with pytest.raises(InvalidRequestError, match="too few ratings"):
            split(replace(rated, ratings=without), None, 0)


def test_human_ratings_are_learned_and_unseen_sentences_left_alone(
    rated: Dataset, run_protocol: Evaluate, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[tuple[Question, Verdict]] = []
    give = Harness.give

    def heard(self: Harness, question: Question, verdict: Verdict) -> Any:
        given.append((question, verdict))
        return give(self, question, verdict)

    monkeypatch.setattr(Harness, "give", heard)
    report = run_protocol("human", rated)

    # Two raters of three, on two passages of three questions, by four rules.
    assert len(given) == 2 * 2 * 3 * len(HUMAN)
    assert all(verdict.partial and len(verdict.named) == 1 for _, verdict in given)
    held = {question.id: rater for question, rater in split(rated, None, 0).taught}
    for question, verdict in given:
        (named,) = verdict.named
        pair = next(pair for pair in rated.ratings[question.id] if pair.passage_id == named.passage_id)
        rater = int(verdict.judge.removeprefix("rater ")) - 1
        assert rater != held[question.id]
        assert (int(bool(verdict.supporting)), verdict.confidence) == as_verdict(pair.words[rater])

    for rule in (OURS, LAST):
        before = report.value("graded", ratings_table.TAUGHT_GROUP, 0, rule)
        assert report.value("graded", ratings_table.TAUGHT_GROUP, 1, rule) > before
    # A rate that hears doubt as loudly as conviction is another rule than ours.
    taught = {rule: report.value("graded", ratings_table.TAUGHT_GROUP, 1, rule) for rule in (OURS, FIXED, LAST)}
    assert len(set(taught.values())) > 1
    agree, disagree = (
        part(ratings_table.TAUGHT_GROUP)
        for part in (ratings_table.name_agreeing_group, ratings_table.name_disagreeing_group)
    )
    counts = {line.group: line.questions for line in report.lines() if line.arm == OURS}
    assert counts.get(agree, 0) + counts.get(disagree, 0) == counts[ratings_table.TAUGHT_GROUP]
    assert counts[ratings_table.OTHER_GROUP] == 2


def test_the_report_sets_the_rules_side_by_side(rated: Dataset, run_protocol: Evaluate, tmp_path: Any) -> None:
    report = run_protocol("human", rated, limit=4, seeds=(0, 1))
    markdown = report.markdown()
    assert "6 rated, 1 of them besides these." in markdown
    assert report.options.command("sample") == (
        "engram evaluate sample --protocol human --profile default --seed 0 --seed 1 --limit 4"
    )
    headings = f"| {ratings_table.METRICS['rated']} | n | before | " + " | ".join(rule.name for rule in HUMAN)
    assert headings in markdown
    line = next(line for line in markdown.splitlines() if line.startswith(f"| {ratings_table.TAUGHT_GROUP} | "))
    shown = [cell.strip() for cell in line.strip("|").split("|")][2:]
    first = report.value("rated", ratings_table.TAUGHT_GROUP, 0, OURS)
    rules = [report.value("rated", ratings_table.TAUGHT_GROUP, 1, rule.name) for rule in HUMAN]
    assert shown == [f"{value:.3f}" for value in (first, *rules)]
    changes = {line.split(" | ")[0] for line in markdown.partition(f"## {change_table.TITLE}")[2].splitlines()}
    assert {f"| {ratings_table.OTHER_GROUP}: R@5", f"| {ratings_table.UNTAUGHT}: nDCG@10 by ratings"} <= changes
    assert {phase.arm for phase in report.drift} == {OURS}
    page = gather([tmp_path])
    assert (
        headings.replace(f"| {ratings_table.METRICS['rated']}", f"| sample: {ratings_table.METRICS['rated']}")
        in page
    )
    assert line in page


def test_unlabelled_data_set_is_refused(rated: Dataset, run_protocol: Evaluate) -> None:
    with pytest.raises(InvalidRequestError, match="labels no passage as relevant, so --protocol cold"):
        run_protocol("cold", replace(rated, name=f"none-{uuid4().hex[:8]}", questions=()))
