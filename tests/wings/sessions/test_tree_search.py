"""Tree search: what a bound is, that visits add up whatever fails, and that a known best end is found."""

import json
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.wings.sessions.core.tree_search import (
    ROOT,
    Rollout,
    RolloutClaim,
    SearchLimits,
    Tree,
    TreeNode,
    TreeStep,
    as_data,
    claim,
    compute_confidence_bound,
    ends,
    from_data,
    path,
    plant,
    settle,
    wave,
)

MOVES = ("left", "middle", "right")


def rolls(reward: Callable[[str], float | None], depth: int) -> Callable[[Tree[str], RolloutClaim], Rollout[str]]:
    """Rollouts over words: a state is the letters of the moves so far, and a word of ``depth`` letters is an end.

    After the claimed move the way goes on to the left. ``reward`` is None where it fails.
    """

    def roll(tree: Tree[str], claimed: RolloutClaim) -> Rollout[str]:
        word, action, steps = tree.nodes[claimed.node].state, claimed.action, []
        while True:
            word += action[0]
            if reward(word) is None:
                return Rollout(tuple(steps), None)
            steps.append(TreeStep(action, word, () if len(word) == depth else MOVES))
            if len(word) == depth:
                return Rollout(tuple(steps), reward(word))
            action = MOVES[0]

    return roll


def grow_tree(
    reward: Callable[[str], float | None], limits: SearchLimits, seed: int = 0, together: int = 1
) -> Tree[str]:
    tree = plant("", MOVES, limits)
    while (after := wave(tree, limits, seed, together, rolls(reward, limits.depth))) is not tree:
        tree = after
    return tree


def matches(word: str) -> float:
    """The share of letters as in the one best word; a near miss is worth something."""
    return sum(a == b for a, b in zip(word, "rml", strict=False)) / 3


def test_the_bound_by_hand() -> None:
    parent = TreeNode(0, None, None, 0, "", visits=8)
    child = TreeNode(1, 0, "left", 1, "l", visits=2, value=1.5)
    assert compute_confidence_bound(child, parent, 1.0) == pytest.approx(1.5 / 2 + math.sqrt(math.log(8) / 2))
    assert compute_confidence_bound(child, parent, 0.0) == 0.75
    assert compute_confidence_bound(TreeNode(2, 0, "right", 1, "r"), parent, 1.0) == math.inf


def test_a_pending_rollout_makes_a_node_less_promising() -> None:
    parent = TreeNode(0, None, None, 0, "", visits=8, pending=1)
    child = TreeNode(1, 0, "left", 1, "l", visits=2, value=1.5, pending=1)
    assert compute_confidence_bound(child, parent, 1.0) == pytest.approx(1.5 / 3 + math.sqrt(math.log(9) / 3))


def test_every_action_of_a_node_is_tried_before_any_is_gone_behind() -> None:
    limits = SearchLimits(depth=3, rollouts=3)
    tree = grow_tree(matches, limits)
    assert [tree.nodes[child].action for child in tree.nodes[ROOT].children] == list(MOVES)


def test_a_wider_choice_is_cut_to_the_width() -> None:
    limits = SearchLimits(depth=2, width=2, rollouts=100)
    tree = grow_tree(matches, limits)
    assert {len(node.children) for node in tree.nodes if node.depth < 2} == {2}
    assert not [node for node in tree.nodes if node.action == "right"]


def test_claims_that_are_open_at_once_differ_and_steer_apart() -> None:
    limits = SearchLimits(depth=3, rollouts=10)
    tree = grow_tree(matches, SearchLimits(depth=3, rollouts=3))
    claims = []
    for _ in range(5):
        begun = claim(tree, limits, 0)
        assert begun is not None
        tree, claimed = begun
        claims.append(claimed)
    assert len({(one.node, one.action) for one in claims}) == 5
    assert len({path(tree, one.node)[1] for one in claims}) == 3
    assert tree.nodes[ROOT].pending == 5


def test_the_best_of_27_ends_is_found_in_fewer_rollouts_than_there_are_ends() -> None:
    tree = grow_tree(matches, SearchLimits(depth=3, rollouts=14, exploration=0.3))
    assert ends(tree)[0].state == "rml"
    assert [tree.nodes[at].state for at in path(tree, ends(tree)[0].id)] == ["", "r", "rm", "rml"]
    assert tree.nodes[path(tree, ends(tree)[0].id)[1]].visits > 14 / 3


def test_search_ends_after_all_paths_and_never_expands_leaves() -> None:
    tree = grow_tree(matches, SearchLimits(depth=2, rollouts=1000))
    assert tree.begun == 9
    assert claim(tree, SearchLimits(depth=2, rollouts=1000), 0) is None
    assert len(ends(tree)) == 9


