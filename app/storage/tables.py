"""The schema as SQLAlchemy metadata: what the migrations must add up to (a test compares the two).

``collection_id`` leads every primary key and every foreign key, so no statement crosses collections.
Vectors are stored PLAIN: a hop reads them by the hundred and must not follow TOAST pointers. The dimension of
a vector column is that of the configured encoder and is set by the migration.
"""

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    ARRAY,
    REAL,
    TIMESTAMP,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(referred_table_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    }
)


def tenant() -> Column[int]:
    return Column("collection_id", BigInteger, nullable=False)


def now(name: str) -> Column[object]:
    return Column(name, TIMESTAMP(timezone=True), nullable=False, server_default=func.now())


def of(parent: str, *columns: str, references: str = "id") -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["collection_id", *columns], [f"{parent}.collection_id", f"{parent}.{references}"], ondelete="CASCADE"
    )


# Of tables with an HNSW index: autovacuum prunes, freezes and analyses them but keeps off their indexes, because
# taking dead entries out of an HNSW graph takes minutes. storage/maintenance.py builds the graph anew in seconds.
_REBUILT = {"vacuum_index_cleanup": "off"}


def _hnsw(table: str, **build: str) -> Index:
    return Index(
        f"{table}_embedding_hnsw",
        "embedding",
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "vector_ip_ops"},
        postgresql_with=build,
    )


embedding_space = Table(
    "embedding_space",
    metadata,
    Column("singleton", SmallInteger, primary_key=True, autoincrement=False, server_default=text("1")),
    Column("model", Text, nullable=False),
    Column("fingerprint", Text, nullable=False),
    Column("dimension", Integer, nullable=False),
    now("recorded_at"),
    CheckConstraint("singleton = 1", name="singleton"),
    comment="The one encoder whose vectors this database holds.",
)

collection = Table(
    "collection",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("passage_count", BigInteger, nullable=False, server_default=text("0")),
    Column("sentence_count", BigInteger, nullable=False, server_default=text("0")),
    Column("entity_count", BigInteger, nullable=False, server_default=text("0")),
    Column(
        "lexical_length",
        Float(53),
        nullable=False,
        server_default=text("0"),
        comment="Of all passages together, in terms: with passage_count the mean length that BM25 needs.",
    ),
    Column(
        "key_building", Text, nullable=False, server_default=text("'full'"), comment="What base keys are made of."
    ),
    Column("key_generation", BigInteger, nullable=False, server_default=text("0"), comment="0: base keys serve."),
    now("created_at"),
    CheckConstraint("key_building IN ('full', 'title', 'abstract', 'keywords')", name="key_building"),
)

passage = Table(
    "passage",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("external_id", Text, nullable=False),
    Column("title", Text),
    Column("text", Text, nullable=False),
    Column("metadata", JSONB, nullable=False, server_default=text("'{}'::jsonb")),
    Column("content_hash", LargeBinary, nullable=False),
    Column("embedding", VECTOR(), nullable=False),
    now("created_at"),
    now("updated_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "external_id"),
    _hnsw("passage"),
    Index(
        "passage_metadata_gin",
        "metadata",
        postgresql_using="gin",
        postgresql_ops={"metadata": "jsonb_path_ops"},
    ),
    postgresql_with=_REBUILT,
)

time_expression = Table(
    "time_expression",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("text", Text, nullable=False),
    Column("starts_on", Date),
    Column("ends_on", Date),
    Column("embedding", VECTOR(), nullable=False),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "text"),
)

sentence = Table(
    "sentence",
    metadata,
    tenant(),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("position", Integer, nullable=False),
    Column("text", Text, nullable=False),
    Column("time_expression_id", BigInteger),
    Column("embedding", VECTOR(), nullable=False),
    PrimaryKeyConstraint("collection_id", "id"),
    of("passage", "passage_id"),
    ForeignKeyConstraint(
        ["collection_id", "time_expression_id"], ["time_expression.collection_id", "time_expression.id"]
    ),
    Index(None, "collection_id", "passage_id"),
    Index(None, "collection_id", "time_expression_id"),
)

