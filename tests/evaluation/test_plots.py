"""Gain and perplexity dynamics by hand, and plots that are PNG files."""

from dataclasses import replace
from pathlib import Path

import pytest
from engram_evaluation.dataset import Dataset
from engram_evaluation.dynamics import dynamics

from tests.evaluation.conftest import Evaluate


def test_dynamics_of_a_fresh_memory() -> None:
    (course,) = dynamics(2, 0.001, [0.5])
    first = 1 / (1 + 0.5)
    after = (1 - first) * 1 + 0.001
    second = after / (after + 0.5)
    assert course.gains == pytest.approx((first, second))
    assert course.perplexities == pytest.approx((1, after, (1 - second) * after + 0.001))


def test_unreliable_verdicts_teach_less_and_leave_more_doubt() -> None:
    sure, unsure = dynamics(20, 0.001, [0.5, 5.0])
    assert all(a > b for a, b in zip(sure.gains[:3], unsure.gains[:3], strict=True))
    assert all(a < b for a, b in zip(sure.perplexities[1:], unsure.perplexities[1:], strict=True))
    # The figure the process noise was chosen by: 1 - π = 0.95 at R = 0.5 after 10 updates.
    assert 1 - sure.perplexities[10] == pytest.approx(0.95, abs=0.005)


@pytest.mark.parametrize(
    ("protocol", "plots"),
    [("cold", []), ("different", ["memories", "turns", "perplexity"]), ("stream", ["running"])],
)
def test_a_report_comes_with_its_plots(
    run_protocol: Evaluate, sample_dataset: Dataset, tmp_path: Path, protocol: str, plots: list[str]
) -> None:
    few = replace(sample_dataset, questions=sample_dataset.questions[:6])
    run_protocol(protocol, few, limit=2, drawn=True)
    drawn = sorted(tmp_path.glob("*.png"))
    assert len(drawn) == len(plots)
    for path in drawn:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert any(name in path.name for name in plots)
        assert f"]({path.name})" in next(tmp_path.glob("*.md")).read_text(encoding="utf-8")
