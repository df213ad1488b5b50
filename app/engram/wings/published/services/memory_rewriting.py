"""Sentence memories as the log says they are."""

from collections.abc import Iterator, Sequence

from engram.core.learning.state_replay import ReplayedState
from engram.services.feedback_log import log_replay
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log import audit_rows
from engram.wings.published.core import memory_replay
from engram.wings.published.core.memory_replay import MemoryStep
from engram.wings.published.core.memory_states import MemoryRows, SentenceMemory
from engram.wings.published.storage import memory_history, memory_log, sentence_memories

CHUNK = 200
"""Sentences whose memories are computed and written together: bounds memory."""


def replay(reader: Reader, collection_id: int, sentences: Sequence[int]) -> Iterator[ReplayedState[SentenceMemory]]:
    """Replay the memories of these sentences that an event touched, by sentence and channel.

    Of sentences that are gone, and of time memories whose expression is, there is nothing to replay.
    """
    steps = read_steps(reader, collection_id, sentences)
    yield from memory_replay.replay_memories(memory_history.load_bases(reader, collection_id, sentences), steps)


def read_steps(reader: Reader, collection_id: int, sentences: Sequence[int]) -> Iterator[MemoryStep]:
    """Read all steps of these sentences' memories, as ``memory_replay.replay_memories`` takes them."""
    return log_replay.read_all(
        lambda after: memory_history.load_steps(reader, collection_id, sentences, after),
        lambda step: (step.recorded.sentence_id, step.sequence, step.recorded.channel),
        (0, 0, ""),
    )


def rewrite_memories(writer: Writer, collection_id: int, sentences: Sequence[int]) -> None:
    """Make the memories of these sentences, in id order, what the events that count make them.

    All channels: what a judge said counts against others in each.
    """
    for at in range(0, len(sentences), CHUNK):
        chunk = sentences[at : at + CHUNK]
        replayed_memories = list(replay(writer, collection_id, chunk))
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
    rewrite_memories(writer, collection_id, judged)
