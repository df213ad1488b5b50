"""Learning in a process of its own: what comes back of it, and what is told of a failure."""

from dataclasses import replace

import numpy as np
import pytest
from structlog.testing import capture_logs

from engram.wings.tuning.core.acceptance import try_tuning
from engram.wings.tuning.services import learning_process
from engram.wings.tuning.services.learning_process import TrainingInput, learn_in_subprocess
from tests.support.tuned import PERMISSIVE
from tests.wings.tuning.small_bert import make_weights
from tests.wings.tuning.test_learn_adapter import OPTIONS, make_samples

PIPE_BYTES = 65_536
"""As many are written before anybody reads."""
TRAINING = TrainingInput(make_weights(), make_samples(), [], OPTIONS, PERMISSIVE)


def test_a_process_learns_the_same() -> None:
    trial, again = (learn_in_subprocess(TRAINING, lambda: False) for _ in range(2))
    assert trial.adapter.to_bytes() == again.adapter.to_bytes()
    expected = try_tuning(TRAINING.weights, TRAINING.samples, [], OPTIONS, PERMISSIVE)
    assert trial.acceptance == expected.acceptance
    for name, learned in expected.adapter.arrays.items():  # elsewhere in memory, sums round otherwise
        assert np.allclose(trial.adapter.arrays[name], learned, atol=1e-6)


def test_a_process_that_reads_late_is_sent_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learning_process, "POLL_SECONDS", 0.001)
    filling = {"filling": np.ones(2 * PIPE_BYTES, np.float32)}
    large = replace(TRAINING, weights=replace(TRAINING.weights, arrays={**TRAINING.weights.arrays, **filling}))
    assert learn_in_subprocess(large, lambda: False, seconds=20)


def test_a_failure_is_raised_and_its_trace_logged() -> None:
    broken = replace(TRAINING, weights=replace(TRAINING.weights, arrays={}))
    with capture_logs() as logged, pytest.raises(RuntimeError, match="ended with status 1"):
        learn_in_subprocess(broken, lambda: False)
    (entry,) = logged
    assert (entry["event"], entry["exit_status"]) == ("learning failed", 1)
    assert "KeyError" in entry["errors"]
