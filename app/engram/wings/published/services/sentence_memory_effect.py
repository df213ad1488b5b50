"""Effect on sentence memories: those of judged sentences move along the question."""

from collections.abc import Iterable

from engram.core.learning.states import TASK, TIME, AuditRows
from engram.services.effects.question_memory_effect import observe_moves
from engram.services.verdict.learn import BatchEffect, VerdictBatch
from engram.storage.database import Writer
from engram.storage.feedback_log import audit_rows
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.wings.published.core.memory_moves import ChannelDirections, MemoryRule
from engram.wings.published.core.memory_states import MemoryRows
from engram.wings.published.services.learning_setting import is_taught
from engram.wings.published.storage import evolved_keys, sentence_memories


class SentenceMemoryEffect(BatchEffect):
    """Moves the memories of judged sentences, by task and by time.

    Args:
        rule: computes how they move.
    """

    follows_log = True
    _memories: MemoryRows | None = None
    _audit: AuditRows | None = None

    def __init__(self, rule: MemoryRule) -> None:
        self._rule = rule

    def lock(self, writer: Writer, batch: VerdictBatch) -> None:
        """Lock the memories of the judged sentences, which the question memory holds already."""
        if is_taught(batch.collection):
            self._memories = sentence_memories.lock(
                writer,
                batch.collection.id,
                _list_judged(batch.events),
                _list_judged(event for event in batch.events if event.time_embedding is not None),
            )

    def change(self, writer: Writer, batch: VerdictBatch) -> None:
        """Move the locked memories by the rule, and write them with their audit rows."""
        if self._memories is None:
            return
        directions = [_find_directions(event) for event in batch.events]
        moved, self._audit = self._rule(batch.observed, directions, self._memories)
        sentence_memories.store(writer, batch.collection.id, moved)
        audit_rows.record(writer, batch.collection.id, self._audit)

    def record(self, writer: Writer, batch: VerdictBatch) -> None:
        """Note, where the collection does not learn, that there is something to catch up with."""
        if self._memories is None:
            evolved_keys.note_behind(writer, batch.collection.id)

    def finish(self, batch: VerdictBatch) -> None:
        """Count the moves in the metrics."""
        if self._audit is not None:
            observe_moves(self._audit)


def _list_judged(events: Iterable[PendingEvent]) -> list[int]:
    return sorted({sentence for event in events for sentence in event.targets})


def _find_directions(event: PendingEvent) -> ChannelDirections:
    """Find what the event moves memories along; only a question about a time moves time memories."""
    timed = {} if event.time_embedding is None else {TIME: event.time_embedding}
    return {TASK: event.embedding} | timed
