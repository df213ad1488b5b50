"""The planner ``tree``: Monte Carlo tree search over steps of reasoning (State-Aware RAG, section 3.3).

The session's own question is asked first. Then a round is a wave of rollouts, side by side: each tries an action
that nobody tried at some node and goes on from there to a conclusion, which a judge without a key rates.
The tree is kept with the session after every wave, so a process that is killed costs one wave. What rollouts found
enters the one memory that all later ones start from, also where a rollout failed.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from engram.context import tenancy
from engram.context.errors import LlmError
from engram.providers.llm import Llm
from engram.services.question.query import Fallback
from engram.wings.sessions.core import tree_search
from engram.wings.sessions.core.curation import curate
from engram.wings.sessions.core.memory_merge import merge_notes
from engram.wings.sessions.core.session import CurationCounts, Note, PoolSentence, StopReason
from engram.wings.sessions.core.tree_search import Rollout, RolloutClaim, SearchLimits, Tree
from engram.wings.sessions.llm.tree_prompts import VERSION
from engram.wings.sessions.services.planner import SessionStep
from engram.wings.sessions.services.pool_planner import PoolPlanner
from engram.wings.sessions.services.session_rules import OrderedPassages, move_evidence_first, rank_by_rules
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import AskedQuery, StepTools
from engram.wings.sessions.services.tree_answer import combine_answers, is_decided
from engram.wings.sessions.services.tree_branch import (
    CALLS,
    CONCLUDE,
    Branch,
    BranchState,
    list_possible_actions,
    load_thought,
)
from engram.wings.sessions.services.tree_options import TreeOptions, read_options
from engram.wings.sessions.services.tree_quota import Quota, Share, shares


@dataclass(frozen=True, slots=True)
class TreePlanner:
    """Rounds of rollouts over a tree of reasoning.

    Attributes:
        rules: whose rounds it does where the budget has no calls, or the model fails a whole wave.
    """

    rules: PoolPlanner
    name = "tree"
    needs_llm = True

    def step(self, state: SessionState, tools: StepTools) -> SessionStep:
        """The session's own question, or a wave of rollouts; the end once no rollout could change the answer.

        Raises:
            BudgetSpentError: a budget does not suffice for any of it.
            InvalidRequestError: the session's options are none of this planner's.
        """
        options = read_options(state.request.options)
        if tools.llm is None:
            return self.rules.step(state, tools)
        tree = _tree(state)
        if tree is None:
            tree = tree_search.plant(
                BranchState(), list_possible_actions([BranchState()], 0, options.limits), options.limits
            )
            if state.question not in state.queries:  # as it was if another planner began
                return self._run_first_round(state, tools, options, tree)
        wave = _RolloutWave(state, tools, tools.llm, options, tree)
        grown = wave.run()
        if wave.failed_throughout:
            return self._run_by_rules(state, tools, grown, wave.failures)
        return wave.step(grown)

    def _run_by_rules(
        self, state: SessionState, tools: StepTools, tree: Tree[BranchState], failures: Sequence[str]
    ) -> SessionStep:
        """Do the pool planner's round where the model failed every rollout; the tree keeps count of them.

        Raises:
            BudgetSpentError: a budget does not suffice for it.
        """
        inner = replace(state, plan_state=state.plan_state.get("rules", {}))
        step = self.rules.run_by_rules(inner, tools)
        warnings = [Fallback("planned-by-rules", detail) for detail in dict.fromkeys(failures)]
        rules_state = inner.plan_state if step.plan_state is None else step.plan_state
        return replace(
            step, plan_state={**_format_tree(tree), "rules": rules_state}, warnings=[*step.warnings, *warnings]
        )

    def _run_first_round(
        self, state: SessionState, tools: StepTools, options: TreeOptions, tree: Tree[BranchState]
    ) -> SessionStep:
        branch = Branch(state, tools, options.means, [BranchState()], list(state.pool), list(state.notes))
        evidence = branch.seek(state.question, [state.question])
        ordered = rank_by_rules(state, branch.queries, evidence)
        return SessionStep(
            action="ask",
            queries=branch.queries,
            sentences=evidence,
            curated=branch.curated,
            notes=branch.notes,
            ranked=_rank_passages(ordered, branch.pool, branch.warnings),
            sufficiency=ordered.sufficiency,
            covered=ordered.covered,
            plan_state=_format_tree(tree),
            warnings=branch.warnings,
        )


class _RolloutWave:
    """One round: rollouts at the same time, whose results are joined in the order in which they began."""

    def __init__(
        self, state: SessionState, tools: StepTools, llm: Llm, options: TreeOptions, tree: Tree[BranchState]
    ) -> None:
        self._state = state
        self._tools = tools
        self._llm = llm
        self._options = options
        self._before = tree
        self._limits = _limits(options, tree)
        self._share, self._size = self._divide_budget()
        self._branches: dict[int, Branch] = {}
        self._failures: dict[int, str] = {}
        self._stepped = False

    def run(self) -> Tree[BranchState]:
        """Grow the tree by a wave."""
        with ThreadPoolExecutor(self._options.together, thread_name_prefix="rollout") as threads:
            return tree_search.wave(
                self._before, self._limits, self._options.seed, self._size, tenancy.carry(self._roll), threads.map
            )

    @property
    def failed_throughout(self) -> bool:
        """Tell whether the model failed every rollout of the wave before it took any step."""
        return bool(self._branches) and not self._stepped and len(self._failures) == len(self._branches)

    @property
    def failures(self) -> list[str]:
        """Failures of the rollouts, in the order in which they were begun."""
        return [self._failures[at] for at in sorted(self._failures)]

    def step(self, tree: Tree[BranchState]) -> SessionStep:
        """Return what this wave of rollouts adds to the session, and its answer if it ends."""
        nothing_left = tree_search.claim(tree, self._limits, self._options.seed) is None
        if self._options.combine == "vote" and is_decided(tree, self._limits.rollouts):
            nothing_left = True
        pool, notes, asked, curated = self._merge_rollouts(tree)
        conclusion, warnings = combine_answers(self._state, self._llm, self._options, tree, pool, last=nothing_left)
        outcomes = [
            Fallback("not-answered", f"Rollout {at + 1}: {self._failures[at]}") for at in sorted(self._failures)
        ]
        stop: StopReason | None = None
        if nothing_left:
            stop = "no_gap" if conclusion is None else "answered"
        if tree is self._before:
            return SessionStep(action=None, conclusion=conclusion, stop=stop, warnings=warnings)
        evidence = pool[len(self._state.pool) :]
        ordered = rank_by_rules(self._state, asked, evidence)
        return SessionStep(
            action="rollouts",
            queries=asked,
            sentences=evidence,
            curated=curated,
            notes=notes,
            ranked=_rank_passages(ordered, pool, outcomes),
            sufficiency=ordered.sufficiency,
            covered=ordered.covered,
            plan_state=_format_tree(tree),
            said={"rollouts": len(self._branches), "failed": tree.failed - self._before.failed, "prompts": VERSION},
            conclusion=conclusion,
            stop=stop,
            warnings=[*outcomes, *warnings],
        )

    def _divide_budget(self) -> tuple[Share, int]:
        """Return the cost limit of each rollout and their number; no rollout can take another's share."""
        remaining_shares = shares(self._state.budget, self._state.cost)
        rounds = max(1, self._state.budget.rounds - self._state.cost.rounds)
        rollout_count = max(
            self._options.together, math.ceil((self._limits.rollouts - self._before.begun) / rounds)
        )
        size = max(
            1,
            min(
                rollout_count,
                remaining_shares.llm_calls // sum(CALLS[action] for action in ("decompose", CONCLUDE)),
            ),
        )
        return remaining_shares.divide(size), size

    def _roll(self, tree: Tree[BranchState], claimed: RolloutClaim) -> Rollout[BranchState]:
        """Make a rollout: act from the claimed action to a conclusion, within its share of the budget."""
        quota = Quota(self._tools.meter, self._share)
        tools = copy.copy(self._tools)
        tools.llm = self._llm.attach_meter(quota)
        at = tree.nodes[claimed.node]
        siblings = [tree.nodes[child].state.question for child in at.children]
        branch = Branch(
            self._state,
            tools,
            self._options.means,
            [tree.nodes[node].state for node in tree_search.path(tree, claimed.node)],
            list(self._state.pool),
            list(self._state.notes),
            [question for question in siblings if question],
        )
        self._branches[claimed.rollout] = branch
        steps: list[tree_search.TreeStep[BranchState]] = []
        action, depth = claimed.action, at.depth
        try:
            while True:
                thought = branch.act(action)
                depth += 1
                follow = list_possible_actions(branch.path, depth, self._limits)
                steps.append(tree_search.TreeStep(action, thought, follow))
                if thought.did == CONCLUDE:
                    return Rollout(tuple(steps), thought.rating)
                action = follow[0]
                if quota.calls_left < CALLS[action.partition(":")[0]] + CALLS[CONCLUDE]:
                    action = CONCLUDE
        except LlmError as error:
            self._failures[claimed.rollout] = error.detail
            if steps or branch.queries:
                self._stepped = True
            return Rollout(tuple(steps), None)

    def _merge_rollouts(
        self, tree: Tree[BranchState]
    ) -> tuple[list[PoolSentence], list[Note], list[AskedQuery], CurationCounts]:
        """Merge what the rollouts found, in the order in which they began: pool, notes, queries asked and counts.

        Of sentences that say the same the first is kept, and any that something cites. Notes that a rollout rewrote
        (Eq. 2) stay rewritten.
        """
        before = self._state
        pool = list(before.pool)
        asked: list[AskedQuery] = []
        curated = CurationCounts()
        cited = {sentence for node in tree.nodes for sentence in node.state.cites}
        for rollout in sorted(self._branches):
            branch = self._branches[rollout]
            cited.update(sentence for note in branch.notes for sentence in note.cites)
            pool_ids = {one.sentence_id for one in pool}
            fresh = [one for one in branch.pool[len(before.pool) :] if one.sentence_id not in pool_ids]
            decided = curate([one.text for one in fresh], [one.text for one in pool])
            kept_places = {
                *decided.kept_positions,
                *(at for at, one in enumerate(fresh) if one.sentence_id in cited),
            }
            pool += [
                replace(one, query=None if one.query is None else one.query + len(asked))
                for at, one in enumerate(fresh)
                if at in kept_places
            ]
            asked += branch.queries
            curated += replace(branch.curated, kept=len(kept_places))
        notes = merge_notes(before.notes, [self._branches[rollout].notes for rollout in sorted(self._branches)])
        return pool, notes, asked, curated


def _rank_passages(
    ordered: OrderedPassages, pool: Sequence[PoolSentence], warnings: Sequence[Fallback]
) -> list[int]:
    """Rank passages by rules. If the model sifted, passages of which it kept a sentence come first."""
    if any(warning.type == "sifted-by-rules" for warning in warnings):
        return ordered.ranked
    return move_evidence_first(ordered.ranked, pool)


def _format_tree(tree: Tree[BranchState]) -> dict[str, Any]:
    return {"tree": tree_search.as_data(tree, BranchState.to_json)}


def _tree(state: SessionState) -> Tree[BranchState] | None:
    kept: Mapping[str, Any] | None = state.plan_state.get("tree")
    return None if kept is None else tree_search.from_data(kept, load_thought)


def _limits(options: TreeOptions, tree: Tree[BranchState]) -> SearchLimits:
    """Return the session's limits; a session that had all its rollouts gets one more wave."""
    if tree.begun < options.limits.rollouts:
        return options.limits
    return replace(options.limits, rollouts=tree.begun + options.together)
