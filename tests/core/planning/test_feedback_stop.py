"""R-Feedback's two features, and what weights make of them."""

import math

import numpy as np
import pytest

from engram.core.planning.feedback_stop import Network, classify_pool, compute_named_share, fit_network


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


def test_a_network_learns_what_no_straight_line_tells_and_the_same_each_time() -> None:
    """Pools suffice where both features are high or both are low; raw features are far from standard ones."""
    features = np.random.default_rng(1).uniform([0.0, 0.4], [1.0, 0.6], (200, 2))
    suffices = (features[:, 0] > 0.5) == (features[:, 1] > 0.5)
    rows = np.column_stack([np.ones(200), features])
    network = fit_network([(rows, suffices)], units=6, ridge=0.0)
    assert ((network.probability(rows) > 0.5) == suffices).mean() > 0.95
    again = fit_network([(rows, suffices)], units=6, ridge=0.0)
    np.testing.assert_array_equal(again.hidden, network.hidden)
    assert network.direct[1:].tolist() == [0.0, 0.0]


def test_corpora_count_the_same_whatever_their_size() -> None:
    """Of two that disagree on the same pools neither wins by having more of them."""
    rows = np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    agreeing = (rows, np.array([False, True]))
    contrary = (np.tile(rows, (20, 1)), np.tile([True, False], 20))
    network = fit_network([agreeing, contrary], units=2, ridge=0.01)
    assert network.probability(rows) == pytest.approx([0.5, 0.5], abs=0.02)


@pytest.mark.parametrize("suffices", [[True, True], [False, False]])
def test_fit_refuses_examples_of_one_class(suffices: list[bool]) -> None:
    with pytest.raises(ValueError, match="nothing to tell apart"):
        fit_network([(np.ones((2, 3)), np.array(suffices))], units=2, ridge=0.1)


def test_a_network_has_units() -> None:
    with pytest.raises(ValueError, match="at least one"):
        fit_network([(np.ones((2, 3)), np.array([True, False]))], units=0, ridge=0.1)
