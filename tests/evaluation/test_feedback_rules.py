"""Rules of other systems, by the numbers that their sources have."""

import pytest

from engram_evaluation.feedback_rules import MovingAverage, RatedAnswer, Votes, reorder_candidates, scale_scores

SCORED = [("a", 3.0), ("b", 2.0), ("c", 1.0)]


def thumb(*cited: str, up: bool = True) -> RatedAnswer:
    return RatedAnswer("q", up, ("a", "b", "c"), cited)


def test_scores_are_scaled_over_the_candidates() -> None:
    assert scale_scores(SCORED) == {"a": 1.0, "b": 0.5, "c": 0.0}
    assert scale_scores([("a", 2.0), ("b", 2.0)]) == {"a": 1.0, "b": 1.0}
    assert scale_scores([]) == {}


def test_votes_add_one_per_citation_and_stay_nonnegative() -> None:
    votes = Votes()
    votes.learn(thumb("b", "c"), scale_scores(SCORED))
    votes.learn(thumb("a", up=False), scale_scores(SCORED))
    assert [votes.score(passage, 0.5) for passage in "abc"] == [0.5, 1.5, 1.5]
    assert reorder_candidates(SCORED, votes) == ["b", "a", "c"]


def test_without_citations_all_that_was_shown_is_meant() -> None:
    votes = Votes()
    votes.learn(thumb(), scale_scores(SCORED))
    assert [votes.score(passage, 0.0) for passage in "abcd"] == [1.0, 1.0, 1.0, 0.0]


def test_a_budget_is_split_by_score() -> None:
    votes = Votes(None)
    votes.learn(thumb("a", "b"), scale_scores(SCORED))
    assert votes.score("a", 0.0) == pytest.approx(0.1 * 1.0 / 1.5)
    assert votes.score("b", 0.0) == pytest.approx(0.1 * 0.5 / 1.5)
    votes.learn(thumb("c"), {"c": 0.0})
    assert votes.score("c", 0.0) == pytest.approx(0.1)


def test_a_moving_average_begins_in_the_middle() -> None:
    average = MovingAverage()
    assert average.score("a", 1.0) == pytest.approx(0.9 + 0.1 * 0.5)
    average.learn(thumb("a"), scale_scores(SCORED))
    assert average.score("a", 0.0) == pytest.approx(0.1 * (0.5 + 0.1 * 0.5))
    average.learn(thumb("a", up=False), scale_scores(SCORED))
    assert average.score("a", 0.0) == pytest.approx(0.1 * 0.55 * 0.9)


def test_equal_scores_keep_their_order() -> None:
    assert reorder_candidates([("b", 1.0), ("a", 1.0)], MovingAverage()) == ["b", "a"]
