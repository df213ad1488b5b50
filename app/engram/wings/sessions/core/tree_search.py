"""Monte Carlo tree search over states that this module knows nothing of.

A node is a state of reasoning, an edge an action. A rollout goes from the root down by the upper confidence bound
for trees (Kocsis & Szepesvári, 2006) to a node with an action that nobody tried, tries it, and goes on from there
to an end, whose reward every node of the way is told. Every step of a rollout stays in the tree: it was paid for.

Whoever carries out actions does so outside: ``claim`` hands out work, ``settle`` takes back what came of it.
Several claims can be open at once; each counts as a visit without reward meanwhile (virtual loss), so the next one
goes elsewhere. A tree is a value, and every function returns a new one: what a process that is lost leaves behind
is the tree that was kept last.
"""

import math
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

StateT = TypeVar("StateT")

ROOT = 0


@dataclass(frozen=True, slots=True)
class SearchLimits:
    """Limits of a tree search (State-Aware RAG, section 3.3 and its appendix).

    Attributes:
        depth: edges between the root and any node, at least 1.
        width: children of a node, at least 1.
        rollouts: that may be begun, failed ones included, at least 1.
        exploration: weight of the term that favours what was seldom visited, at least 0.
    """

    depth: int = 5
    width: int = 3
    rollouts: int = 10
    exploration: float = 1.0

    def __post_init__(self) -> None:
        if min(self.depth, self.width, self.rollouts) < 1 or not 0 <= self.exploration < math.inf:
            raise ValueError("depth, width and rollouts must be at least 1, exploration a number of at least 0")


@dataclass(frozen=True, slots=True)
class TreeNode(Generic[StateT]):
    """One state and what rollouts through it were worth.

    Attributes:
        id: its place in the tree.
        parent: the node it came from, None of the root.
        action: what led here, None of the root.
        depth: edges from the root.
        untried: actions that may still be tried here, those to be tried first in front.
        children: ids, in the order in which they were begun.
        visits: rollouts that came through and ended.
        value: sum of their rewards, each in [0, 1].
        pending: rollouts that came through and have not ended.
        ended: whether a rollout ended here.
    """

    id: int
    parent: int | None
    action: str | None
    depth: int
    state: StateT
    untried: tuple[str, ...] = ()
    children: tuple[int, ...] = ()
    visits: int = 0
    value: float = 0.0
    pending: int = 0
    ended: bool = False

    @property
    def mean(self) -> float:
        """Mean reward, in [0, 1]; 0 of a node that no rollout came through."""
        return self.value / self.visits if self.visits else 0.0


@dataclass(frozen=True, slots=True)
class Tree(Generic[StateT]):
    """All nodes by id, and how many rollouts were begun and failed."""

    nodes: tuple[TreeNode[StateT], ...]
    begun: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class RolloutClaim:
    """A rollout that was begun: try ``action`` at node ``node``; ``rollout`` counts from 0."""

    rollout: int
    node: int
    action: str


@dataclass(frozen=True, slots=True)
class TreeStep(Generic[StateT]):
    """Result of an action: the state after it, and its possible actions, best first; none ends the search."""

    action: str
    state: StateT
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rollout(Generic[StateT]):
    """Steps of one rollout, the first of them the claimed action.

    Attributes:
        reward: of the last step, in [0, 1]; None where the rollout failed before its end.
    """

    steps: tuple[TreeStep[StateT], ...]
    reward: float | None


def plant(state: StateT, actions: Sequence[str], limits: SearchLimits) -> Tree[StateT]:
    """A tree of its root alone; actions beyond the width are never tried."""
    return Tree((TreeNode(ROOT, None, None, 0, state, tuple(actions)[: limits.width]),))


