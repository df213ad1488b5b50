"""Sentence memories in revocations, verifications, and changes of texts and vectors."""

from collections.abc import Iterator, Mapping, Sequence

from engram.core.learning.states import CHANNELS, TASK
from engram.services.revocation.derived_state import DerivedState, Report
from engram.services.revocation.verification_findings import Findings, values
from engram.storage.corpus import collections
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log import audit_rows, stored_outcomes
from engram.storage.revocation.copied_rows import Copy
from engram.wings.published.core.memory_states import MemoryRows, SentenceMemory
from engram.wings.published.services import memory_rewriting
from engram.wings.published.services.learning_setting import is_taught
from engram.wings.published.services.memory_rewriting import CHUNK, rewrite_memories
from engram.wings.published.storage import copied_memories, memory_log, sentence_memories

EVENTS = 50
"""Events whose audit rows, up to some thousands each, are read at a time."""


class DerivedMemories(DerivedState):
    """Memories of sentences, as the verdicts that count moved them."""

    verified_tables = ("sentence_memory",)
    counted_tables = ("sentence_memory",)

    def copy(self, writer: Writer, copy: Copy, restored: Sequence[int], report: Report) -> bool:
        """Replay the memories of all judged sentences."""
        if restored and is_taught(collections.load_by_id(writer, copy.source)):
            judged = memory_log.list_judged(writer, copy.target, restored)
            memory_log.add_audit(writer, copy.target, restored, memory_log.find_dated(writer, copy.source, judged))
        total, replayed_count = copied_memories.count_moved(writer, copy), 0
        report("memories", 0, total)
        for sentences in _read_judged(writer, copy.target):
            copied_memories.begin(writer, copy, sentences)
            replays = list(memory_rewriting.replay(writer, copy.target, sentences))
            audit_rows.rewrite(writer, copy.target, [row for replay in replays for row in replay.corrected])
            sentence_memories.store(writer, copy.target, MemoryRows.from_rows([replay.state for replay in replays]))
            replayed_count += len(sentences)
            report("memories", replayed_count, total)
        return True

    def withdraw(self, writer: Writer, collection_id: int, events: Sequence[int]) -> None:
        """Take the events out of the memories that they moved."""
        rewrite_memories(writer, collection_id, audit_rows.withdraw(writer, collection_id, events, CHANNELS))

    def replay_sentences(self, writer: Writer, collection_id: int, sentences: Sequence[int]) -> None:
        """Have memories begin as the texts and times that are there now, and replay them."""
        sentence_memories.follow_times(writer, collection_id, sentences)
        sentence_memories.begin(writer, collection_id, sentences, sentences)
        rewrite_memories(writer, collection_id, sentences)

    def follow_encoder(self, writer: Writer, collection_id: int) -> None:
        """Replay all memories from the new vectors."""
        for sentences in _read_judged(writer, collection_id):
            rewrite_memories(writer, collection_id, sentences)

    def clear(self, writer: Writer, collection_id: int) -> Mapping[str, int]:
        """Remove all memories."""
        return {"sentence_memory": sentence_memories.delete_all(writer, collection_id)}

    def verify(self, reader: Reader, collection_id: int, findings: Findings) -> None:
        """Compare the audit with what verdicts name, and memories with a replay."""
        _check_events(reader, collection_id, findings)
        for chunk in _read_judged(reader, collection_id):
            stored = {
                (memory.sentence_id, memory.channel): memory
                for memory in sentence_memories.load_memories(reader, collection_id, chunk)
            }
            for memory in stored.values():
                findings.add("sentence_memory", *values(memory))
            replayed: dict[tuple[int, str], SentenceMemory] = {}
            for done in memory_rewriting.replay(reader, collection_id, chunk):
                replayed[done.state.sentence_id, done.state.channel] = done.state
                findings.report_corrections(done.corrected)
            findings.compare("sentence_memory", stored, replayed, "sentence {}, {}")


def _check_events(reader: Reader, collection_id: int, findings: Findings) -> None:
    """Check that events which moved memories moved those of all sentences that they judge."""
    after = 0
    while page := stored_outcomes.events(reader, collection_id, after, EVENTS):
        after = page[-1].id
        judged = sorted({sentence for event in page for sentence in event.targets})
        alive = stored_outcomes.find_existing(reader, collection_id, judged)
        returned = stored_outcomes.find_returned(reader, collection_id, judged)
        for event in page:
            if all(row.channel != TASK for row in event.audit):
                continue
            for sentence in event.list_unaudited(TASK, alive, returned):
                findings.differs("memory_audit", f"event {event.id}, sentence {sentence}, {TASK}", "is missing")


def _read_judged(reader: Reader, collection_id: int) -> Iterator[list[int]]:
    """Yield the sentences that there are memories or audit rows of, in id order."""
    after = 0
    while page := sentence_memories.list_judged_sentences(reader, collection_id, after, CHUNK):
        yield page
        after = page[-1]
