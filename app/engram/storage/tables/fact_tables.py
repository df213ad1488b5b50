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
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    text,
)

from engram.storage.tables.table_base import build_timestamp_column, metadata, parent_key, tenant


def _build_collection_column() -> Column[int]:
    return Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False)


def _graph() -> Column[int]:
    return Column(
        "graph_id", BigInteger, nullable=False, server_default=text("0"), comment="0: the collection's own."
    )


def _sequence() -> Column[int]:
    return Column(
        "sequence",
        BigInteger,
        nullable=False,
        comment="Order in which things were said; replay follows it.",
    )


fact_graph = Table(
    "fact_graph",
    metadata,
    _build_collection_column(),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("name", Text, nullable=False),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "name"),
    comment="Graphs of facts of their own, beside the collection's.",
)

fact_entity = Table(
    "fact_entity",
    metadata,
    _build_collection_column(),
    Column("id", BigInteger, Identity(), nullable=False),
    _graph(),
    Column("name", Text, nullable=False, comment="Normalised: equal names meet here."),
    Column("bare", Text, nullable=False, comment="The name without what is added in brackets."),
    Column("tail", Text, nullable=False, comment="The last word of the name, by which others may be meant."),
    Column("surface", Text, nullable=False),
    Column("stands_for", BigInteger, comment="The entity that it was merged into."),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "graph_id", "name"),
    Index(None, "collection_id", "graph_id", "bare"),
    Index(None, "collection_id", "graph_id", "tail"),
    Index(
        "fact_entity_stands_for_idx",
        "collection_id",
        "stands_for",
        postgresql_where=text("stands_for IS NOT NULL"),
    ),
)

fact = Table(
    "fact",
    metadata,
    _build_collection_column(),
    Column("id", BigInteger, Identity(), nullable=False),
    _graph(),
    Column("subject_id", BigInteger, nullable=False, comment="The entity that its subject stands for."),
    Column("predicate", Text, nullable=False),
    Column("object_id", BigInteger, nullable=False, comment="0: the object is no entity."),
    Column("subject_said", BigInteger, nullable=False, comment="The entity by the name that was used."),
    Column("object_said", BigInteger, nullable=False),
    Column("object_text", Text, nullable=False, comment="As it was said first."),
    Column(
        "object_key", Text, nullable=False, comment="Of an object that is no entity: equal if so is what is said."
    ),
    Column("object_kind", Text, nullable=False),
    Column(
        "valid_from", Integer, nullable=False, server_default=text("0"), comment="Day, 1 being 0001-01-01; 0: open."
    ),
    Column(
        "valid_to",
        Integer,
        nullable=False,
        server_default=text("3652060"),
        comment="First day on which it no longer holds; 3652060: open.",
    ),
    Column("belief", Float(53), nullable=False, server_default=text("0.5")),
    Column("perplexity", Float(53), nullable=False, server_default=text("1")),
    Column("observations", Integer, nullable=False, server_default=text("0")),
    Column("held_until", Integer, nullable=False, server_default=text("3652060")),
    Column("closed_at", TIMESTAMP(timezone=True)),
    Column("closed_reason", Text),
    Column("superseded_by", BigInteger),
    build_timestamp_column("learned_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint(
        "collection_id",
        "subject_said",
        "predicate",
        "object_said",
        "object_key",
        "valid_from",
        "valid_to",
        name="fact_said_key",
    ),
    Index(None, "collection_id", "subject_id", "predicate"),
    Index(None, "collection_id", "object_id", "subject_id"),
    Index(None, "collection_id", "object_said"),
    Index(None, "collection_id", "graph_id", "predicate"),
    CheckConstraint("belief BETWEEN 0 AND 1", name="belief"),
    CheckConstraint("perplexity BETWEEN 0 AND 1", name="perplexity"),
    CheckConstraint("valid_from < valid_to", name="interval"),
    CheckConstraint("object_kind IN ('entity', 'date', 'number', 'text')", name="object_kind"),
    CheckConstraint("(object_id = 0) = (object_kind <> 'entity')", name="object"),
    postgresql_with={"fillfactor": "80"},
    comment="No foreign keys to its entities, which are removed with the last fact that names them.",
)

statement_sequence = Sequence("fact_said", metadata=metadata)

