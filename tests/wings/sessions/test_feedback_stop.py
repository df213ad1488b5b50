"""R-Feedback's two features, and what weights make of them."""

import math

import numpy as np
import pytest

from engram.wings.sessions.core.feedback_stop import Network, classify_pool, compute_named_share


def test_names_are_found_in_whole_words_whatever_their_case() -> None:
    pool = ["Ada BRANDT wrote it.", "The Brandtner is a river."]
    assert compute_named_share(["Ada Brandt", "Emden"], pool) == 1 / 2
    assert compute_named_share(["Brandtner", "Brand"], pool) == 1 / 2
    assert compute_named_share([], pool) == 1.0
    assert compute_named_share(["Emden"], []) == 0.0


def test_the_probability_is_logistic_in_both() -> None:
    found = classify_pool(0.5, 0.25, Network(np.array([-1.0, 2.0, 4.0])))
    assert (found.entities, found.relevance) == (0.5, 0.25)
    assert found.probability == pytest.approx(1 / (1 + math.exp(-1.0)))
    with pytest.raises(ValueError, match="3 weights"):
        Network(np.array([1.0, 2.0]))


def test_hidden_units_add_what_they_are_weighted_by() -> None:
    hidden = np.array([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0]])
    network = Network(np.array([0.5, 0.0, 0.0]), hidden, np.array([3.0, -1.0]))
    linear = 0.5 + 3.0 * math.tanh(1.0 + 2.0 * 0.25) - math.tanh(-0.75)
    assert classify_pool(0.75, 0.25, network).probability == pytest.approx(1 / (1 + math.exp(-linear)))
    with pytest.raises(ValueError, match="finite"):
        Network(np.array([0.5, float("inf"), 0.0]))
    with pytest.raises(ValueError, match="each hidden unit"):
        Network(np.zeros(3), np.zeros((2, 3)), np.zeros(1))