def claim(tree: Tree[StateT], limits: SearchLimits, seed: int) -> tuple[Tree[StateT], RolloutClaim] | None:
    """Begin a rollout.

    Equally promising children are told apart by a draw that depends on the seed and the rollout's number alone.

    Returns:
        The tree with the rollout pending, and what to try; None if the rollouts are used up, or no node has an
        untried action left.
    """
    if tree.begun >= limits.rollouts:
        return None
    open_nodes = _open(tree)
    if ROOT not in open_nodes:
        return None
    draw = random.Random(f"{seed}/{tree.begun}")  # noqa: S311 - repeatable, not secret
    at = tree.nodes[ROOT]
    while not at.untried:
        at = _descend(tree, at, open_nodes, limits.exploration, draw)
    action, *rest = at.untried
    nodes = list(tree.nodes)
    nodes[at.id] = replace(at, untried=tuple(rest))
    for passed in path(tree, at.id):
        nodes[passed] = replace(nodes[passed], pending=nodes[passed].pending + 1)
    return replace(tree, nodes=tuple(nodes), begun=tree.begun + 1), RolloutClaim(tree.begun, at.id, action)


def settle(
    tree: Tree[StateT], claimed: RolloutClaim, rollout: Rollout[StateT], limits: SearchLimits
) -> Tree[StateT]:
    """Take back what came of a claim.

    One that failed backs up nothing. The steps it took before stay, unvisited, so that the next rollout goes on
    behind them; if it took none, its action may be tried again.

    Raises:
        ValueError: the claim is not pending, the first step is not the claimed action, the steps go deeper than
            the limit, or the reward is not in [0, 1] or belongs to no step.
    """
    at = tree.nodes[claimed.node]
    _check(at, claimed, rollout, limits)
    nodes = list(tree.nodes)
    way = path(tree, claimed.node)
    for passed in way:
        nodes[passed] = replace(nodes[passed], pending=nodes[passed].pending - 1)
    if not rollout.steps:
        nodes[at.id] = replace(nodes[at.id], untried=(claimed.action, *at.untried))
    for number, step in enumerate(rollout.steps):
        above = nodes[way[-1]]
        follows = rollout.steps[number + 1].action if number + 1 < len(rollout.steps) else None
        possible = step.actions[: limits.width] if above.depth + 1 < limits.depth else ()
        untried = tuple(action for action in possible if action != follows)
        nodes.append(TreeNode(len(nodes), above.id, step.action, above.depth + 1, step.state, untried))
        nodes[above.id] = replace(above, children=(*above.children, nodes[-1].id))
        way.append(nodes[-1].id)
    if rollout.reward is None:
        return replace(tree, nodes=tuple(nodes), failed=tree.failed + 1)
    for passed in way:
        one = nodes[passed]
        nodes[passed] = replace(one, visits=one.visits + 1, value=one.value + rollout.reward)
    nodes[way[-1]] = replace(nodes[way[-1]], untried=(), ended=True)
    return replace(tree, nodes=tuple(nodes))


def wave(
    tree: Tree[StateT],
    limits: SearchLimits,
    seed: int,
    rollout_count: int,
    roll: Callable[[Tree[StateT], RolloutClaim], Rollout[StateT]],
    run: Callable[
        [Callable[[RolloutClaim], Rollout[StateT]], Iterable[RolloutClaim]], Iterable[Rollout[StateT]]
    ] = map,
) -> Tree[StateT]:
    """Begin up to ``rollout_count`` rollouts, let ``run`` carry them out side by side, and settle them in order.

    All see the same tree, so what comes out does not depend on which of them was done first.

    Args:
        roll: carries one out; it is given the tree with every claim of the wave pending.
        run: like ``map``, such as that of an executor.

    Returns:
        The tree after them; the same one if nothing was left to begin.
    """
    claims: list[RolloutClaim] = []
    while len(claims) < rollout_count and (begun := claim(tree, limits, seed)) is not None:
        tree, claimed = begun
        claims.append(claimed)
    observed_tree = tree
    for claimed, rollout in zip(claims, run(lambda one: roll(observed_tree, one), claims), strict=True):
        tree = settle(tree, claimed, rollout, limits)
    return tree


def path(tree: Tree[StateT], node: int) -> list[int]:
    """Ids from the root to a node, both included."""
    way = [node]
    while (parent := tree.nodes[way[-1]].parent) is not None:
        way.append(parent)
    return way[::-1]


