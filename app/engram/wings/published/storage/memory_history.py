"""The log as a replay of memories reads it: what they begin as, and what applied events said of them."""

from collections.abc import Sequence

from engram.core.learning.states import TASK, TIME, Vector
from engram.storage.database import Reader
from engram.storage.feedback_log.audit_rows import AUDIT_COLUMNS, audit_of
from engram.storage.feedback_log.replay_history import EVENT_COLUMNS, EVENT_OF_AUDIT, PAGE, read_event
from engram.storage.half_vectors import unhalve
from engram.storage.row_lookups import WANTED_IDS, join_by_index
from engram.wings.published.core.memory_replay import MemoryStep

_FIRST_TIME_EXPRESSION = "coalesce(memory.time_expression_id, s.time_expression_id)"


def load_bases(reader: Reader, collection_id: int, sentences: Sequence[int]) -> dict[tuple[int, str], Vector]:
    """Load (sentence, channel) -> what its memory begins as, (d,); a time memory as its first expression."""
    of_time = "memory.sentence_id = s.id AND memory.channel = 'time'"
    rows = reader.rows(
        f"""
        SELECT s.id, {unhalve("s.embedding")} AS embedding, {unhalve("began.embedding")} AS time_embedding
        FROM {WANTED_IDS}
        {join_by_index("sentence s", "s.id = wanted.id")}
        {join_by_index("sentence_memory memory", of_time, outer=True)}
        {join_by_index("time_expression began", f"began.id = {_FIRST_TIME_EXPRESSION}", outer=True)}
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    vectors = {(row.id, TASK): row.embedding.to_numpy() for row in rows}
    return vectors | {
        (row.id, TIME): row.time_embedding.to_numpy() for row in rows if row.time_embedding is not None
    }


def load_steps(
    reader: Reader, collection_id: int, sentences: Sequence[int], after: tuple[int, int, str]
) -> list[MemoryStep]:
    """Load the next steps of these sentences' memories, by sentence, sequence and channel, those after ``after``.

    Steps of channel "recall" move no memory: they say what judges said of the sentence.
    """
    rows = reader.rows(
        f"""
        SELECT {AUDIT_COLUMNS}, {EVENT_COLUMNS},
               CASE audit.channel WHEN 'task' THEN judged.embedding
                                  WHEN 'time' THEN judged.time_embedding END AS direction
        FROM {WANTED_IDS}
        {join_by_index("memory_audit audit", "audit.sentence_id = wanted.id")}
        {join_by_index("feedback_event event", EVENT_OF_AUDIT)}
        {join_by_index("judged_query judged", "judged.id = event.query_id")}
        {join_by_index("sentence s", "s.id = audit.sentence_id")}
        WHERE (audit.sentence_id, event.applied_sequence, audit.channel) > (%(sentence)s, %(sequence)s, %(channel)s)
        ORDER BY audit.sentence_id, event.applied_sequence, audit.channel LIMIT %(limit)s
        """,
        {
            "collection": collection_id,
            "ids": list(sentences),
            "sentence": after[0],
            "sequence": after[1],
            "channel": after[2],
            "limit": PAGE,
        },
    )
    return [
        MemoryStep(
            row.applied_sequence,
            read_event(row),
            audit_of(row),
            None if row.direction is None else row.direction.to_numpy(),
        )
        for row in rows
    ]