def test_a_failed_rollout_backs_up_nothing_and_what_it_reached_stays() -> None:
    limits = SearchLimits(depth=3, rollouts=10)
    tree = plant("", MOVES, limits)
    begun = claim(tree, limits, 0)
    assert begun is not None
    pending, claimed = begun
    after = settle(pending, claimed, Rollout((TreeStep("left", "l", MOVES),), None), limits)
    assert (after.failed, after.nodes[ROOT].visits, after.nodes[ROOT].value) == (1, 0, 0.0)
    assert after.nodes[1].state == "l"
    assert after.nodes[1].untried == MOVES
    assert not any(node.pending for node in after.nodes)


def test_an_action_that_failed_at_once_can_be_tried_again() -> None:
    limits = SearchLimits(depth=3, rollouts=10)
    begun = claim(plant("", MOVES, limits), limits, 0)
    assert begun is not None
    pending, claimed = begun
    after = settle(pending, claimed, Rollout((), None), limits)
    assert after.nodes == plant("", MOVES, limits).nodes
    assert after.begun == after.failed == 1


def test_an_endpoint_that_always_fails_ends_the_search_after_its_rollouts() -> None:
    tree = grow_tree(lambda word: None, SearchLimits(depth=3, rollouts=4), together=3)
    assert tree.begun == tree.failed == 4
    assert ends(tree) == []


words = st.text("lmr", min_size=1, max_size=3)


@given(
    failing=st.sets(words),
    good=st.dictionaries(words, st.floats(0, 1)),
    depth=st.integers(1, 3),
    width=st.integers(1, 3),
    rollouts=st.integers(1, 20),
    together=st.integers(1, 5),
    seed=st.integers(0, 3),
)
def test_visits_and_rewards_add_up(
    failing: set[str],
    good: dict[str, float],
    depth: int,
    width: int,
    rollouts: int,
    together: int,
    seed: int,
) -> None:
    limits = SearchLimits(depth=depth, width=width, rollouts=rollouts)
    tree = grow_tree(lambda word: None if word in failing else good.get(word, 0.5), limits, seed, together)
    assert tree.begun <= rollouts
    assert tree.nodes[ROOT].visits == tree.begun - tree.failed
    for node in tree.nodes:
        below = [tree.nodes[child] for child in node.children]
        assert node.pending == 0
        assert node.depth <= depth
        assert len(node.children) + len(node.untried) <= width
        assert node.visits == sum(child.visits for child in below) + node.ended
        if below and not node.ended:
            assert node.value == pytest.approx(sum(child.value for child in below))
        assert 0.0 <= node.mean <= 1.0
        assert not node.ended or not node.untried
        assert len({child.action for child in below}) == len(below)
    assert from_data(json.loads(json.dumps(as_data(tree, str))), str) == tree


def test_the_same_seed_grows_the_same_tree_in_threads_too() -> None:
    limits = SearchLimits(depth=3, rollouts=17)
    alone = grow_tree(lambda word: 0.5, limits, seed=3, together=4)
    tree = plant("", MOVES, limits)
    with ThreadPoolExecutor(4) as threads:
        while (after := wave(tree, limits, 3, 4, rolls(lambda word: 0.5, 3), threads.map)) is not tree:
            tree = after
    assert tree == alone
    assert grow_tree(lambda word: 0.5, limits, seed=4, together=4) != alone


@pytest.mark.parametrize(
    ("rollout", "message"),
    [
        (Rollout((TreeStep("right", "r"),), 1.0), "the first step"),
        (Rollout((TreeStep("left", "l"), TreeStep("left", "ll"), TreeStep("left", "lll")), 1.0), "deeper"),
        (Rollout((TreeStep("left", "l"),), 1.5), "a reward"),
        (Rollout((), 1.0), "a reward"),
    ],
)
def test_rollout_that_does_not_fit_its_claim_is_refused(rollout: Rollout[str], message: str) -> None:
    limits = SearchLimits(depth=2)
    begun = claim(plant("", MOVES, limits), limits, 0)
    assert begun is not None
    tree, claimed = begun
    with pytest.raises(ValueError, match=message):
        settle(tree, claimed, rollout, limits)
    with pytest.raises(ValueError, match="pending"):
        settle(plant("", MOVES, limits), claimed, Rollout((), None), limits)


def test_limits_are_checked() -> None:
    for wrong in ({"depth": 0}, {"width": 0}, {"rollouts": 0}, {"exploration": -1.0}, {"exploration": math.nan}):
        with pytest.raises(ValueError, match="at least"):
            SearchLimits(**wrong)  # type: ignore[arg-type]
