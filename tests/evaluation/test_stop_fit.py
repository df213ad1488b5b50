"""Fitting the published stop to the sessions of a data set."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.wings.sessions.core.feedback_stop import AT_LEAST, compute_pool_probabilities
from engram_evaluation.commands.dataset_names import load_dataset
from engram_evaluation.harness import Harness, open_harness
from engram_evaluation.stop_fit import FigurePower, fit_stop, measure_rounds, pools


@pytest.fixture(scope="module")
def harness(application: Application) -> Harness:
    return open_harness(application, load_dataset(Path("sample")), lambda _done, _total: None)


def steps(_label: str, _total: int) -> Callable[[], None]:
    return lambda: None


def test_fit_learns_which_pools_hold_all_the_evidence(harness: Harness) -> None:
    dataset, limit = load_dataset(Path("sample")), 4
    weights, believed = fit_stop([(harness, dataset)], limit, steps)
    assert believed is not None
    rows, suffices = pools(harness, dataset.questions[:limit], lambda: None)
    assert set(suffices.tolist()) == {True, False}
    assert (rows[:, 0] == 1.0).all()
    told = compute_pool_probabilities(rows[:, :3], weights)  # a round's features begin with the classifier's
    assert told[suffices].mean() > told[~suffices].mean()
    wrong = np.where(suffices, told < AT_LEAST, told >= AT_LEAST).mean()
    assert wrong <= min(suffices.mean(), 1.0 - suffices.mean())


def test_pools_grow_with_the_rounds(harness: Harness) -> None:
    """Neither feature ever falls, and what sufficed goes on to."""
    (question, *_) = load_dataset(Path("sample")).questions
    rows, suffices = pools(harness, [question], lambda: None, planner="rfm-rag")
    assert len(rows) > 1
    assert (np.diff(rows[:, :3], axis=0) >= 0).all()
    assert (np.diff(suffices.astype(int)) >= 0).all()


def test_fit_refuses_pools_of_one_class(harness: Harness) -> None:
    dataset = load_dataset(Path("sample"))
    with pytest.raises(InvalidRequestError, match="nothing to tell apart"):
        fit_stop([(harness, dataset)], 0, steps)


def test_pools_of_rfm_rag_are_of_its_own_searches(harness: Harness) -> None:
    questions = load_dataset(Path("sample")).questions[:3]
    rows, suffices = pools(harness, questions, lambda: None, planner="rfm-rag")
    assert len(rows) == len(suffices) >= 3
    assert (rows[:, 3] == 0.0).all()  # a search by words has no probability of its own to be enough


def test_what_does_not_move_while_the_pool_comes_to_suffice_tells_nothing() -> None:
    """Two sessions: the first suffices after its second round, the second never does."""
    came = (np.array([[1.0, 0.0, 0.5, 0.0, 0.0], [1.0, 1.0, 0.5, 0.0, 0.0]]), np.array([False, True]))
    never = (np.array([[1.0, 0.5, 0.9, 0.0, 0.0], [1.0, 0.5, 0.9, 0.0, 0.0]]), np.array([False, False]))
    entities, relevance, feedback = measure_rounds(np.array([0.0, 0.0, 4.0]), [came, never])
    assert entities == FigurePower("entities (f1)", auc=1.0, changed=1 / 2, rose=1.0)
    # Of three pools that do not suffice one is equal, and two are higher: (0 + 0 + 1/2) / 3.
    assert relevance == FigurePower("relevance (f2)", auc=pytest.approx(0.5 / 3), changed=0.0, rose=0.0)
    assert (feedback.auc, feedback.changed, feedback.rose) == (relevance.auc, 0.0, 0.0)
    assert measure_rounds(np.zeros(3), [never])[0] == FigurePower("entities (f1)", auc=None, changed=0.0, rose=None)
