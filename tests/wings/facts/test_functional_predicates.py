"""The belief that a predicate has one object per subject at a time."""

import pytest

from engram.wings.facts.core.functional_predicates import OneAtATime


def test_the_belief_is_a_beta_distribution() -> None:
    belief = OneAtATime(single=7, several=1)

    assert belief.mean == pytest.approx(8 / 10)
    assert belief.lower == pytest.approx(0.8 - 1.645 * (0.8 * 0.2 / 11) ** 0.5)


def test_a_predicate_met_twice_is_not_called_functional() -> None:
    assert not OneAtATime(single=2).is_functional
    assert OneAtATime(single=50).is_functional
    assert not OneAtATime(single=50, several=10).is_functional