def ends(tree: Tree[StateT]) -> list[TreeNode[StateT]]:
    """Nodes at which a rollout ended, the best first; of equal ones, the one found first."""
    return sorted((node for node in tree.nodes if node.ended), key=lambda node: (-node.mean, node.id))


def compute_confidence_bound(node: TreeNode[StateT], parent: TreeNode[StateT], exploration: float) -> float:
    """Upper confidence bound: mean reward + c sqrt(ln N / n), pending rollouts counted in N and n as worth nothing.

    Infinite for a node that no rollout is or was at.
    """
    count = node.visits + node.pending
    if not count:
        return math.inf
    # A parent that failed rollouts alone passed has fewer visits than the logarithm needs.
    above = max(parent.visits + parent.pending, count, 1)
    return node.value / count + exploration * math.sqrt(math.log(above) / count)


def as_data(tree: Tree[StateT], state: Callable[[StateT], Any]) -> dict[str, Any]:
    """The tree in plain values, as ``from_data`` reads it; ``state`` makes a state plain."""
    return {
        "begun": tree.begun,
        "failed": tree.failed,
        "nodes": [
            {
                "id": node.id,
                "parent": node.parent,
                "action": node.action,
                "depth": node.depth,
                "untried": list(node.untried),
                "visits": node.visits,
                "value": node.value,
                "mean": node.mean,
                "ended": node.ended,
                "state": state(node.state),
            }
            for node in tree.nodes
        ],
    }


def from_data(data: Mapping[str, Any], state: Callable[[Any], StateT]) -> Tree[StateT]:
    """The inverse of ``as_data`` of a tree with nothing pending.

    Raises:
        KeyError, ValueError: the data are of another form.
    """
    children: dict[int | None, list[int]] = {}
    for row in data["nodes"]:
        children.setdefault(row["parent"], []).append(row["id"])
    nodes = tuple(
        TreeNode(
            row["id"],
            row["parent"],
            row["action"],
            row["depth"],
            state(row["state"]),
            tuple(row["untried"]),
            tuple(children.get(row["id"], ())),
            row["visits"],
            row["value"],
            0,
            row["ended"],
        )
        for row in data["nodes"]
    )
    if [node.id for node in nodes] != list(range(len(nodes))) or not nodes:
        raise ValueError("nodes must stand in the order of their ids, from 0")
    return Tree(nodes, data["begun"], data["failed"])


def _open(tree: Tree[StateT]) -> frozenset[int]:
    """Nodes at or below which an action is untried. A child's id is above its parent's, so one pass is enough."""
    open_nodes: set[int] = set()
    for node in reversed(tree.nodes):
        if node.untried or any(child in open_nodes for child in node.children):
            open_nodes.add(node.id)
    return frozenset(open_nodes)


def _descend(
    tree: Tree[StateT], at: TreeNode[StateT], among: frozenset[int], exploration: float, draw: random.Random
) -> TreeNode[StateT]:
    """The most promising child of those ``among``."""
    children = [tree.nodes[child] for child in at.children if child in among]
    bounds = [compute_confidence_bound(child, at, exploration) for child in children]
    most = max(bounds)
    return draw.choice([child for child, of in zip(children, bounds, strict=True) if of == most])


def _check(at: TreeNode[Any], claimed: RolloutClaim, rollout: Rollout[Any], limits: SearchLimits) -> None:
    if not at.pending:
        raise ValueError(f"nothing is pending at node {at.id}")
    if rollout.steps and rollout.steps[0].action != claimed.action:
        raise ValueError(f"the first step is {rollout.steps[0].action!r}, not {claimed.action!r}")
    if at.depth + len(rollout.steps) > limits.depth:
        raise ValueError(f"the steps go deeper than {limits.depth}")
    if rollout.reward is not None and not (rollout.steps and 0.0 <= rollout.reward <= 1.0):
        raise ValueError("a reward lies in [0, 1] and belongs to a step")