entity = Table(
    "entity",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("name", Text, nullable=False, comment="Normalised: equal names meet here."),
    Column("surface", Text, nullable=False),
    Column("embedding", VECTOR(), nullable=False),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "name"),
    # Names are many and mostly met by their text: a lighter graph keeps them from dominating an ingest.
    _hnsw("entity", m="8", ef_construction="32"),
    postgresql_with=_REBUILT,
)

entity_sentence = Table(
    "entity_sentence",
    metadata,
    tenant(),
    Column("entity_id", BigInteger, nullable=False),
    Column("sentence_id", BigInteger, nullable=False),
    PrimaryKeyConstraint("collection_id", "entity_id", "sentence_id"),
    of("entity", "entity_id"),
    of("sentence", "sentence_id"),
    Index(None, "collection_id", "sentence_id", "entity_id"),
    comment="M_ES of GAM-RAG, Eq. 1.",
)

lexical_term = Table(
    "lexical_term",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("term", Text, nullable=False),
    Column("passage_count", BigInteger, nullable=False, comment="How many passages hold it."),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "term"),
    CheckConstraint("passage_count >= 0", name="passage_count"),
    postgresql_with={"fillfactor": "70"},
)

lexical_posting = Table(
    "lexical_posting",
    metadata,
    tenant(),
    Column("term_id", BigInteger, nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("frequency", REAL, nullable=False, comment="How often the passage has the term; need not be whole."),
    Column("length", REAL, nullable=False, comment="The passage's length in terms, so that no row is looked up."),
    # Read from the index alone, which is why that holds the whole row.
    PrimaryKeyConstraint("collection_id", "term_id", "passage_id", postgresql_include=["frequency", "length"]),
    comment="No foreign keys: checking one costs more than the row. A posting is reached from its term only.",
)

lexical_passage = Table(
    "lexical_passage",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("analyser", Integer, nullable=False, comment="Version of the analysis that gave the terms."),
    Column("length", REAL, nullable=False),
    Column("term_ids", ARRAY(BigInteger), nullable=False, comment="Where the passage's postings are."),
    PrimaryKeyConstraint("collection_id", "passage_id"),
    # No cascade: a passage cannot leave while it is still counted.
    ForeignKeyConstraint(["collection_id", "passage_id"], ["passage.collection_id", "passage.id"]),
    comment="What takes a passage out of the lexical index again, exactly as it came.",
)

sentence_memory = Table(
    "sentence_memory",
    metadata,
    tenant(),
    Column("sentence_id", BigInteger, nullable=False),
    Column("channel", Text, nullable=False),
    Column("vector", VECTOR(), nullable=False),
    Column("perplexity", Float(53), nullable=False),
    Column("update_count", Integer, nullable=False),
    Column("time_expression_id", BigInteger, comment="Of a time memory: what it began as."),
    now("updated_at"),
    PrimaryKeyConstraint("collection_id", "sentence_id", "channel"),
    of("sentence", "sentence_id"),
    # No cascade: the expression stays as long as a memory that began as it.
    ForeignKeyConstraint(
        ["collection_id", "time_expression_id"], ["time_expression.collection_id", "time_expression.id"]
    ),
    Index(
        "sentence_memory_time_idx",
        "collection_id",
        "time_expression_id",
        postgresql_where=text("time_expression_id IS NOT NULL"),
    ),
    CheckConstraint("channel IN ('task', 'time')", name="channel"),
    CheckConstraint("perplexity BETWEEN 0 AND 1", name="perplexity"),
    postgresql_with={"fillfactor": "70"},
    comment="One row per sentence and channel, once a verdict touched it (GAM-RAG, Eq. 2).",
)

question = Table(
    "question",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("text_hash", LargeBinary, nullable=False),
    Column("text", Text, nullable=False),
    Column("embedding", VECTOR(), nullable=False),
    now("created_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "text_hash"),
    _hnsw("question"),
    postgresql_with=_REBUILT,
    comment="Questions that verdicts were given for; insert-only.",
)

question_support = Table(
    "question_support",
    metadata,
    tenant(),
    Column("question_id", BigInteger, nullable=False),
    Column("sentence_id", BigInteger, nullable=False),
    Column("support", Float(53), nullable=False),
    Column("perplexity", Float(53), nullable=False),
    Column("update_count", Integer, nullable=False),
    Column("complete", Boolean, nullable=False, comment="Whether the last verdict claimed to name all evidence."),
    PrimaryKeyConstraint("collection_id", "question_id", "sentence_id"),
    of("question", "question_id"),
    of("sentence", "sentence_id"),
    Index(None, "collection_id", "sentence_id"),
    CheckConstraint("perplexity BETWEEN 0 AND 1", name="perplexity"),
    postgresql_with={"fillfactor": "70"},
    comment="How surely a sentence supports a question: the state that experience recall reads.",
)

episode = Table(
    "episode",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", Uuid, nullable=False),
    Column("question", Text, nullable=False),
    Column("embedding", VECTOR(), nullable=False),
    Column("time_constraint", Text),
    Column("time_embedding", VECTOR()),
    Column("memory", Text, nullable=False),
    Column("profile", Text, nullable=False),
    Column("strategy", Text, nullable=False, server_default=text("'graph'")),
    Column("activated", ARRAY(BigInteger), nullable=False, comment="Sentences selected in any hop."),
    Column("answer", JSONB, nullable=False, comment="The response, as it was given."),
    Column("trace", JSONB, nullable=False),
    Column("ranked", ARRAY(BigInteger), comment="Best candidates; null where features alone did not rank."),
    Column("features", LargeBinary, comment="Of the candidates: (n, k) float32, little-endian, row by row."),
    Column("judged", Integer, nullable=False, server_default=text("0"), comment="Events accepted for it."),
    now("created_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    Index("episode_unjudged_idx", "collection_id", "created_at", postgresql_where=text("judged = 0")),
    CheckConstraint("memory IN ('off', 'read')", name="memory"),
    CheckConstraint("profile IN ('paper', 'default')", name="profile"),
    CheckConstraint("strategy IN ('graph', 'dense', 'lexical', 'hybrid')", name="strategy"),
)

feedback_event = Table(
    "feedback_event",
    metadata,
    tenant(),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("episode_id", Uuid, nullable=False),
    Column("idempotency_key", Text, nullable=False),
    Column("body_hash", LargeBinary, nullable=False),
    Column("judge", Text, nullable=False),
    Column("verdict", JSONB, nullable=False),
    Column("status", Text, nullable=False, server_default=text("'pending'")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("error", Text),
    now("received_at"),
    Column("applied_at", TIMESTAMP(timezone=True)),
    Column("applied_sequence", BigInteger, comment="Order of application; replay follows it."),
    Column("question_id", BigInteger, comment="The question that it taught; null until it is applied."),
    Column("revoked_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "idempotency_key"),
    of("episode", "episode_id"),
    Index(None, "collection_id", "episode_id"),
    Index(None, "collection_id", "question_id"),
    Index("feedback_event_pending_idx", "received_at", postgresql_where=text("status = 'pending'")),
    CheckConstraint("status IN ('pending', 'applied', 'parked', 'revoked')", name="status"),
    comment="The log of verdicts: everything learned is a function of it.",
)

applied_sequence = Sequence("feedback_applied", metadata=metadata)

memory_audit = Table(
    "memory_audit",
    metadata,
    tenant(),
    Column("event_id", BigInteger, nullable=False),
    Column("sentence_id", BigInteger, nullable=False),
    Column("channel", Text, nullable=False),
    Column("target", SmallInteger, nullable=False, comment="y of GAM-RAG, Eq. 10."),
    Column("observation_noise", Float(53), nullable=False),
    Column("gain", Float(53), nullable=False),
    Column("residual", Float(53), nullable=False),
    Column("perplexity_before", Float(53), nullable=False),
    Column("perplexity_after", Float(53), nullable=False),
    Column("process_noise", Float(53), nullable=False),
    PrimaryKeyConstraint("collection_id", "event_id", "sentence_id", "channel"),
    of("feedback_event", "event_id"),
    Index(None, "collection_id", "sentence_id"),
    CheckConstraint("channel IN ('task', 'time', 'recall')", name="channel"),
    comment="One row per state an event moved. Rows outlive their sentence: the log is history.",
)

ranking_belief = Table(
    "ranking_belief",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("prior", Text, nullable=False, comment="Fingerprint of the prior that the sums add to."),
    Column("information", ARRAY(Float(53)), nullable=False),
    Column("precision", ARRAY(Float(53)), nullable=False, comment="(k, k), row by row."),
    Column("events", BigInteger, nullable=False, server_default=text("0")),
    now("updated_at"),
    PrimaryKeyConstraint("collection_id", "prior"),
    comment="What verdicts taught about the ranking weights: the sum of the events' terms.",
)

ranking_audit = Table(
    "ranking_audit",
    metadata,
    tenant(),
    Column("event_id", BigInteger, nullable=False),
    Column("prior", Text, nullable=False),
    Column("observation_noise", Float(53), nullable=False),
    Column("surprise", Float(53), nullable=False, comment="Probability the prior gave to a rival."),
    Column("information", ARRAY(Float(53)), nullable=False),
    Column("precision", ARRAY(Float(53)), nullable=False, comment="(k, k), row by row."),
    PrimaryKeyConstraint("collection_id", "event_id"),
    of("feedback_event", "event_id"),
    comment="What each event added to the ranking weights.",
)

ingest_job = Table(
    "ingest_job",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", Uuid, nullable=False),
    Column("key_building", Text, comment="Of a re-key job: what base keys shall be made of; null: it ingests."),
    Column("revocation", JSONB, comment="Of a job that revokes verdicts: which ones; null: another job."),
    Column("status", Text, nullable=False, server_default=text("'receiving'")),
    Column("received", BigInteger, nullable=False, server_default=text("0")),
    Column("created", BigInteger, nullable=False, server_default=text("0")),
    Column("updated", BigInteger, nullable=False, server_default=text("0")),
    Column("unchanged", BigInteger, nullable=False, server_default=text("0")),
    Column("rejected", BigInteger, nullable=False, server_default=text("0")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("error", Text),
    now("created_at"),
    now("updated_at"),
    Column("finished_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("collection_id", "id"),
    Index(
        "ingest_job_open_idx",
        "created_at",
        postgresql_where=text("status IN ('receiving', 'queued', 'running')"),
    ),
    # At most one that is open: of two, the later would undo what the earlier one is still at.
    Index(
        "ingest_job_rekey_idx",
        "collection_id",
        unique=True,
        postgresql_where=text("key_building IS NOT NULL AND status IN ('queued', 'running')"),
    ),
    CheckConstraint("status IN ('receiving', 'queued', 'running', 'succeeded', 'failed')", name="status"),
    CheckConstraint("key_building IN ('full', 'title', 'abstract', 'keywords')", name="key_building"),
)

ingest_line = Table(
    "ingest_line",
    metadata,
    tenant(),
    Column("job_id", Uuid, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("passage", JSONB, nullable=False),
    PrimaryKeyConstraint("collection_id", "job_id", "line"),
    of("ingest_job", "job_id"),
    comment="Accepted and not yet ingested; a line leaves in the transaction that ingests it.",
)

ingest_error = Table(
    "ingest_error",
    metadata,
    tenant(),
    Column("job_id", Uuid, nullable=False),
    Column("line", BigInteger, nullable=False),
    Column("reason", Text, nullable=False),
    PrimaryKeyConstraint("collection_id", "job_id", "line"),
    of("ingest_job", "job_id"),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("key", Text, nullable=False),
    Column("body_hash", LargeBinary, nullable=False),
    Column("answer", JSONB, nullable=False),
    now("created_at"),
    PrimaryKeyConstraint("collection_id", "key"),
    comment="First answers of keyed writes other than feedback, whose log keeps its own keys.",
)
