"""Facts: what passages and callers say of entities, how surely it is believed, and the log of what was said.

Entities of facts are rows of their own: a graph of facts may be empty at first, whatever the collection names, and
an entity that joined another one can be taken apart again.
"""

from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
)

from engram.storage.tables.table_base import (
    build_collection_column,
    build_id_column,
    build_inherited_collection_column,
    build_parent_key,
    build_partial_index,
    build_principal_column,
    build_timestamp_column,
    metadata,
    require,
)

statement_sequence = Sequence("fact_said", metadata=metadata)


def _build_graph_column() -> Column[int]:
    return require("graph_id", BigInteger, default="0", comment="The graph of facts; 0: the collection's own.")


def _build_sequence_column() -> Column[int]:
    return require("sequence", BigInteger, comment="Its place among all statements; replay follows this order.")


def _build_noise_columns() -> list[Column[float]]:
    """Build the constants of the filter that a statement counts with, as they were when it came."""
    return [
        require("observation_noise_positive", Double, comment="R of the filter if it supports the fact."),
        require("observation_noise_negative", Double, comment="R of the filter if it goes against the fact."),
        require("process_noise", Double, comment="Q of the filter."),
    ]


fact_graph = Table(
    "fact_graph",
    metadata,
    build_collection_column(),
    build_id_column(),
    require("name", Text),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "name"),
    comment="Separate graphs of facts, beside the collection's own.",
)

fact_entity = Table(
    "fact_entity",
    metadata,
    build_collection_column(),
    build_id_column(),
    _build_graph_column(),
    require("name", Text, comment="The normalised name; equal names are one entity."),
    require("bare", Text, comment="The name without its addition in brackets."),
    require("tail", Text, comment="The last word of the name, by which others may mean the entity."),
    require("surface", Text),
    Column("stands_for", BigInteger, comment="The entity that it was merged into."),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "graph_id", "name"),
    Index(None, "collection_id", "graph_id", "bare"),
    Index(None, "collection_id", "graph_id", "tail"),
    build_partial_index(
        "fact_entity_stands_for_idx", "collection_id", "stands_for", where="stands_for IS NOT NULL"
    ),
)

fact = Table(
    "fact",
    metadata,
    build_collection_column(),
    build_id_column(),
    _build_graph_column(),
    require("subject_id", BigInteger, comment="The subject, after merges."),
    require("predicate", Text),
    require("object_id", BigInteger, comment="The object, after merges; 0: the object is no entity."),
    require("named_subject_id", BigInteger, comment="The subject as the statement names it."),
    require("named_object_id", BigInteger, comment="The object as the statement names it."),
    require("object_text", Text, comment="The object's text in the first statement."),
    require("object_key", Text, comment="The same for equal objects that are no entities."),
    require("object_kind", Text),
    require("valid_from", Integer, default="0", comment="First day of the fact; day 1 is 0001-01-01, 0: open."),
    require(
        "valid_to",
        Integer,
        default="3652060",
        comment="First day on which the fact no longer holds; 3652060: open.",
    ),
    require("belief", Double, default="0.5"),
    require("perplexity", Double, default="1"),
    require("observations", Integer, default="0"),
    require(
        "held_until",
        Integer,
        default="3652060",
        comment="valid_to, or the earlier day on which another statement ended the fact.",
    ),
    Column("closed_at", TIMESTAMP(timezone=True)),
    Column("closed_reason", Text),
    Column("superseded_by", BigInteger),
    build_timestamp_column("learned_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint(
        "collection_id",
        "named_subject_id",
        "predicate",
        "named_object_id",
        "object_key",
        "valid_from",
        "valid_to",
        name="fact_named_key",
    ),
    Index(None, "collection_id", "subject_id", "predicate"),
    Index(None, "collection_id", "object_id", "subject_id"),
    Index(None, "collection_id", "named_object_id"),
    Index(None, "collection_id", "graph_id", "predicate"),
    CheckConstraint("belief BETWEEN 0 AND 1", name="belief"),
    CheckConstraint("perplexity BETWEEN 0 AND 1", name="perplexity"),
    CheckConstraint("valid_from < valid_to", name="interval"),
    CheckConstraint("object_kind IN ('entity', 'date', 'number', 'text')", name="object_kind"),
    CheckConstraint("(object_id = 0) = (object_kind <> 'entity')", name="object"),
    postgresql_with={"fillfactor": "80"},
    comment="Facts. No foreign keys to entities, which are removed with the last fact that names them.",
)

