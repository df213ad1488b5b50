"""R-Feedback's two features, and what weights make of them."""

import math

import numpy as np
import pytest

from engram.wings.sessions.core.feedback_stop import classify_pool, compute_named_share


def test_names_are_found_in_whole_words_whatever_their_case() -> None:
    pool = ["Ada BRANDT wrote it.", "The Brandtner is a river."]
    assert compute_named_share(["Ada Brandt", "Emden"], pool) == 1 / 2
    assert compute_named_share(["Brandtner", "Brand"], pool) == 1 / 2
    assert compute_named_share([], pool) == 1.0
    assert compute_named_share(["Emden"], []) == 0.0


def test_the_probability_is_logistic_in_both() -> None:
    found = classify_pool(0.5, 0.25, np.array([-1.0, 2.0, 4.0]))
    assert (found.entities, found.relevance) == (0.5, 0.25)
    assert found.probability == pytest.approx(1 / (1 + math.exp(-1.0)))
