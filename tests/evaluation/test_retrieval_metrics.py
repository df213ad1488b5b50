"""Metrics against arithmetic done by hand."""

import math

import pytest

from engram_evaluation.baselines import reciprocal_rank_fusion
from engram_evaluation.change_table import bootstrap_interval
from engram_evaluation.dataset import GoldSentence, Question
from engram_evaluation.retrieval_metrics import (
    QuestionResult,
    QuestionScores,
    compute_supporting_recall,
    is_match,
    score,
    summary,
)

GOLD = (GoldSentence("a", "A is first."), GoldSentence("b", "B is second."))


def question(identity: str, *relevant: str, gold: tuple[GoldSentence, ...] = ()) -> Question:
    return Question(identity, f"question {identity}?", frozenset(relevant), gold, "toy")


TOY = [
    # Both relevant passages, at ranks 1 and 3.
    QuestionResult(
        question("q1", "a", "b", gold=GOLD), ["a", "x", "b"], [GOLD[0], GoldSentence("x", "X.")], 2, 0, 10.0
    ),
    # One of two, at rank 4.
    QuestionResult(question("q2", "c", "d"), ["x", "y", "z", "c"], [], 3, 2, 30.0),
    # Nothing came back.
    QuestionResult(question("q3", "e"), [], [], 1, 0, 20.0),
]


@pytest.mark.parametrize(
    ("relevant", "ranking", "all_found"),
    [
        ("ab", "axbyz", 1.0),
        ("ab", "axyzwb", 0.0),
        ("abcdefg", "gfedca", 1.0),  # five of seven are all that five places can hold
        ("abcdefg", "gfedxa", 0.0),
    ],
)
def test_all_at_k_needs_every_relevant_passage(relevant: str, ranking: str, all_found: float) -> None:
    (scored,) = score([QuestionResult(question("q", *relevant), list(ranking))])
    assert scored.values["all@5"] == all_found


def test_every_question_is_scored_as_by_hand() -> None:
    first, second, third = score(TOY)
    ideal_of_two = 1 + 1 / math.log2(3)
    assert first.values == pytest.approx(
        {
            "recall@2": 1 / 2,
            "recall@5": 2 / 2,
            "all@5": 1.0,
            "recall@10": 2 / 2,
            "ndcg@10": (1 + 1 / math.log2(4)) / ideal_of_two,
            "ndcg@1": 1.0,
            "mrr": 1.0,
            "support": 1 / 2,
            "hops": 2,
            "shown": 2,
            "llm_calls": 0,
            "ms": 10.0,
        }
    )
    assert second.values == pytest.approx(
        {
            "recall@2": 0.0,
            "recall@5": 1 / 2,
            "all@5": 0.0,
            "recall@10": 1 / 2,
            "ndcg@10": (1 / math.log2(5)) / ideal_of_two,
            "ndcg@1": 0.0,
            "mrr": 1 / 4,
            "hops": 3,
            "shown": 0,
            "llm_calls": 2,
            "ms": 30.0,
        }
    )
    assert [third.values[name] for name in ("recall@10", "ndcg@10", "mrr")] == [0.0, 0.0, 0.0]


def test_the_mean_is_over_the_questions_that_have_a_metric() -> None:
    means = summary(score(TOY))
    assert means["recall@5"] == pytest.approx((1 + 1 / 2 + 0) / 3)
    assert means["support"] == pytest.approx(1 / 2)
    assert means["hops"] == pytest.approx((2 + 3 + 1) / 3)
    assert means["ms"] == 20.0


def test_equal_scores_keep_the_order_that_was_answered() -> None:
    ranking = ["b", "a", "c"]
    (row,) = score([QuestionResult(question("q", "a"), ranking)])
    assert row.ranking == ("b", "a", "c")
    assert row.values["mrr"] == pytest.approx(1 / 2)


def test_only_ten_ranks_count() -> None:
    (row,) = score([QuestionResult(question("q", "late"), [*(f"p{rank}" for rank in range(10)), "late"])])
    assert row.values["recall@10"] == 0.0
    assert len(row.ranking) == 10


def test_a_question_observed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        score([TOY[0], TOY[0]])


def test_sentences_are_the_same_in_the_same_passage_only() -> None:
    assert is_match(GoldSentence("a", "A is  first."), GoldSentence("a", "a is first. And more."))
    assert not is_match(GoldSentence("a", "A is first."), GoldSentence("b", "A is first."))
    assert not is_match(GoldSentence("a", "A is first."), GoldSentence("a", ""))
    assert compute_supporting_recall(GOLD, [GOLD[1]]) == 1 / 2


def test_a_row_survives_json() -> None:
    row = score(TOY)[0]
    assert QuestionScores.from_json(row.as_json()) == row


def test_reciprocal_rank_fusion_adds_reciprocal_ranks() -> None:
    # a: 1/61 + 1/63, b: 1/62 + 1/61, c: 1/63, d: 1/62
    assert reciprocal_rank_fusion([["a", "b", "c"], ["b", "d", "a"]]) == ["b", "a", "d", "c"]


def test_a_grade_of_1_gains_nothing() -> None:
    graded = Question("q", "?", frozenset({"a"}), (), "toy", grades={"a": 4.0, "b": 2.0, "x": 1.0})
    (row,) = score([QuestionResult(graded, ["x", "b", "a"])])
    best = 3 / math.log2(2) + 1 / math.log2(3)
    assert row.values["graded"] == pytest.approx((1 / math.log2(3) + 3 / math.log2(4)) / best)
    assert "graded" not in score([QuestionResult(question("q", "a"), ["a"])])[0].values


def test_the_interval_of_a_constant_is_that_constant() -> None:
    import numpy as np

    assert bootstrap_interval(np.full(7, 0.25)) == (0.25, 0.25)
    low, high = bootstrap_interval(np.array([0.0, 1.0] * 50))
    # The standard error of the mean is 0.05, so the 95% interval is near 0.5 ± 0.098.
    assert low == pytest.approx(0.402, abs=0.02)
    assert high == pytest.approx(0.598, abs=0.02)
