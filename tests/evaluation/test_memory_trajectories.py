"""Memories followed through a run: the plane by hand, where they go, and a run that is taken up again."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engram_evaluation.dataset import Dataset
from engram_evaluation.memory_trajectories import (
    FOLLOWED_SENTENCES,
    QUESTIONS,
    Trajectories,
    project_to_principal_plane,
)
from tests.evaluation.conftest import Evaluate


@pytest.fixture
def few(sample_dataset: Dataset) -> Dataset:
    return replace(sample_dataset, questions=sample_dataset.questions[:6])


def test_points_on_a_line_by_hand() -> None:
    # Along (3, 4, 0) / 5 from their mean (3, 4, 0): -5, 0 and 5. The larger loading, 4/5, is positive.
    plane, shares = project_to_principal_plane(np.array([[0.0, 0, 0], [3, 4, 0], [6, 8, 0]]))
    np.testing.assert_allclose(plane, [[-5, 0], [0, 0], [5, 0]], atol=1e-12)
    assert shares == pytest.approx((1.0, 0.0))


def test_the_plane_keeps_the_distances_of_a_plane_and_its_order_by_variance() -> None:
    # A rectangle of 4 by 2 in a tilted plane of four dimensions: variances 4 and 1, so shares 0.8 and 0.2.
    long, short = np.array([1.0, 1, 1, 1]) / 2, np.array([1.0, -1, 1, -1]) / 2
    corners = np.array([a * long + b * short for a in (-2, 2) for b in (-1, 1)])
    plane, shares = project_to_principal_plane(corners + 7)
    assert shares == pytest.approx((0.8, 0.2))
    np.testing.assert_allclose(np.abs(plane), [[2, 1]] * 4)
    between = np.linalg.norm(corners[:, None] - corners, axis=-1)
    np.testing.assert_allclose(np.linalg.norm(plane[:, None] - plane, axis=-1), between, atol=1e-12)


def test_supported_memories_go_to_their_question_and_rejected_ones_away(
    run_protocol: Evaluate, few: Dataset
) -> None:
    followed = run_protocol("same", few, turns=3).trajectories
    assert followed is not None
    assert followed.turns == 3
    assert len(followed.questions) == QUESTIONS
    assert set(followed.questions) <= {question.text for question in few.questions}
    kinds = {(course.question, course.supported) for course in followed.courses}
    assert kinds == {(at, kind) for at in range(QUESTIONS) for kind in (True, False)}
    assert len(followed.courses) <= QUESTIONS * 2 * FOLLOWED_SENTENCES
    assert len({course.text for course in followed.courses}) == len(followed.courses)
    for course in followed.courses:
        gold = {
            gold.text for q in few.questions if q.text == followed.questions[course.question] for gold in q.gold
        }
        assert (course.text in gold) is course.supported
        cosines = followed.cosines(course)
        assert cosines[-1] > cosines[0] if course.supported else abs(cosines[-1]) < abs(cosines[0])
    questions, courses, shares = followed.project()
    assert questions.shape == (QUESTIONS, 2)
    assert {points.shape for points in courses} == {(4, 2)}
    assert 0 < shares[1] <= shares[0] < 1


def alike(one: Trajectories | None, other: Trajectories | None) -> bool:
    """Equal to the digits that are kept on disk."""
    assert one is not None
    assert other is not None
    return one.questions == other.questions and all(
        a.text == b.text and a.vectors.shape == b.vectors.shape and np.allclose(a.vectors, b.vectors, atol=1e-6)
        for a, b in zip(one.courses, other.courses, strict=True)
    )


def test_a_run_that_is_taken_up_again_still_has_its_plot(
    run_protocol: Evaluate, few: Dataset, tmp_path: Path
) -> None:
    first = run_protocol("same", few, turns=2, drawn=True)
    (plot,) = tmp_path.glob("*-memories.png")
    plot.unlink()
    again = run_protocol("same", few, turns=2, drawn=True)
    assert alike(again.trajectories, first.trajectories)
    assert plot.read_bytes().startswith(b"\x89PNG")
    (markdown,) = tmp_path.glob("*.md")
    assert f"![{plot.name}]({plot.name})\n\n- Q1: " in markdown.read_text(encoding="utf-8")

    shorter = run_protocol("same", few, turns=1)
    assert shorter.trajectories is not None
    assert first.trajectories is not None
    assert alike(shorter.trajectories, first.trajectories.cut_turns(1))

    early = next(path for path in tmp_path.glob("phases/*/*judged_questions-1-0.json") if "off" not in path.name)
    early.write_text("{", encoding="utf-8")
    mended = run_protocol("same", few, turns=2)  # replays the first turn only, and keeps both
    assert alike(mended.trajectories, first.trajectories)


def test_a_run_whose_followed_memories_were_lost_goes_without(
    run_protocol: Evaluate, few: Dataset, tmp_path: Path
) -> None:
    run_protocol("same", few)
    (kept,) = tmp_path.glob("phases/*/*trajectories*.json")
    assert len(json.loads(kept.read_text(encoding="utf-8"))["trajectories"]["courses"][0]["vectors"]) == 2
    kept.write_text("{", encoding="utf-8")
    for plot in tmp_path.glob("*.png"):
        plot.unlink()
    report = run_protocol("same", few, drawn=True)
    assert report.trajectories is None
    assert {path.name.rpartition("-")[2] for path in tmp_path.glob("*.png")} == {"turns.png", "perplexity.png"}


def test_frozen_memories_have_no_course(run_protocol: Evaluate, few: Dataset) -> None:
    assert run_protocol("same", few, freeze=("task",)).trajectories is None
