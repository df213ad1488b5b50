"""Tables of questions and learning: memories, supports and weights. Their log is in ``feedback_log_tables``."""

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    ARRAY,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import build_timestamp_column, metadata, parent_key, tenant


def _gain_budget() -> Column[object]:
    return Column(
        "pulled",
        JSONB,
        nullable=False,
        server_default=text("'{}'::jsonb"),
        comment="Of the last day that it moved: what each judge left of it, 1 being all.",
    )


sentence_memory = Table(
    "sentence_memory",
    metadata,
    tenant(),
    Column("sentence_id", BigInteger, nullable=False),
    Column("channel", Text, nullable=False),
    Column("vector", VECTOR(), info={"storage": "MAIN"}, nullable=False),
    Column("perplexity", Float(53), nullable=False),
    Column("update_count", Integer, nullable=False),
    Column("time_expression_id", BigInteger, comment="Of a time memory: what it began as."),
    _gain_budget(),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "sentence_id", "channel"),
    parent_key("sentence", "sentence_id"),
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
    postgresql_with={"fillfactor": "50"},
    comment="One row per sentence and channel, once a verdict touched it (GAM-RAG, Eq. 2).",
)

question = Table(
    "question",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("text_hash", LargeBinary, nullable=False),
    Column("text", Text, nullable=False),
    Column("embedding", VECTOR(), info={"storage": "MAIN"}, nullable=False),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "text_hash"),
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
    Column(
        "answered",
        Float(53),
        nullable=False,
        server_default=text("0"),
        comment="Highest sufficiency of the answers whose verdicts supported the sentence.",
    ),
    Column(
        "sufficiency",
        Float(53),
        nullable=False,
        server_default=text("0"),
        comment="Probability that an answer is sufficient in which all evidence of the question leads.",
    ),
    _gain_budget(),
    Column(
        "said",
        JSONB,
        nullable=False,
        server_default=text("'[]'::jsonb"),
        comment="Judges and their last words, 1 supported, 0 rejected, in the order in which they first spoke.",
    ),
    PrimaryKeyConstraint("collection_id", "question_id", "sentence_id"),
    parent_key("question", "question_id"),
    parent_key("sentence", "sentence_id"),
    Index(None, "collection_id", "sentence_id"),
    CheckConstraint("perplexity BETWEEN 0 AND 1", name="perplexity"),
    postgresql_with={"fillfactor": "70"},
    comment="How surely a sentence supports a question: the state that experience recall reads.",
)

ranking_belief = Table(
    "ranking_belief",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("model", Text, nullable=False, comment="What it is a belief of."),
    Column("prior", Text, nullable=False, comment="Fingerprint of the prior that the sums add to."),
    Column("information", ARRAY(Float(53)), nullable=False),
    Column("precision", ARRAY(Float(53)), nullable=False, comment="(k, k), row by row."),
    Column("events", BigInteger, nullable=False, server_default=text("0")),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "model", "prior"),
    CheckConstraint("model IN ('ranking', 'reranker', 'round', 'sufficiency')", name="model"),
    comment="What verdicts taught about the weights of a model: the sum of the events' terms.",
)

judge = Table(
    "judge",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False),
    Column("observation_noise_positive", Float(53)),
    Column("observation_noise_negative", Float(53)),
    Column("daily_share", Float(53)),
    Column("contested_share", Float(53)),
    Column("daily_comparisons", Integer),
    Column("trusted", Boolean, comment="Whether it counts in full, whoever brings its verdicts."),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "name"),
    CheckConstraint("observation_noise_positive > 0", name="observation_noise_positive"),
    CheckConstraint("observation_noise_negative > 0", name="observation_noise_negative"),
    CheckConstraint("daily_share BETWEEN 0 AND 1", name="daily_share"),
    CheckConstraint("contested_share BETWEEN 0 AND 1", name="contested_share"),
    CheckConstraint("daily_comparisons >= 0", name="daily_comparisons"),
    comment="What is set for a judge; null: as for every judge.",
)
