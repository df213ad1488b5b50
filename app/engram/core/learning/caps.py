"""Caps on how far one judge may move what others rely on: per judge, memory and day.

A gain K closes the share K of the distance between a memory and what a verdict says. So a judge that moved a memory
by K1, K2, ... on one day left the share Π (1 - Ki) of the distance open. A cap c on the share that it may close is
a floor of 1 - c under that product. Everything here follows from the verdicts on one memory in the order of
application, so a replay of that memory comes to the same gains.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.core.learning.judge_standing import NEWCOMERS

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]

LEAST_GAIN = 1e-9
"""A smaller allowed gain is a rounding error and counts as 0."""
NO_DAY = -1
JUDGES = 64
"""Largest number of judges whose last judgement of a sentence for a question is kept: the first ones."""

JudgeStatements = tuple[tuple[str, int], ...]
"""Judge and its last judgement (1 supported, 0 rejected), in the order of first judgements."""
TextStatements = tuple[JudgeStatements, ...]
"""What judges said of each text that a sentence had, the first text first.

A judgement contradicts none of another text.
"""


@dataclass(frozen=True, slots=True)
class GainBudget:
    """The gain by which each judge may still move one state on its last day.

    Attributes:
        day: day of the latest verdict, as 2026-05-01; empty before any.
        remaining_shares: (judge, share of the distance to its verdicts that it left open, in (0, 1]), by judge.
    """

    day: str = ""
    remaining_shares: tuple[tuple[str, float], ...] = ()

    def start_day(self, day: str) -> "GainBudget":
        """Return the budget for a verdict of ``day``.

        A new day starts afresh; a late verdict counts to the last day.
        """
        return GainBudget(day) if day > self.day else self

    def find_remaining_share(self, judge: str) -> float:
        """Return the share of the distance that this judge has left open on the day."""
        return next((share for name, share in self.remaining_shares if name == judge), 1.0)

    def spend(self, judge: str, gain: float) -> "GainBudget":
        """Return the budget after one more verdict of the judge."""
        share = self.find_remaining_share(judge) * (1.0 - gain)
        remaining = [entry for entry in self.remaining_shares if entry[0] != judge]
        return GainBudget(self.day, tuple(sorted([*remaining, (judge, share)])) if remaining else ((judge, share),))


UNTOUCHED = GainBudget()
"""Budget of a memory that no verdict has moved."""


def compute_largest_gain(remaining_share: float, share: float) -> float:
    """The largest gain that keeps what a judge closes of the distance to its verdicts within ``share``.

    Args:
        remaining_share: the share of the distance that the judge has left open today, in (0, 1].
        share: the cap, in [0, 1]; 1 is none.

    Raises:
        ValueError: an argument is out of its range.
    """
    if not 0 < remaining_share <= 1 or not 0 <= share <= 1:
        raise ValueError("what is left must lie in (0, 1] and the cap in [0, 1]")
    gain = 1.0 - (1.0 - share) / remaining_share
    return gain if gain > LEAST_GAIN else 0.0


def compute_largest_gains(remaining_shares: Floats, shares: Floats) -> Floats:
    """``compute_largest_gain`` of each, (n,), equal to it bit by bit.

    Raises:
        ValueError: a value is out of its range.
    """
    if not ((remaining_shares > 0) & (remaining_shares <= 1) & (shares >= 0) & (shares <= 1)).all():
        raise ValueError("what is left must lie in (0, 1] and the cap in [0, 1]")
    gains = 1.0 - (1.0 - shares) / remaining_shares
    return np.where(gains > LEAST_GAIN, gains, 0.0)


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


def is_contested(statements: JudgeStatements, judge: str, target: int) -> bool:
    """Whether a judgement contradicts those of other judges on the same sentence and question.

    It does unless more judges, its own included, agree with it. In a tie the first judgement stands. A new judge
    does not count on its own side.
    """
    if not statements:
        return False
    opposing = sum(word != target for name, word in statements if name != judge)
    if not opposing:
        return False
    agreeing = (judge != NEWCOMERS) + sum(word == target for name, word in statements if name != judge)
    if agreeing != opposing:
        return agreeing < opposing
    first, word = statements[0]
    return first != judge and word != target


def compute_allowed_gain(
    budget: GainBudget,
    statements: JudgeStatements,
    judge: str,
    target: int,
    *,
    share: float,
    contested_share: float,
) -> float:
    """The largest gain that a judge's caps leave a verdict.

    Args:
        budget: of the state, on the verdict's day.
        statements: of the sentence, for the question.
        share, contested_share: the judge's caps, in [0, 1]; the second holds, if it is the lower one, for a verdict
            that goes against what others said.
    """
    cap = min(share, contested_share) if is_contested(statements, judge, target) else share
    return compute_largest_gain(budget.find_remaining_share(judge), cap)


def add_statement(statements: JudgeStatements, judge: str, target: int) -> JudgeStatements:
    """Return the statements with this judge's latest one; a new judge's is left out."""
    if judge == NEWCOMERS or (len(statements) == 1 and statements[0] == (judge, target)):
        return statements
    if judge in [name for name, _ in statements]:
        return tuple((name, target if name == judge else word) for name, word in statements)
    return (*statements, (judge, target)) if len(statements) < JUDGES else statements


def find_weight_limit(cap: int | None, *, contested: bool) -> int | None:
    """Return the limit on a judge's verdicts of a day that teach weights: 0 for a contested one, None: no limit."""
    return 0 if contested else cap


def select_within_limit(caps: Sequence[int | None], before: int = 0) -> list[bool]:
    """Tell which of a judge's verdicts of one day teach weights, each within its cap.

    Args:
        caps: cap of each verdict, in the order of application, see ``find_weight_limit``.
        before: verdicts of the day that taught before these.
    """
    counting: list[bool] = []
    for cap in caps:
        counting.append(cap is None or before < cap)
        before += counting[-1]
    return counting
