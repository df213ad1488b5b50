"""Both rules by which a verdict moves states, one after the other as a worker applies them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from engram.core.learning.state_rows import SupportRows
from engram.core.learning.states import CHANNELS, TASK, AuditRows, Vector
from engram.core.learning.steps import LabelledEvent, LearningRule, apply_events
from engram.wings.published.core.memory_moves import MemoryRule, move_along_questions
from engram.wings.published.core.memory_states import MemoryRows


@dataclass(frozen=True)
class MovedStates:
    """States that events moved, a row for each state and event, and the events that contradict other judges."""

    memories: MemoryRows
    supports: SupportRows
    audit: AuditRows
    contested: frozenset[int]


def apply_rules(
    events: Sequence[tuple[LabelledEvent, Mapping[str, Vector]]],
    memories: MemoryRows,
    supports: SupportRows,
    *,
    rule: LearningRule = apply_events,
    memory_rule: MemoryRule = move_along_questions,
) -> MovedStates:
    """Apply events, each with its directions, to supports and memories; those without a task memory are gone."""
    existing = set(memories.sentence_ids[memories.channels == CHANNELS.index(TASK)].tolist())
    moved = rule([event for event, _ in events], existing, supports)
    moved_memories, audit = memory_rule(moved.observed, [directions for _, directions in events], memories)
    return MovedStates(
        moved_memories, moved.supports, AuditRows.concatenate([audit, moved.audit]), moved.observed.contested
    )
