"""Learning with a part left out or changed, to measure the difference that the part makes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engram.core.learning.kalman import Floats
from engram.core.learning.logged_verdict import LoggedVerdict
from engram.core.learning.observations import Observations, move_supports
from engram.core.learning.state_rows import SupportRows
from engram.core.learning.states import AuditRows
from engram.core.learning.steps import BatchObservations, LabelledEvent, MovedSupports, observe_supports
from engram.wings.published.core.memory_moves import ChannelDirections, move_memories, observe_memories
from engram.wings.published.core.memory_states import MemoryRows
from engram.wings.published.services.expansion_validation import ExpansionValidation, Gate
from engram.wings.tuning.core.acceptance import AcceptanceRule


@dataclass(frozen=True, slots=True)
class PartialRule:
    """Rule of learning that leaves supports alone, or has another gain.

    Attributes:
        is_frozen: events leave supports alone.
        fixed_gain: share by which every event moves a state, whatever its perplexity, in (0, 1); None: Kalman gain.
    """

    is_frozen: bool
    fixed_gain: float | None

    def __call__(
        self, events: Sequence[LabelledEvent], sentences: Collection[int], supports: SupportRows
    ) -> MovedSupports:
        """Apply events one after the other: see ``steps.apply_events``."""
        held = {(row.question_id, row.sentence_id): row for row in supports}
        moved_keys = set[tuple[int, int]]()
        audits: list[AuditRows] = []
        opposed = [np.zeros(0, dtype=np.bool_)]
        contested: set[int] = set()
        for event in events:
            moved, audit, observed = self._apply(event, sentences, SupportRows.from_rows([*held.values()]))
            for support in moved:
                held[support.question_id, support.sentence_id] = support
                moved_keys.add((support.question_id, support.sentence_id))
            audits.append(audit)
            opposed.append(observed.observations.opposed)
            contested |= observed.contested
        observed = observe_supports(events, sentences, supports)
        observations = replace(observed.observations, opposed=np.concatenate(opposed))
        return MovedSupports(
            SupportRows.from_rows([held[key] for key in sorted(moved_keys)]),
            AuditRows.concatenate(audits),
            replace(observed, observations=observations, contested=frozenset(contested)),
        )

    def _apply(
        self, event: LabelledEvent, sentences: Collection[int], supports: SupportRows
    ) -> tuple[SupportRows, AuditRows, BatchObservations]:
        """Apply one event, as this rule has it."""
        observed = observe_supports([event], sentences, supports)
        observations = observed.observations
        if self.fixed_gain is not None:
            observations = _set_proportional_noise(
                observations, self.fixed_gain, observed.supports.perplexities, event.probabilities
            )
        if self.is_frozen:
            observations = observations.select(np.zeros(0, dtype=np.int64))
        return *move_supports(observed.supports, observations, observed.statements), observed


@dataclass(frozen=True, slots=True)
class PartialMemoryRule:
    """Rule of learning that leaves channels of sentence memories alone, or has another gain.

    Attributes:
        frozen: channels that events leave alone.
        fixed_gain: see ``PartialRule``.
    """

    frozen: Collection[str]
    fixed_gain: float | None

    def __call__(
        self, judged: BatchObservations, directions: Sequence[ChannelDirections], memories: MemoryRows
    ) -> tuple[MemoryRows, AuditRows]:
        """Apply events one after the other: see ``memory_moves.move_along_questions``."""
        held = {(row.sentence_id, row.channel): row for row in memories}
        moved_keys = set[tuple[int, str]]()
        audits: list[AuditRows] = []
        moving = [
            {channel: vector for channel, vector in own.items() if channel not in self.frozen} for own in directions
        ]
        for place, event in enumerate(judged.events):
            before = MemoryRows.from_rows([*held.values()])
            of_event = judged.observations.select(np.flatnonzero(judged.observations.event_places == place))
            observations, along = observe_memories(of_event, moving, before)
            if self.fixed_gain is not None:
                observations = _set_proportional_noise(
                    observations, self.fixed_gain, before.perplexities, event.probabilities
                )
            moved, audit = move_memories(before, observations, along)
            for memory in moved:
                held[memory.sentence_id, memory.channel] = memory
                moved_keys.add((memory.sentence_id, memory.channel))
            audits.append(audit)
        return (
            MemoryRows.from_rows([row for key, row in held.items() if key in moved_keys]),
            AuditRows.concatenate(audits),
        )


def _set_proportional_noise(
    observations: Observations, gain: float, perplexities: Floats, probabilities: Mapping[int, float]
) -> Observations:
    """Set the noise R to so many times the perplexity of the state that the gain π / (π + R) is fixed.

    Args:
        perplexities: of all states, (m,).
        probabilities: see ``LabelledEvent``.
    """
    divisors = [probabilities.get(sentence, 1.0) for sentence in observations.sentence_ids.tolist()]
    ratio = (1.0 - gain) / gain
    noise = ratio * perplexities[observations.states] / np.array(divisors, dtype=np.float64)
    return replace(observations, noise=noise)


WITHOUT_GATE = AcceptanceRule(folds=1, least_needs=1, z=0.0, least_overlap=0.0, without_each_judge=False)
"""Has every tuned question encoder serve. It holds out nothing, so it learns once."""


class WithoutValidation(ExpansionValidation):
    """Credits all expansions, validated or not."""

    def __init__(self) -> None:
        super().__init__(0, 1.0)

    def gate(self, verdict: LoggedVerdict, *, is_retrieved: bool) -> Gate:
        """Count every expansion as validated by retrieval."""
        return "retrieval"
