"""A rollout's share of what a session may still cost: side by side, rollouts stay within the budget too."""

import threading
from dataclasses import dataclass

from engram.context.errors import BudgetSpentError
from engram.core.budget import Budget
from engram.providers.llm import Usage
from engram.providers.llm.llm_client import CallMeter
from engram.wings.sessions.core.session import Cost


@dataclass(frozen=True, slots=True)
class Share:
    """Calls and tokens that may still be spent."""

    llm_calls: int
    tokens: int

    def divide(self, several: int) -> "Share":
        """Return the equal share of each of several."""
        return Share(self.llm_calls // several, self.tokens // several)


def shares(budget: Budget, cost: Cost) -> Share:
    """Return the rest of a session's budget."""
    return Share(max(0, budget.llm_calls - cost.llm_calls), max(0, budget.tokens - cost.tokens))


class Quota:
    """Counts one rollout's calls, and refuses those beyond its share or beyond the session's budget.

    One rollout makes one call at a time, so its count is never behind. How long a reply will be is not known
    before: tokens can go over by one call.
    """

    def __init__(self, meter: CallMeter, share: Share) -> None:
        self._meter = meter
        self._share = share
        self._lock = threading.Lock()
        self._used = Usage()

    @property
    def calls_left(self) -> int:
        """Calls that the rollout may still make."""
        return self._share.llm_calls - self._used.calls

    def check(self) -> None:
        """Whether one more call is within the share.

        Raises:
            BudgetSpentError: it is not.
        """
        self._meter.check()
        with self._lock:
            if self._used.calls >= self._share.llm_calls:
                raise BudgetSpentError(
                    "The rollout's share of the budget of LLM calls is spent.", reason="llm_calls"
                )
            if self._used.prompt_tokens + self._used.completion_tokens >= self._share.tokens:
                raise BudgetSpentError("The rollout's share of the budget of tokens is spent.", reason="tokens")

    def measure_remaining_seconds(self) -> float:
        """Return the rest of the session's budget of seconds, which no rollout has a share of."""
        return self._meter.measure_remaining_seconds()

    def add(self, usage: Usage) -> None:
        """Count what a call took."""
        self._meter.add(usage)
        with self._lock:
            self._used += usage
