"""The engine of learning: move states by what events observe of them, in columns.

A worker applies verdicts with it (``steps``), and a replay computes what the log says with it (``state_replay``):
both come to the same bits. A state is how surely a sentence supports a question, or one of a wing. All follow the
same filter (``kalman``), within the caps of the judge (``caps``).

How an observation moves a state depends on the state's earlier observations only. ``add_judgements`` has told
before whether it contradicts other judges. The engine moves states in waves: the n-th wave holds the n-th
observation of each state. A state's result does not depend on the states beside it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from engram.core.learning import kalman, sufficiency_memory
from engram.core.learning.caps import (
    GainBudgets,
    Ids,
    JudgeStatements,
    StateMoves,
    TextStatements,
    add_statement,
    is_contested,
)
from engram.core.learning.kalman import Floats, StateUpdate, SupportUpdate
from engram.core.learning.sentence_acceptance import compute_acceptance_noise, update_acceptance
from engram.core.learning.state_rows import RemainingShares, SupportRows
from engram.core.learning.states import AuditRows, Event


class BudgetedStates(Protocol):
    """States in columns with a ``GainBudget`` of each."""

    @property
    def days(self) -> Sequence[str]: ...
    @property
    def remaining_shares(self) -> Sequence[RemainingShares]: ...


@dataclass(frozen=True, slots=True)
class Observations:
    """Observations of single states by events, n rows in columns; arrays are (n,).

    The rows of one state stand in the order in which its events are applied.

    Attributes:
        events: all events that observe.
        event_places: place in ``events``.
        states: place of the state that is observed.
        sentence_ids: sentence of the state.
        channels: places in ``AUDITED``.
        targets: y of GAM-RAG, Eq. 10, 0 or 1.
        noise: R of Eq. 11, above 0.
        revisions, likeness: of the text that was judged, see ``JudgedText``. R is divided by the likeness.
        opposed: whether the observation contradicts what other judges said of the sentence.
    """

    events: Sequence[Event]
    event_places: Ids
    states: Ids
    sentence_ids: Ids
    channels: Ids
    targets: Ids
    noise: Floats
    revisions: Ids
    likeness: Floats
    opposed: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.states)

    def select(self, rows: Ids) -> "Observations":
        """The observations at these places."""
        return replace(
            self,
            event_places=self.event_places[rows],
            states=self.states[rows],
            sentence_ids=self.sentence_ids[rows],
            channels=self.channels[rows],
            targets=self.targets[rows],
            noise=self.noise[rows],
            revisions=self.revisions[rows],
            likeness=self.likeness[rows],
            opposed=self.opposed[rows],
        )

    @property
    def observed_states(self) -> Ids:
        """Places of the observed states, in ascending order."""
        return np.unique(self.states)

    def build_budgets(self, states: BudgetedStates) -> GainBudgets:
        """Build the gain budgets of all states, with the caps of these observations."""
        shares = np.array([[event.share, event.contested_share] for event in self.events], dtype=np.float64)
        shares = shares.reshape(-1, 2)[self.event_places]
        caps = np.where(self.opposed, shares.min(axis=1), shares[:, 0])
        places = self.event_places.tolist()
        judges = [self.events[place].judge for place in places]
        days = [self.events[place].day for place in places]
        return GainBudgets(states.days, states.remaining_shares, StateMoves(self.states, judges, days, caps))


def add_judgements(
    statements: list[JudgeStatements], places: Sequence[int], judges: Sequence[str], targets: Sequence[int]
) -> NDArray[np.bool_]:
    """Record judgements in ``statements``; return which of them contradict other judges, (n,).

    Args:
        statements: by place; changed in place.
        places: place in ``statements`` of each judgement. Those of one place stand in the order of application.
        judges, targets: judge and y of each judgement.
    """
    opposed = np.zeros(len(places), dtype=np.bool_)
    alone = {(judge, target): add_statement((), judge, target) for judge in set(judges) for target in (0, 1)}
    for row, (place, judge, target) in enumerate(zip(places, judges, targets, strict=True)):
        before = statements[place]
        if before and before == alone[judge, target]:
            continue  # the judge repeats itself, and nobody else spoke
        opposed[row] = is_contested(before, judge, target)
        statements[place] = add_statement(before, judge, target)
    return opposed


def add_text_judgements(
    statements: list[TextStatements],
    places: Sequence[int],
    revisions: Sequence[int],
    judges: Sequence[str],
    targets: Sequence[int],
) -> NDArray[np.bool_]:
    """Record judgements like ``add_judgements``, each among those of the same text of its sentence.

    Args:
        revisions: which text each judgement is about, see ``JudgedText``.
    """
    text_places: dict[tuple[int, int], int] = {}
    own = [text_places.setdefault(key, len(text_places)) for key in zip(places, revisions, strict=True)]
    by_text = [
        statements[place][revision] if revision < len(statements[place]) else () for place, revision in text_places
    ]
    opposed = add_judgements(by_text, own, judges, targets)
    for (place, revision), judged in zip(text_places, by_text, strict=True):
        texts = [*statements[place], *[()] * (revision + 1 - len(statements[place]))]
        texts[revision] = judged
        statements[place] = tuple(texts)
    return opposed


def move_supports(
    supports: SupportRows, observations: Observations, statements: Sequence[TextStatements]
) -> tuple[SupportRows, AuditRows]:
    """Move supports by observations.

    Args:
        statements: of each support, after all observations.

    Returns:
        The moved supports, in the order of ``observations.observed_states``, and a row for each observation.

    Raises:
        ValueError: a value is out of its range.
    """
    if not len(observations):
        return SupportRows.from_rows([]), AuditRows.build_empty()
    states, budgets = observations.states, observations.build_budgets(supports)
    values, perplexities = supports.supports.copy(), supports.perplexities.copy()
    acceptance = supports.acceptance.copy()
    answered, sufficiency = supports.answered.copy(), supports.sufficiency.copy()
    certain = np.array([event.noise for event in observations.events])[observations.event_places]
    caps = np.array([event.share for event in observations.events])[observations.event_places]
    judged = np.array([event.sufficiency for event in observations.events], dtype=np.float64)
    judged = judged[observations.event_places] * observations.likeness
    claims = np.array([event.complete for event in observations.events], dtype=np.bool_)[observations.event_places]

    def update(places: Ids, wave: Wave) -> SupportUpdate:
        at = states[places]
        after = kalman.update_supports(
            values[at], wave.perplexities, wave.targets, wave.noise, wave.process_noise, most=wave.most
        )
        values[at] = after.supports
        acceptance[at] = update_acceptance(
            acceptance[at],
            wave.perplexities,
            targets=wave.targets,
            gains=after.gains,
            noise=compute_acceptance_noise(observations.noise[places], certain[places])
            / observations.likeness[places],
            caps=caps[places],
        )
        answered[at], sufficiency[at] = sufficiency_memory.update_sufficiency(
            answered[at],
            sufficiency[at],
            targets=wave.targets,
            gains=after.gains,
            judged=judged[places],
            complete=claims[places],
        )
        return after

    audit = move_states(observations, budgets, perplexities, update)
    complete = supports.complete.copy()
    complete[states] = claims  # the last observation of a state stays
    rows = observations.observed_states
    return SupportRows(
        question_ids=supports.question_ids[rows],
        sentence_ids=supports.sentence_ids[rows],
        supports=values[rows],
        perplexities=perplexities[rows],
        acceptance=acceptance[rows],
        update_counts=supports.update_counts[rows] + np.bincount(states)[rows],
        complete=complete[rows],
        days=budgets.days(rows),
        remaining_shares=budgets.list_remaining_shares(rows),
        statements=[statements[state] for state in rows.tolist()],
        answered=answered[rows],
        sufficiency=sufficiency[rows],
    ), audit


class Wave(NamedTuple):
    """Observations of a wave, and the perplexities of their states before it; arrays are (n,)."""

    perplexities: Floats
    targets: Floats
    noise: Floats
    process_noise: Floats
    most: Floats
    """Largest gain that the judge's caps allow."""


