"""Interface of planners: given a session's state, a planner does the next round and returns its result.

To add a planner: write a class with a ``name`` and a ``step`` in a module of its own here, and give it to
``SessionServices.session_planners`` under that name; another wing gives its own to
``SessionServices.add_planner``. ``PlannerName`` in ``api/session_schemas.py`` lists the names that requests may
use. A step may take long and call an LLM through ``tools.llm``; no transaction is open meanwhile. The
``SessionStep`` that it returns is committed whole, with the round's cost, by one transaction. If the process is
killed before that, the step is done again from the same state. What it is to remember beyond notes it puts into
``SessionStep.plan_state``, which comes back as ``SessionState.plan_state``.
Budgets hold by themselves: ``tools`` refuses what would go beyond one (``BudgetSpentError``, an ``LlmError`` where
it is about the LLM, so that what falls back to rules when an endpoint breaks does so here as well), and the runner
stops the session once one is spent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from engram.services.auth.scope import Scope
from engram.services.question.query import Fallback
from engram.wings.sessions.core.session import Conclusion, CurationCounts, Gap, Note, PoolSentence, StopReason
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import AskedQuery, StepTools


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStep:
    """Result of one step.

    Attributes:
        action: what was done, in a word; None where there was nothing to do but stop, which makes no round.
        sub_question: what the round went after, in words.
        gap: what it was to fill.
        queries: its queries, in order.
        sentences: sentences that enter the pool.
        curated: what became of all sentences that were looked at.
        notes: the working memory as it is from now on; None leaves it as it was.
        ranked: passages, best first, as they are from now on; None leaves them as they were.
        sufficiency, covered: as of now; None leaves them.
        plan_state: as it is from now on; None leaves it.
        said: more about the round, in JSON, for whoever reads the session.
        conclusion: an answer in words, where the planner gives one itself.
        stop: why the session ends with this; None while it goes on.
        warnings: what the LLM failed.
    """

    action: str | None
    sub_question: str | None = None
    gap: Gap | None = None
    queries: Sequence[AskedQuery] = ()
    sentences: Sequence[PoolSentence] = ()
    curated: CurationCounts = field(default_factory=CurationCounts)
    notes: Sequence[Note] | None = None
    ranked: Sequence[int] | None = None
    sufficiency: float | None = None
    covered: float | None = None
    plan_state: Mapping[str, Any] | None = None
    said: Mapping[str, Any] = field(default_factory=dict)
    conclusion: Conclusion | None = None
    stop: StopReason | None = None
    warnings: Sequence[Fallback] = ()


class SessionPlanner(Protocol):
    """Decides what a session does next, and does it."""

    @property
    def name(self) -> str:
        """Name in requests."""
        ...

    @property
    def needs_llm(self) -> bool:
        """Whether it can do nothing without an endpoint."""
        ...

    def step(self, state: SessionState, tools: StepTools) -> SessionStep:
        """The next round, or the end.

        Raises:
            BudgetSpentError: a budget does not suffice for any of it; the session stops by that.
            UnavailableError: a server is away; the step is done again.
        """
        ...


Finish = Callable[[Scope, SessionState], None]
"""Acts on a session of a planner that has stopped by itself. No transaction is open; again, it changes nothing."""
