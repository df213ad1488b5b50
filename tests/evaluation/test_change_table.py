"""What verdicts change, by visible arithmetic."""

from collections.abc import Mapping

import numpy as np
import pytest

from engram_evaluation.change_table import bootstrap_interval, build_grid, compute_changes, write_change
from engram_evaluation.finished_phases import Phase
from engram_evaluation.retrieval_metrics import QuestionScores


def phase(turn: int, values: Mapping[str, float], seed: int = 0, arm: str = "default") -> Phase:
    rows = tuple(QuestionScores(name, "", (), {"recall@5": value}) for name, value in values.items())
    return Phase(arm, "others", turn, seed, rows)


BEFORE = phase(0, {"a": 0.5, "b": 1.0, "c": 0.25})
AFTER = phase(1, {"a": 1.0, "b": 0.5, "c": 0.25})


def test_a_group_before_after_and_with_memory_off() -> None:
    off = phase(1, {"a": 0.5, "b": 1.0, "c": 0.5})
    (change,) = compute_changes([BEFORE, AFTER], [off], 1, lambda _: ["recall@5", "graded"], {})
    assert (change.questions, change.gained, change.lost) == (3, 1, 1)
    assert change.before == pytest.approx((0.5 + 1.0 + 0.25) / 3)
    assert change.after == pytest.approx((1.0 + 0.5 + 0.25) / 3)
    assert change.off == pytest.approx((0.5 + 1.0 + 0.5) / 3)
    assert change.low < 0 < change.high
    grid = build_grid([change], {"recall@5": "R@5"})
    assert grid.rows[0][:5] == ["others: R@5", "3", "0.583", "0.583", "+0.000"]
    assert grid.rows[0][6:] == ["0.667", "1", "1"]
    assert write_change(change).endswith("1 of 3 lose")


def test_seeds_are_averaged_per_question() -> None:
    more = phase(1, {"a": 0.5, "b": 0.5, "c": 0.25}, seed=1)
    (change,) = compute_changes([BEFORE, AFTER, more], [], 1, lambda _: ["recall@5"], {})
    assert change.after == pytest.approx(((1.0 + 0.5) / 2 + 0.5 + 0.25) / 3)
    assert change.off is None
    assert "memory off" not in build_grid([change], {"recall@5": "R@5"}).headings


def test_an_arm_is_compared_with_its_base() -> None:
    phases = [phase(0, {"a": 0.25}, arm="base"), phase(1, {"a": 1.0}, arm="evolved")]
    (change,) = compute_changes(phases, [], 1, lambda _: ["recall@5"], {}, lambda _: "base")
    assert (change.arm, change.before, change.after) == ("evolved", 0.25, 1.0)


def test_paraphrases_of_one_question_are_drawn_together() -> None:
    """Two copies of each value say no more than one: the interval is that of the single values."""
    values = np.array([0.0, 1.0, 0.5, 0.25])
    pairs = np.repeat(values, 2)
    assert bootstrap_interval(pairs, [*"aabbccdd"]) == pytest.approx(bootstrap_interval(values))
    low, high = bootstrap_interval(pairs)
    single_low, single_high = bootstrap_interval(values)
    assert single_low < low < high < single_high
