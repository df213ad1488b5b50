"""Several conclusions made one: by a vote that ratings weigh, or by the LLM (State-Aware RAG, Appendix C.4)."""

from collections.abc import Sequence

from engram.context.errors import LlmError
from engram.providers.llm import Llm
from engram.services.question.query import Fallback
from engram.wings.sessions.core.answer_groups import group_answers
from engram.wings.sessions.core.session import Conclusion, PoolSentence
from engram.wings.sessions.core.tree_search import Tree, path
from engram.wings.sessions.llm import reasoning
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.tree_branch import CONCLUDE, BranchState, format_thought
from engram.wings.sessions.services.tree_options import TreeOptions


def combine_answers(
    state: SessionState,
    llm: Llm,
    options: TreeOptions,
    tree: Tree[BranchState],
    pool: Sequence[PoolSentence],
    *,
    last: bool,
) -> tuple[Conclusion | None, list[Fallback]]:
    """The session's answer as the tree has it now; None while nothing was concluded.

    Args:
        last: whether no rollout follows, so that the LLM is worth asking.
    """
    voted = vote(tree)
    if voted is None:
        return None, []
    conclusion = Conclusion(voted.answer, voted.settled, voted.cites)
    if not last or options.combine == "vote" or len(_answers(tree)) == 1:
        return conclusion, []
    candidates = [
        " / ".join(
            [*(format_thought(tree.nodes[at].state) for at in path(tree, node)[1:] if tree.nodes[at].state.answer)]
        )
        for node in (_select_best(tree, group) for group in _answers(tree))
    ]
    evidence = [(one.sentence_id, one.text) for one in pool]
    try:
        draft = reasoning.synthesise(llm, state.question, candidates, evidence)
    except LlmError as error:
        return conclusion, [Fallback("not-answered", error.detail)]
    if not draft.text:
        return conclusion, []
    return Conclusion(draft.text, draft.sufficient, draft.cited), []


def vote(tree: Tree[BranchState]) -> BranchState | None:
    """The conclusion that most speaks for: each votes by its rating, and ways to write one name are one answer.

    Of equally supported ones that with more votes, then the first. A conclusion that nobody rated counts where
    there is no other. None where nothing was concluded.
    """
    groups = _groups(tree)
    if not groups:
        return None
    leading = max(groups, key=_count_votes)
    return max(leading, key=lambda one: one.rating or 0.0)


def is_decided(tree: Tree[BranchState], rollouts: int) -> bool:
    """Whether no votes that are still to come can change what wins: each of them counts 1 at most."""
    groups, left = _groups(tree), max(0, rollouts - tree.begun)
    if not groups:
        return False
    leading = max(groups, key=_count_votes)
    other_groups = [group for group in groups if group is not leading]
    # An answer that nobody gave yet would come last, and of equals the first wins.
    reach = [(support + left, votes + left) for support, votes in map(_count_votes, other_groups)]
    return (left, left) <= _count_votes(leading) and all(one < _count_votes(leading) for one in reach)


def _groups(tree: Tree[BranchState]) -> list[list[BranchState]]:
    """Conclusions that say the same, in the order in which they were first said."""
    return [[tree.nodes[node].state for node in group] for group in _answers(tree)]


def _count_votes(group: Sequence[BranchState]) -> tuple[float, int]:
    """The sum of ratings, and the number of conclusions, rated or not."""
    return sum(one.rating or 0.0 for one in group), len(group)


def _answers(tree: Tree[BranchState]) -> list[list[int]]:
    """Nodes that concluded the same answer, for each different one."""
    concluded = [node.id for node in tree.nodes if node.state.did == CONCLUDE and node.state.answer]
    groups = group_answers([tree.nodes[node].state.answer for node in concluded])
    return [[concluded[place] for place in group] for group in groups]


def _select_best(tree: Tree[BranchState], nodes: Sequence[int]) -> int:
    """The node of the highest rating; of equals the first."""
    return max(nodes, key=lambda node: tree.nodes[node].state.rating or 0.0)