fact_event = Table(
    "fact_event",
    metadata,
    _build_collection_column(),
    Column("id", BigInteger, Identity(), nullable=False),
    _graph(),
    Column("kind", Text, nullable=False),
    Column("judge", Text, nullable=False),
    Column("principal", Text, nullable=False, server_default=text("'local'"), comment="Whose request brought it."),
    Column("idempotency_key", Text, nullable=False),
    Column("body_hash", LargeBinary, nullable=False),
    Column("fact_id", BigInteger, comment="That it speaks of; it may be gone."),
    Column(
        "other_id",
        BigInteger,
        comment="The fact that comes after, the entity that joins, or the graph that is adopted.",
    ),
    Column("entity_id", BigInteger, comment="Of a merge: the entity that stays."),
    Column("valid_until", Integer, comment="First day on which the fact no longer holds."),
    Column("reason", Text),
    Column("part_of", BigInteger, comment="The adoption that brought it from another graph."),
    Column("origin_id", BigInteger, comment="What it repeats of that graph."),
    Column("covers", ARRAY(BigInteger), comment="Of a revocation: the events that it took back."),
    Column("status", Text, nullable=False, server_default=text("'applied'")),
    _sequence(),
    Column("observation_noise_positive", Float(53), nullable=False, comment="By which it was applied, as follows."),
    Column("observation_noise_negative", Float(53), nullable=False),
    Column("process_noise", Float(53), nullable=False),
    Column("daily_share", Float(53), nullable=False),
    Column("contested_share", Float(53), nullable=False),
    Column("standing", Float(53), nullable=False, server_default=text("1"), comment="Of the judge, in (0, 1]."),
    build_timestamp_column("received_at"),
    Column("revoked_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "principal", "idempotency_key"),
    Index(None, "collection_id", "fact_id"),
    Index(None, "collection_id", "entity_id"),
    Index(None, "collection_id", "judge", "received_at"),
    Index("fact_event_part_of_idx", "collection_id", "part_of", postgresql_where=text("part_of IS NOT NULL")),
    Index("fact_event_origin_idx", "collection_id", "origin_id", postgresql_where=text("origin_id IS NOT NULL")),
    CheckConstraint(
        "kind IN ('assert', 'confirm', 'contradict', 'supersede', 'close', 'merge', 'adopt', 'revoke', 'change')",
        name="kind",
    ),
    CheckConstraint("status IN ('applied', 'revoked')", name="status"),
    comment="The log of what was said of facts: with the sources, everything believed of them is a function of it.",
)

fact_statement = Table(
    "fact_statement",
    metadata,
    tenant(),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("event_id", BigInteger, nullable=False),
    Column("source", Text, nullable=False, comment="Who or what says so."),
    Column("text", Text, nullable=False),
    Column("origin_id", BigInteger, comment="The sentence that it repeats of another graph."),
    PrimaryKeyConstraint("collection_id", "id"),
    parent_key("fact_event", "event_id"),
    Index(None, "collection_id", "event_id"),
    Index(
        "fact_statement_origin_idx", "collection_id", "origin_id", postgresql_where=text("origin_id IS NOT NULL")
    ),
    comment="Sentences that callers gave as the sources of facts, beside those of passages.",
)

fact_source = Table(
    "fact_source",
    metadata,
    tenant(),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("fact_id", BigInteger, nullable=False),
    Column("sentence_id", BigInteger),
    Column("passage_id", BigInteger, comment="That of the sentence, or that a statement's source is."),
    Column("statement_id", BigInteger),
    Column("withdrawn_by", BigInteger, comment="The event by which it says so no more; null: it still does."),
    Column("confidence", Float(53), nullable=False),
    _sequence(),
    Column("observation_noise_positive", Float(53), nullable=False, comment="By which it counts, as follows."),
    Column("observation_noise_negative", Float(53), nullable=False),
    Column("process_noise", Float(53), nullable=False),
    build_timestamp_column("learned_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    parent_key("fact", "fact_id"),
    parent_key("sentence", "sentence_id"),
    parent_key("fact_statement", "statement_id"),
    Index("fact_source_fact_idx", "collection_id", "fact_id", "sentence_id", "statement_id", unique=True),
    Index(
        "fact_source_sentence_idx",
        "collection_id",
        "sentence_id",
        postgresql_where=text("sentence_id IS NOT NULL"),
    ),
    Index(
        "fact_source_statement_idx",
        "collection_id",
        "statement_id",
        postgresql_where=text("statement_id IS NOT NULL"),
    ),
    Index(
        "fact_source_stated_idx",
        "collection_id",
        "passage_id",
        postgresql_where=text("num_nonnulls(statement_id) = 1"),
    ),
    Index(
        "fact_source_withdrawn_idx",
        "collection_id",
        "withdrawn_by",
        postgresql_where=text("withdrawn_by IS NOT NULL"),
    ),
    CheckConstraint("num_nonnulls(sentence_id, statement_id) = 1", name="one"),
    CheckConstraint("confidence > 0 AND confidence <= 1", name="confidence"),
    comment="Who says so; a fact that loses its last source goes.",
)

fact_audit = Table(
    "fact_audit",
    metadata,
    tenant(),
    Column("fact_id", BigInteger, nullable=False),
    Column("sequence", BigInteger, nullable=False, comment="Of the source or the event that moved it."),
    Column("target", SmallInteger, nullable=False, comment="y of GAM-RAG, Eq. 10."),
    Column("observation_noise", Float(53), nullable=False),
    Column("gain", Float(53), nullable=False),
    Column("residual", Float(53), nullable=False),
    Column("perplexity_before", Float(53), nullable=False),
    Column("perplexity_after", Float(53), nullable=False),
    Column("belief", Float(53), nullable=False, comment="After it."),
    Column("at", TIMESTAMP(timezone=True), nullable=False),
    PrimaryKeyConstraint("collection_id", "fact_id", "sequence"),
    parent_key("fact", "fact_id"),
    comment="One row for each thing said that moved a fact.",
)

fact_predicate = Table(
    "fact_predicate",
    metadata,
    _build_collection_column(),
    _graph(),
    Column("predicate", Text, nullable=False),
    Column("declared", Boolean, comment="Whether a subject has one object at a time, as somebody said."),
    Column("functional", Boolean, nullable=False, server_default=text("false"), comment="By which facts compete."),
    Column("subjects", BigInteger, nullable=False, server_default=text("0"), comment="When it was last counted."),
    Column("single", BigInteger, nullable=False, server_default=text("0"), comment="Of them, with one object."),
    build_timestamp_column("counted_at"),
    PrimaryKeyConstraint("collection_id", "graph_id", "predicate"),
)
