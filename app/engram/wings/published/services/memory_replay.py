"""Sentence memories as the log says they are."""

from collections.abc import Sequence

from engram.core.filter.state_rows import MemoryRows
from engram.services.feedback_log import log_replay
from engram.storage.database import Writer
from engram.storage.feedback_log import audit_rows
from engram.wings.published.storage import memory_log, sentence_memories

CHUNK = 200
"""Sentences whose memories are computed and written together: bounds memory."""


def replay_memories(writer: Writer, collection_id: int, sentences: Sequence[int]) -> None:
    """Make the memories of these sentences, in id order, what the events that count make them.

    All channels: what a judge said counts against others in each.
    """
    for at in range(0, len(sentences), CHUNK):
        chunk = sentences[at : at + CHUNK]
        replayed_memories = list(log_replay.memories(writer, collection_id, chunk))
        audit_rows.rewrite(
            writer, collection_id, [row for replayed in replayed_memories for row in replayed.corrected]
        )
        sentence_memories.store(
            writer, collection_id, MemoryRows.from_rows([replayed.state for replayed in replayed_memories])
        )
        states = {(replayed.state.sentence_id, replayed.state.channel) for replayed in replayed_memories}
        sentence_memories.delete_all_but(writer, collection_id, chunk, sorted(states))


def teach_events(writer: Writer, collection_id: int, events: Sequence[int]) -> None:
    """Have applied events move the memories of what they judge, as if they always had.

    While it lasts, no event of the collection is applied or revoked.
    """
    judged = memory_log.list_judged(writer, collection_id, events)
    dated = memory_log.find_dated(writer, collection_id, judged)
    memory_log.add_audit(writer, collection_id, events, dated)
    sentence_memories.begin(writer, collection_id, judged, dated)
    replay_memories(writer, collection_id, judged)
