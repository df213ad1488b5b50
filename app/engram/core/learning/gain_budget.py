"""Gain budgets of many states in columns: ``caps.GainBudget`` of each, and how verdicts use them up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.caps import Floats, compute_largest_gains

Ids = NDArray[np.int64]
NO_DAY = -1


@dataclass(frozen=True, slots=True)
class StateMoves:
    """Moves of single states by verdicts, in columns; arrays are (n,).

    Attributes:
        states: place of the state.
        judges, days: as caps know them; of each verdict.
        caps: share of the distance that the judge may close of the state in a day, in [0, 1].
    """

    states: Ids
    judges: Sequence[str]
    days: Sequence[str]
    caps: Floats


class GainBudgets:
    """Gain budgets of m states.

    There is a slot for each (state, judge) of the stored budgets and the verdicts. A slot counts while its day is
    that of its state.
    """

    def __init__(self, days: Sequence[str], budgets: Sequence[Mapping[str, float]], moves: StateMoves) -> None:
        self._day_names = sorted({*days, *moves.days})
        self._judge_names = sorted(set[str]().union(moves.judges, *budgets))
        day_of = {day: at for at, day in enumerate(self._day_names)}
        judge_of = {judge: at for at, judge in enumerate(self._judge_names)}
        self._days = np.array([day_of[day] for day in days], dtype=np.int64)
        self._caps = moves.caps
        self._verdict_days = np.array([day_of[day] for day in moves.days], dtype=np.int64)
        stored_shares = [
            (at, judge_of[judge], share) for at, own in enumerate(budgets) for judge, share in own.items()
        ]
        states = np.array([at for at, _, _ in stored_shares], dtype=np.int64)
        slots = np.concatenate([states, moves.states]) * len(judge_of)
        slots += np.array(
            [*(judge for _, judge, _ in stored_shares), *map(judge_of.__getitem__, moves.judges)], dtype=np.int64
        )
        unique_slots, at = np.unique(slots, return_inverse=True)
        self._slot_states, self._slot_judges = np.divmod(unique_slots, max(len(judge_of), 1))
        self._shares = np.ones(len(unique_slots))
        self._slot_days = np.full(len(unique_slots), NO_DAY)
        self._shares[at[: len(stored_shares)]] = [share for _, _, share in stored_shares]
        self._slot_days[at[: len(stored_shares)]] = self._days[states]
        self._verdict_slots = at[len(stored_shares) :]
        self._states = moves.states

    def compute_largest_gains(self, wave: Ids) -> Floats:
        """The largest gains that caps leave these verdicts, each of another state."""
        return compute_largest_gains(self._find_remaining_shares(wave), self._caps[wave])

    def spend(self, wave: Ids, gains: Floats) -> None:
        """Record the gains of these verdicts, each of another state."""
        slots, days = self._verdict_slots[wave], self._find_days(wave)
        self._shares[slots] = self._find_remaining_shares(wave) * (1.0 - gains)
        self._slot_days[slots] = days
        self._days[self._states[wave]] = days

    def _find_days(self, wave: Ids) -> Ids:
        """Return the days of the wave's states; a late verdict counts to the state's last day."""
        return np.maximum(self._days[self._states[wave]], self._verdict_days[wave])

    def _find_remaining_shares(self, wave: Ids) -> Floats:
        slots = self._verdict_slots[wave]
        return np.where(self._slot_days[slots] == self._find_days(wave), self._shares[slots], 1.0)

    def days(self, states: Ids) -> list[str]:
        """The last day of each of these states."""
        return [self._day_names[day] for day in self._days[states].tolist()]

    def list_remaining_shares(self, states: Ids) -> list[dict[str, float]]:
        """Return for each state the share that each judge left on its day."""
        counts = self._slot_days == self._days[self._slot_states]
        shares_by_state: list[dict[str, float]] = [{} for _ in range(len(self._days))]
        for state, judge, share in zip(
            self._slot_states[counts].tolist(),
            self._slot_judges[counts].tolist(),
            self._shares[counts].tolist(),
            strict=True,
        ):
            shares_by_state[state][self._judge_names[judge]] = share
        return [shares_by_state[state] for state in states.tolist()]
