"""Planner "auto": the question first, then the planner that what came of it calls for, within the budget.

Where one retrieval is likely enough, or no model can be asked, what is missing is filled by "pool"; where it is
not, by "socratic", which costs some five calls a round; by "tree", which costs ten times that, only if the budget
has room for it. The choice is made once, after the first round, and kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from engram.wings.sessions.services.planner import SessionPlanner, SessionStep
from engram.wings.sessions.services.pool_planner import PoolPlanner
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import StepTools

NEAR_PROBABILITY = 0.6
"""Probability that the evidence is enough from which on it is near."""
SOCRATIC_CALLS = 6
"""Calls without which no round of "socratic" comes to its end."""
TREE_CALLS = 86
"""Calls that a tree takes (State-Aware RAG, on 2Wiki)."""


@dataclass(frozen=True, slots=True)
class AutoPlanner:
    """Picks a planner.

    Attributes:
        pool: does the first round.
        others: by name; "socratic" and "tree" are picked where they are there.
    """

    pool: PoolPlanner
    others: Mapping[str, SessionPlanner]
    name = "auto"
    needs_llm = False

    def step(self, state: SessionState, tools: StepTools) -> SessionStep:
        """The first round, or what the picked planner does."""
        if not state.rounds:
            step = self.pool.run_by_rules(state, tools)
            return replace(step, plan_state={"of": step.plan_state or {}})
        plan_state = dict(state.plan_state)
        picked = plan_state.get("planner") or self._pick(state, tools)
        planner: SessionPlanner = self.others.get(picked, self.pool)
        inner = plan_state.get("of", {}) if picked == plan_state.get("planner") or picked == self.pool.name else {}
        step = planner.step(replace(state, plan_state=inner), tools)
        return replace(
            step,
            plan_state={"planner": picked, "of": inner if step.plan_state is None else step.plan_state},
            said={**step.said, "planner": picked},
        )

    def _pick(self, state: SessionState, tools: StepTools) -> str:
        if tools.llm is None or (state.sufficiency is not None and state.sufficiency >= NEAR_PROBABILITY):
            return self.pool.name
        calls = state.budget.llm_calls - state.cost.llm_calls
        if "tree" in self.others and calls >= TREE_CALLS:
            return "tree"
        return "socratic" if "socratic" in self.others and calls >= SOCRATIC_CALLS else self.pool.name
