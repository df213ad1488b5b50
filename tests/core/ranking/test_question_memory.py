"""Experience recall: how near a past question must be, and what its verdicts then weigh."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.core.filter.kalman import update_supports
from engram.core.ranking.question_memory import (
    BUDGET,
    compute_ungated_support,
    lifts,
    nearness,
    net_support,
    recall_priors,
)

similarities = st.floats(-1.0, 1.0)
gates = st.floats(0.0, 0.99)
units = st.floats(0.0, 1.0)


def test_nearness_is_nothing_at_the_gate_and_all_for_the_same_question() -> None:
    for shares_entity in (True, False):
        assert nearness(0.6, 0.6, shares_entity=shares_entity) == 0.0
        assert nearness(1.0, 0.6, shares_entity=shares_entity) == 1.0
    assert 0.0 < nearness(0.7, 0.6, shares_entity=True) < 1.0


@given(similarities, similarities, gates, st.booleans())
def test_nearness_grows_with_similarity_and_stays_in_range(a: float, b: float, gate: float, shares: bool) -> None:
    low, high = (nearness(similarity, gate, shares_entity=shares) for similarity in sorted((a, b)))

    assert 0.0 <= low <= high <= 1.0


@given(similarities, gates, st.booleans())
def test_questions_below_the_gate_have_no_nearness(similarity: float, gate: float, shares: bool) -> None:
    assert nearness(min(similarity, gate), gate, shares_entity=shares) == 0.0


@given(similarities, gates)
def test_a_question_about_other_things_is_never_nearer(similarity: float, gate: float) -> None:
    stranger = nearness(similarity, gate, shares_entity=False)

    assert stranger <= nearness(similarity, gate, shares_entity=True)


@pytest.mark.parametrize("gate", [-0.01, 1.0, 1.5, float("nan")])
def test_a_gate_outside_its_range_is_refused(gate: float) -> None:
    with pytest.raises(ValueError, match="gate"):
        nearness(0.9, gate, shares_entity=True)


def test_a_prior_is_the_strongest_voice_and_not_the_sum() -> None:
    priors = recall_priors([(1, 0.5, 0.6), (1, 0.5, 0.6), (1, 0.25, 0.8), (2, 1.0, 0.5)])

    assert priors == {1: pytest.approx(max(0.5 * 0.6, 0.25 * 0.8)), 2: 0.5}


def test_distant_or_unsupported_questions_give_no_prior() -> None:
    assert recall_priors([(1, 0.0, 1.0), (2, 1.0, 0.0)]) == {}


@given(st.lists(st.tuples(st.integers(0, 4), units, units), max_size=12))
def test_priors_do_not_depend_on_the_order_of_supports(supports: list[tuple[int, float, float]]) -> None:
    priors = recall_priors(supports)

    assert recall_priors(reversed(supports)) == priors
    assert all(0.0 < prior <= 1.0 for prior in priors.values())


@given(st.lists(st.booleans(), min_size=1, max_size=20), st.sampled_from([0.2, 0.5, 2.0]))
def test_an_ungated_support_is_the_share_of_verdicts_that_supported(verdicts: list[bool], noise: float) -> None:
    support, perplexity, tiny = np.zeros(1), np.ones(1), 1e-9
    for verdict in verdicts:
        update = update_supports(support, perplexity, np.array([float(verdict)]), np.array([noise]), tiny)
        support, perplexity = update.supports, update.perplexities
    share = sum(verdicts) / len(verdicts)

    assert compute_ungated_support(float(support[0]), float(perplexity[0])) == pytest.approx(share, abs=1e-6)
    assert float(support[0]) < share or share == 0


def test_an_ungated_support_stays_in_range() -> None:
    assert compute_ungated_support(0.9, 0.2) == 1.0  # 1.125
    assert compute_ungated_support(0.0, 1.0) == 0.0


@given(st.lists(st.sampled_from([0.0, 1.0]), min_size=1, max_size=8))
def test_a_rejection_takes_from_a_net_support_what_a_support_gave(verdicts: list[float]) -> None:
    support, perplexity = np.zeros(1), np.ones(1)
    for verdict in verdicts:
        update = update_supports(support, perplexity, np.array([verdict]), np.array([0.5]), 1e-12)
        support, perplexity = update.supports, update.perplexities
    balance = sum(1 if verdict else -1 for verdict in verdicts) / len(verdicts)
    expected = max(0.0, (1 - float(perplexity[0])) * balance)

    assert net_support(float(support[0]), float(perplexity[0])) == pytest.approx(expected, abs=1e-6)


@given(st.dictionaries(st.integers(0, 20), st.floats(0.01, 1.0)))
def test_lifts_keep_their_proportions_and_never_exceed_the_budget(priors: dict[int, float]) -> None:
    lifted = lifts(priors)

    assert sum(lifted.values()) <= BUDGET + 1e-9
    if sum(priors.values()) <= BUDGET:
        assert lifted == pytest.approx(priors)
    assert sorted(lifted, key=lifted.__getitem__) == sorted(priors, key=priors.__getitem__)


@pytest.mark.parametrize(
    ("similarity", "acquainted", "stranger"),
    [
        (0.6, 0.0, 0.0),
        (0.7, (0.7 - 0.6) / 0.2, 0.0),
        (0.75, (0.75 - 0.6) / 0.2, (0.75 - 0.7) / 0.2),
        (0.9, 1.0, 1.0),
    ],
)
def test_a_past_question_about_nothing_that_this_one_names_must_be_nearer(
    similarity: float, acquainted: float, stranger: float
) -> None:
    assert nearness(similarity, 0.6, shares_entity=True) == pytest.approx(acquainted)
    assert nearness(similarity, 0.6, shares_entity=False) == pytest.approx(stranger)
