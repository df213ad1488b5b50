"""Verdicts of the log that moved sentence memories, and those that did not yet."""

from collections.abc import Sequence

from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, id_rows, join_by_index

_JUDGED = join_by_index("memory_audit judged", "judged.event_id = wanted.id AND judged.channel = 'recall'")
_SENTENCE = join_by_index("sentence s", "s.id = judged.sentence_id")


def list_judged(reader: Reader, collection_id: int, events: Sequence[int]) -> list[int]:
    """List the sentences that exist and that these applied events judge, in id order."""
    rows = reader.rows(
        f"SELECT DISTINCT s.id FROM {WANTED_IDS} {_JUDGED} {_SENTENCE} ORDER BY s.id",
        {"collection": collection_id, "ids": list(events)},
    )
    return [row.id for row in rows]


def find_dated(reader: Reader, collection_id: int, sentences: Sequence[int]) -> list[int]:
    """Find those of the sentences that have a time channel, by an expression now or at first, in id order."""
    memory = "memory.sentence_id = s.id AND memory.channel = 'time'"
    rows = reader.rows(
        f"""
        SELECT s.id FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
        {join_by_index("sentence_memory memory", memory, outer=True)}
        WHERE coalesce(memory.time_expression_id, s.time_expression_id) IS NOT NULL ORDER BY s.id
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    return [row.id for row in rows]


def add_audit(writer: Writer, collection_id: int, events: Sequence[int], dated: Sequence[int]) -> None:
    """Note that applied events move the memories of what they judge; a replay says how far.

    Args:
        dated: sentences that have a time channel; a question about a time moves it.
    """
    writer.execute(
        f"""
        INSERT INTO memory_audit (collection_id, event_id, sentence_id, channel, target, observation_noise,
                                  gain, residual, perplexity_before, perplexity_after, process_noise, revision)
        SELECT judged.collection_id, judged.event_id, judged.sentence_id, moved.channel, judged.target,
               judged.observation_noise, 0, 0, 1, 1, judged.process_noise, judged.revision
        FROM {id_rows("events")} {_JUDGED} {_SENTENCE}
        {join_by_index("feedback_event event", "event.id = judged.event_id")}
        {join_by_index("judged_query query", "query.id = event.query_id")}
        CROSS JOIN (VALUES ('task'), ('time')) AS moved(channel)
        WHERE moved.channel = 'task' OR query.time_embedding IS NOT NULL AND s.id = ANY(%(dated)s::bigint[])
        """,
        {"collection": collection_id, "events": list(events), "dated": list(dated)},
    )


def list_untaught(reader: Reader, collection_id: int, limit: int) -> list[int]:
    """List applied events that judge a sentence that exists and moved no memory, in id order."""
    rows = reader.rows(
        f"""
        SELECT event.id FROM feedback_event event
        WHERE event.collection_id = %(collection)s AND event.status = 'applied'
          AND EXISTS (
            SELECT FROM memory_audit judged {_SENTENCE}
            WHERE judged.collection_id = %(collection)s AND judged.event_id = event.id AND judged.channel = 'recall'
          )
          AND NOT EXISTS (
            SELECT FROM memory_audit moved
            WHERE moved.collection_id = %(collection)s AND moved.event_id = event.id AND moved.channel = 'task'
          )
        ORDER BY event.id LIMIT %(limit)s
        """,
        {"collection": collection_id, "limit": limit},
    )
    return [row.id for row in rows]


def forget(writer: Writer) -> None:
    """Remove what the log of all collections says of sentence memories."""
    writer.execute("DELETE FROM memory_audit WHERE channel IN ('task', 'time')")
