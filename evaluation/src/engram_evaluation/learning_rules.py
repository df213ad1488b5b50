"""Learning with a part left out or changed, to measure the difference that the part makes."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engram.core.filter.kalman import Floats
from engram.core.filter.logged_verdict import LoggedVerdict
from engram.core.filter.observations import Observations
from engram.core.filter.state_rows import MemoryRows, SupportRows
from engram.core.filter.states import RECALL, AuditRows, Support
from engram.core.filter.steps import (
    BatchObservations,
    LabelledEvent,
    MovedStates,
    apply_observations,
    build_observations,
)
from engram.wings.published.services.expansion_validation import ExpansionValidation, Gate
from engram.wings.tuning.core.acceptance import AcceptanceRule


@dataclass(frozen=True, slots=True)
class PartialRule:
    """Rule of learning that leaves channels alone, or has another gain.

    Attributes:
        frozen: channels that events leave alone, ``RECALL`` among them.
        fixed_gain: share by which every event moves a state, whatever its perplexity, in (0, 1); None: Kalman gain.
    """

    frozen: Collection[str]
    fixed_gain: float | None

    def __call__(
        self, statements: Sequence[LabelledEvent], memories: MemoryRows, supports: SupportRows
    ) -> MovedStates:
        """Apply events one after the other: see ``steps.apply_statements``."""
        held_memories = {(row.sentence_id, row.channel): row for row in memories}
        held_supports = {(row.question_id, row.sentence_id): row for row in supports}
        moved_memories, moved_supports = set[tuple[int, str]](), set[tuple[int, int]]()
        audits: list[AuditRows] = []
        contested: set[int] = set()
        for statement in statements:
            before = MemoryRows.from_rows([*held_memories.values()])
            effect = apply_observations(
                self._build_observations(statement, before, [*held_supports.values()]), before
            )
            for memory in effect.memories:
                held_memories[memory.sentence_id, memory.channel] = memory
                moved_memories.add((memory.sentence_id, memory.channel))
            for support in effect.supports:
                held_supports[support.question_id, support.sentence_id] = support
                moved_supports.add((support.question_id, support.sentence_id))
            audits.append(effect.audit)
            contested |= effect.contested
        return MovedStates(
            MemoryRows.from_rows([row for key, row in held_memories.items() if key in moved_memories]),
            SupportRows.from_rows([held_supports[key] for key in sorted(moved_supports)]),
            AuditRows.concatenate(audits),
            frozenset(contested),
        )

    def _build_observations(
        self, statement: LabelledEvent, memories: MemoryRows, supports: Sequence[Support]
    ) -> BatchObservations:
        """Observations of one event, as this rule has them."""
        directions = {
            channel: vector for channel, vector in statement.directions.items() if channel not in self.frozen
        }
        partial_statement = replace(statement, directions=directions)
        observed = build_observations([partial_statement], memories, SupportRows.from_rows(supports))
        if self.fixed_gain is not None:
            ratio, probabilities = (1.0 - self.fixed_gain) / self.fixed_gain, statement.probabilities
            memory_observations = _set_proportional_noise(
                observed.memory_observations, ratio, memories.perplexities, probabilities
            )
            support_observations = _set_proportional_noise(
                observed.support_observations, ratio, observed.supports.perplexities, probabilities
            )
            observed = replace(
                observed, memory_observations=memory_observations, support_observations=support_observations
            )
        if RECALL in self.frozen:
            observed = replace(
                observed, support_observations=observed.support_observations.select(np.zeros(0, dtype=np.int64))
            )
        return observed


def _set_proportional_noise(
    observations: Observations, ratio: float, perplexities: Floats, probabilities: Mapping[int, float]
) -> Observations:
    """Set the noise R to so many times the perplexity of the state, so that the gain π / (π + R) is fixed.

    Args:
        perplexities: of all states, (m,).
        probabilities: see ``LabelledEvent``.
    """
    divisors = [probabilities.get(sentence, 1.0) for sentence in observations.sentence_ids.tolist()]
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
