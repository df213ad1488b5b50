"""Budgets of sessions."""

from engram.core.budget import Budget
from engram.wings.sessions.core.session import Cost, find_exhausted_limit

BUDGET = Budget(rounds=3, llm_calls=10, tokens=100, seconds=5.0, passages=8)


def test_each_budget_stops_a_session_once_it_is_spent() -> None:
    assert find_exhausted_limit(BUDGET, Cost(2, 9, 60, 39, 4.9, 7)) is None
    for cost, reason in (
        (Cost(rounds=3), "rounds"),
        (Cost(llm_calls=10), "llm_calls"),
        (Cost(prompt_tokens=60, completion_tokens=40), "tokens"),
        (Cost(seconds=5.0), "seconds"),
        (Cost(passages=8), "passages"),
    ):
        assert find_exhausted_limit(BUDGET, cost) == reason


def test_no_budget_for_a_model_leaves_it_to_rules() -> None:
    assert find_exhausted_limit(Budget(llm_calls=0, tokens=0), Cost()) is None


def test_costs_add_up() -> None:
    assert Cost(1, 2, 3, 4, 0.5, 6) + Cost(1, 1, 1, 1, 0.25, 1) == Cost(2, 3, 4, 5, 0.75, 7)