def move_states(
    observations: Observations,
    budgets: GainBudgets,
    perplexities: Floats,
    update: Callable[[Ids, Wave], StateUpdate],
) -> AuditRows:
    """Move states wave by wave, and their perplexities in place; return a row for each observation.

    Args:
        update: moves the states of a wave, whose places in ``observations`` it gets first.
    """
    count = len(observations)
    event_ids = np.array([event.id for event in observations.events], dtype=np.int64)[observations.event_places]
    process_noise = np.array([event.process_noise for event in observations.events], dtype=np.float64)
    process_noise = process_noise[observations.event_places]
    noise = observations.noise / observations.likeness
    targets = observations.targets.astype(np.float64)
    gains, residuals, before, after = np.empty(count), np.empty(count), np.empty(count), np.empty(count)
    for places in _waves(observations.states):
        states = observations.states[places]
        before[places] = perplexities[states]
        effect = update(
            places,
            Wave(
                before[places],
                targets[places],
                noise[places],
                process_noise[places],
                budgets.compute_largest_gains(places),
            ),
        )
        budgets.spend(places, effect.gains)
        perplexities[states] = after[places] = effect.perplexities
        gains[places], residuals[places] = effect.gains, effect.residuals
    return AuditRows(
        event_ids=event_ids,
        sentence_ids=observations.sentence_ids,
        channels=observations.channels,
        targets=observations.targets,
        observation_noise=observations.noise,
        gains=gains,
        residuals=residuals,
        perplexities_before=before,
        perplexities_after=after,
        process_noise=process_noise,
        revisions=observations.revisions,
        likeness=observations.likeness,
    )


def _waves(states: Ids) -> list[Ids]:
    """Divide the places in ``states`` into waves: the n-th wave has the n-th place of each state."""
    order = np.argsort(states, kind="stable")
    first = np.flatnonzero(np.diff(states[order], prepend=states[order[0]] - 1))
    turns = np.arange(len(states)) - np.repeat(first, np.diff(first, append=len(states)))
    turn_of = np.empty(len(states), dtype=np.int64)
    turn_of[order] = turns
    by_turn = np.argsort(turn_of, kind="stable")
    return np.split(by_turn, np.flatnonzero(np.diff(turn_of[by_turn])) + 1)
