"""A tree of reasoning as inline SVG: left to right by depth, larger where more rollouts came through."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

KINDS = ("decompose", "redirect", "consolidate", "refine", "conclude")
"""Actions in the order of their colours."""
COLUMN, ROW, EDGE = 92, 30, 16
"""Distances between depths and between branches, and the room at the sides, in pixels."""
SMALLEST, LARGEST = 4.0, 9.0


@dataclass(frozen=True, slots=True)
class Branches:
    """The tree of a session as ``tree_search.as_data`` gives it; its states are the tree planner's thoughts."""

    title: str
    nodes: Sequence[Mapping[str, Any]]

    @property
    def series(self) -> tuple[str, ...]:
        """Return the meanings of the colours."""
        return KINDS


def draw_tree(tree: Branches) -> str:
    """The picture; what a node asked and what came of it is shown when it is pointed at."""
    rows = _rows(tree.nodes)
    most = max(node["visits"] for node in tree.nodes) or 1
    width = max(node["depth"] for node in tree.nodes) * COLUMN + 2 * EDGE + COLUMN
    height = (max(rows.values()) + 1) * ROW + EDGE

    def place(node: Mapping[str, Any]) -> tuple[float, float]:
        return EDGE + node["depth"] * COLUMN, EDGE + rows[node["id"]] * ROW

    parts = []
    for node in tree.nodes[1:]:
        (x, y), (left, top) = place(node), place(tree.nodes[node["parent"]])
        middle = (left + x) / 2
        parts.append(
            f'<path class="grid" fill="none" d="M{left:.1f} {top:.1f}C{middle:.1f} {top:.1f} '
            f'{middle:.1f} {y:.1f} {x:.1f} {y:.1f}"/>'
        )
    for node in tree.nodes:
        x, y = place(node)
        radius = SMALLEST + (LARGEST - SMALLEST) * node["visits"] / most
        parts.append(f'<circle class="s{_colour(node)}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">')
        parts.append(f"<title>{escape(_describe_node(node))}</title></circle>")
        if node["visits"]:
            mean_text = f"{node['mean']:.2f}"
            parts.append(f'<text x="{x + radius + 3:.1f}" y="{y - 3:.1f}">{mean_text}</text>')
    inside, label = "\n".join(parts), escape(tree.title)
    return f'<svg viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{label}">\n{inside}\n</svg>'


def _rows(nodes: Sequence[Mapping[str, Any]]) -> dict[int, float]:
    """Return the row of each node: ends one below the other, other nodes in the middle of their successors."""
    children: dict[int, list[int]] = {}
    for node in nodes[1:]:
        children.setdefault(node["parent"], []).append(node["id"])
    rows: dict[int, float] = {}
    ends = 0
    waiting = [0]
    order = []
    while waiting:
        at = waiting.pop()
        order.append(at)
        waiting += reversed(children.get(at, []))
        if at not in children:
            rows[at] = float(ends)
            ends += 1
    for at in reversed(order):
        if at in children:
            below = [rows[child] for child in children[at]]
            rows[at] = (min(below) + max(below)) / 2
    return rows


def _colour(node: Mapping[str, Any]) -> int:
    did = node["state"]["did"]
    return KINDS.index(did) if did in KINDS else len(KINDS)


def _describe_node(node: Mapping[str, Any]) -> str:
    state = node["state"]
    words = [state["did"] or "the question", state["question"], state["pending"] or state["answer"]]
    counts = f"{node['visits']} rollouts, mean {node['mean']:.2f}" if node["visits"] else "no rollout ended"
    return ": ".join(word for word in words if word) + f" ({counts})"