fact_event = Table(
    "fact_event",
    metadata,
    build_collection_column(),
    build_id_column(),
    _build_graph_column(),
    require("kind", Text),
    require("judge", Text),
    build_principal_column(),
    require("idempotency_key", Text),
    require("body_hash", LargeBinary),
    Column("fact_id", BigInteger, comment="The fact that the event is about; it may be gone."),
    Column(
        "other_id",
        BigInteger,
        comment="The fact that follows, the entity that joins, or the graph that is adopted.",
    ),
    Column("entity_id", BigInteger, comment="For a merge: the entity that stays."),
    Column("valid_until", Integer, comment="First day on which the fact no longer holds."),
    Column("reason", Text),
    Column("part_of", BigInteger, comment="The adoption that brought the event from another graph."),
    Column("origin_id", BigInteger, comment="The event of the other graph that this one repeats."),
    Column("covers", ARRAY(BigInteger), comment="For a revocation: the events that it revoked."),
    require("status", Text, default="'applied'"),
    _build_sequence_column(),
    *_build_noise_columns(),
    require("daily_share", Double),
    require("contested_share", Double),
    require("standing", Double, default="1", comment="The judge's standing, in (0, 1]."),
    build_timestamp_column("received_at"),
    Column("revoked_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "principal", "idempotency_key"),
    Index(None, "collection_id", "fact_id"),
    Index(None, "collection_id", "entity_id"),
    Index(None, "collection_id", "judge", "received_at"),
    build_partial_index("fact_event_part_of_idx", "collection_id", "part_of", where="part_of IS NOT NULL"),
    build_partial_index("fact_event_origin_idx", "collection_id", "origin_id", where="origin_id IS NOT NULL"),
    CheckConstraint(
        "kind IN ('assert', 'confirm', 'contradict', 'supersede', 'close', 'merge', 'adopt', 'revoke', 'change')",
        name="kind",
    ),
    CheckConstraint("status IN ('applied', 'revoked')", name="status"),
    comment="The log of events on facts: every belief is a function of it and of the sources.",
)

fact_statement = Table(
    "fact_statement",
    metadata,
    build_inherited_collection_column(),
    build_id_column(),
    require("event_id", BigInteger),
    require("source", Text, comment="The person or thing that states it."),
    require("text", Text),
    Column("origin_id", BigInteger, comment="The sentence of another graph that this one repeats."),
    PrimaryKeyConstraint("collection_id", "id"),
    build_parent_key("fact_event", "event_id"),
    Index(None, "collection_id", "event_id"),
    build_partial_index("fact_statement_origin_idx", "collection_id", "origin_id", where="origin_id IS NOT NULL"),
    comment="Sentences that callers gave as sources of facts.",
)

fact_source = Table(
    "fact_source",
    metadata,
    build_inherited_collection_column(),
    build_id_column(),
    require("fact_id", BigInteger),
    Column("passage_id", BigInteger, comment="The passage that the statement came from."),
    require("statement_id", BigInteger),
    Column("withdrawn_by", BigInteger, comment="The event that withdrew the source; null: it still counts."),
    require("confidence", Double),
    _build_sequence_column(),
    *_build_noise_columns(),
    build_timestamp_column("learned_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    build_parent_key("fact", "fact_id"),
    build_parent_key("fact_statement", "statement_id"),
    Index("fact_source_fact_idx", "collection_id", "fact_id", "statement_id", unique=True),
    Index(None, "collection_id", "statement_id"),
    build_partial_index("fact_source_passage_idx", "collection_id", "passage_id", where="passage_id IS NOT NULL"),
    build_partial_index(
        "fact_source_withdrawn_idx", "collection_id", "withdrawn_by", where="withdrawn_by IS NOT NULL"
    ),
    CheckConstraint("confidence > 0 AND confidence <= 1", name="confidence"),
    comment="The statements of a fact; a fact without a source is removed.",
)

fact_audit = Table(
    "fact_audit",
    metadata,
    build_inherited_collection_column(),
    require("fact_id", BigInteger),
    require("sequence", BigInteger, comment="Sequence of the source or event that changed the belief."),
    require("target", SmallInteger, comment="y of GAM-RAG, Eq. 10."),
    require("observation_noise", Double),
    require("gain", Double),
    require("residual", Double),
    require("perplexity_before", Double),
    require("perplexity_after", Double),
    require("belief", Double, comment="The belief after the change."),
    require("at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("collection_id", "fact_id", "sequence"),
    build_parent_key("fact", "fact_id"),
    comment="One row for each statement that changed the belief in a fact.",
)

fact_predicate = Table(
    "fact_predicate",
    metadata,
    build_collection_column(),
    _build_graph_column(),
    require("predicate", Text),
    Column("declared", Boolean, comment="Whether somebody declared the predicate functional or not; null: nobody."),
    require("functional", Boolean, default="false", comment="Whether facts of one subject compete."),
    require("subjects", BigInteger, default="0", comment="Number of subjects at the last count."),
    require("single", BigInteger, default="0", comment="Number of these subjects with one object."),
    build_timestamp_column("counted_at"),
    PrimaryKeyConstraint("collection_id", "graph_id", "predicate"),
)

TABLES = (fact_graph, fact_entity, fact, fact_event, fact_statement, fact_source, fact_audit, fact_predicate)
