"""Rows that no foreign key keeps from losing what they belong to, looked for one table at a time."""

import re
from collections.abc import Mapping
from pathlib import Path

from engram.composition.container import Application
from engram.storage.tables.table_base import metadata
from tests.support import state

OUTLIVING = {
    ("memory_audit", "sentence_id"): "the log is history, and outlives its sentences",
    ("verdict_sentence", "sentence_id"): "the log is history, and outlives its sentences",
    ("verdict_passage", "passage_id"): "the log is history, and outlives its passages",
    ("key_credit", "passage_id"): "the log is history, and outlives its passages",
    ("passage", "external_id"): "it names nothing of ours",
    ("audit_log", "request_id"): "it names nothing of ours",
    ("episode", "trace_id"): "it names nothing of ours",
    ("pulled_score", "score_id"): "it names nothing of ours",
    ("fact", "named_subject_id"): "a statement's own entity may be gone after a merge",
    ("fact", "named_object_id"): "a statement's own entity may be gone after a merge",
    ("fact_event", "fact_id"): "the log of facts is history, and outlives them",
    ("fact_event", "other_id"): "the log of facts is history, and outlives them",
    ("fact_event", "entity_id"): "the log of facts is history, and outlives their entities",
    ("fact_event", "origin_id"): "what it repeats of another graph may be gone there",
    ("fact_statement", "origin_id"): "what it repeats of another graph may be gone there",
    ("removed_passage", "passage_id"): "a removed passage is named by the id that it has again if it returns",
    ("tuning_generation", "lender_id"): "a worker withdraws what a deleted collection lent",
    ("session", "job_id"): "jobs are retired sooner than the sessions they did",
    ("session_evidence", "sentence_id"): "an answer that was given: what is gone of it is not shown",
    ("session_evidence", "passage_id"): "an answer that was given: what is gone of it is not shown",
    ("session_passage", "passage_id"): "what a session has read; its passages may go",
}
"""Columns without a foreign key whose rows may outlive what they name."""

KEPT_BY: Mapping[tuple[str, str], str] = {
    ("entity_sentence", "passage_id"): "entity_sentence of another passage than its sentence is of",
    ("lexical_posting", "collection_id"): "lexical_posting without its term or passage",
    ("lexical_posting", "term_id"): "lexical_posting without its term or passage",
    ("lexical_posting", "passage_id"): "lexical_posting without its term or passage",
    ("lexical_passage", "term_ids"): "lexical_passage without a term",
    ("feedback_event", "question_id"): "feedback_event without its question",
    ("episode", "collection_id"): "episode of a collection that is gone",
    ("fact", "graph_id"): "fact of a graph or an entity that is not there",
    ("fact", "subject_id"): "fact of a graph or an entity that is not there",
    ("fact", "object_id"): "fact of a graph or an entity that is not there",
    ("fact_entity", "graph_id"): "entity or predicate of a graph that is not there",
    ("fact_event", "graph_id"): "entity or predicate of a graph that is not there",
    ("fact_predicate", "graph_id"): "entity or predicate of a graph that is not there",
    ("fact_source", "passage_id"): "fact_source of a passage that is not there",
    ("passage", "reader_set_id"): "passage of readers that are not there",
    ("sentence", "reader_set_id"): "row of other readers than its passage",
    ("entity_sentence", "reader_set_id"): "row of other readers than its passage",
    ("lexical_posting", "reader_set_id"): "row of other readers than its passage",
}
"""Column without a foreign key -> the search that covers it."""

_SQL = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
SEARCHES: Mapping[str, str] = dict(re.findall(r"^-- (.+)\n((?:(?!-- ).*\n?)+)", _SQL, re.MULTILINE))


def orphans(application: Application, collection: str) -> dict[str, int]:
    """What was found, by how many rows; nothing in a collection that is whole."""
    target = {"c": state.collection_id(application, collection)}
    with application.database.read() as reader:
        found = {name: reader.scalar(statement, target) for name, statement in SEARCHES.items()}
    return {name: rows for name, rows in found.items() if rows}


def list_unguarded() -> set[tuple[str, str]]:
    """Columns by their names of ids that no foreign key guards."""
    return {
        (table.name, column.name)
        for table in metadata.sorted_tables
        for column in table.columns
        if column.name.endswith(("_id", "_ids"))
        and not any(column.name in key.column_keys for key in table.foreign_key_constraints)
    }
