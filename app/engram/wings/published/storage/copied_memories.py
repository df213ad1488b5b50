"""Sentence memories of a copy of a past moment, as they began."""

from collections.abc import Sequence

from engram.storage.database import Reader, Writer
from engram.storage.half_vectors import unhalve
from engram.storage.revocation.copied_rows import Copy, build_copy_statement, build_source_join
from engram.storage.row_lookups import alias_rows, id_rows, join_by_index

_PASSAGE = build_source_join("passage", "passage.id = s.passage_id AND passage.created_at <= %(until)s")
_TIME_MEMORY = build_source_join(
    "sentence_memory memory", "memory.sentence_id = s.id AND memory.channel = 'time'", outer=True
)


def count_moved(reader: Reader, copy: Copy) -> int:
    """Count the sentences that the copy's verdicts speak of."""
    sentence_count: int = reader.scalar(
        "SELECT count(DISTINCT sentence_id) FROM memory_audit WHERE collection_id = %(target)s", copy.parameters()
    )
    return sentence_count


def begin(writer: Writer, copy: Copy, sentences: Sequence[int]) -> None:
    """Give these sentences the memories that verdicts touched, each as it began."""
    touched = writer.rows(
        f"""
        SELECT DISTINCT audit.sentence_id, audit.channel FROM {id_rows("ids", collection="%(target)s")}
        {join_by_index("memory_audit audit", "audit.sentence_id = wanted.id", collection="%(target)s")}
        WHERE audit.channel IN ('task', 'time')
        """,
        copy.parameters(ids=list(sentences)),
    )
    parameters = copy.parameters(
        touched=[row.sentence_id for row in touched], channels=[row.channel for row in touched]
    )
    rows = "unnest(%(touched)s::bigint[], %(channels)s::text[]) AS touched(sentence_id, channel)"
    expression = "began.id = coalesce(memory.time_expression_id, s.time_expression_id) AND new.channel = 'time'"
    began = f"""
        FROM {alias_rows(rows, collection="%(source)s")}
        {build_source_join("sentence s", "s.id = new.sentence_id")} {_PASSAGE} {_TIME_MEMORY}
        {build_source_join("time_expression began", expression, outer=True)}
    """
    writer.execute(
        build_copy_statement(
            "time_expression",
            f"""
            FROM (SELECT DISTINCT began.id {began}) AS begun
            {build_source_join("time_expression held", "held.id = begun.id")} ON CONFLICT DO NOTHING
            """,
        ),
        parameters,
    )
    writer.execute(
        f"""
        INSERT INTO sentence_memory
            (collection_id, sentence_id, channel, vector, perplexity, update_count, time_expression_id)
        SELECT %(target)s, s.id, new.channel, {unhalve("coalesce(began.embedding, s.embedding)")}, 1, 0, began.id
        {began}
        WHERE new.channel = 'task' OR began.id IS NOT NULL
        """,
        parameters,
    )
