"""What is asked and judged, and what verdicts taught: memories, supports, weights, and their audit."""

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
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
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from app.storage.tables.base import metadata, now, of, tenant


def _pulled() -> Column[object]:
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
    Column("vector", VECTOR(), nullable=False),
    Column("perplexity", Float(53), nullable=False),
    Column("update_count", Integer, nullable=False),
    Column("time_expression_id", BigInteger, comment="Of a time memory: what it began as."),
    _pulled(),
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
    _pulled(),
    Column(
        "said",
        JSONB,
        nullable=False,
        server_default=text("'[]'::jsonb"),
        comment="Judges and their last words, 1 supported, 0 rejected, in the order in which they first spoke.",
    ),
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
    Column("arm", Text, comment="Given by the collection's experiment."),
    Column("explored", ARRAY(BigInteger), comment="Passages that exploration put into the answer."),
    now("created_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    Index(None, "collection_id", "created_at", "id"),
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
    Column(
        "constants",
        JSONB,
        comment="Noises and caps by which it was applied; null until then.",
    ),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "idempotency_key"),
    of("episode", "episode_id"),
    Index(None, "collection_id", "episode_id"),
    Index(None, "collection_id", "question_id"),
    Index(None, "collection_id", "judge", "received_at"),
    Index("feedback_event_pending_idx", "received_at", postgresql_where=text("status = 'pending'")),
    Index("feedback_event_parked_idx", "collection_id", "id", postgresql_where=text("status = 'parked'")),
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
    Column(
        "counted",
        Boolean,
        nullable=False,
        server_default=text("true"),
        comment="Whether the sum holds it: not what came after the judge's daily cap.",
    ),
    Column(
        "contested",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="Whether the verdict goes against what other judges said.",
    ),
    PrimaryKeyConstraint("collection_id", "event_id"),
    of("feedback_event", "event_id"),
    comment="What each event added to the ranking weights.",
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
    now("updated_at"),
    PrimaryKeyConstraint("collection_id", "name"),
    CheckConstraint("observation_noise_positive > 0", name="observation_noise_positive"),
    CheckConstraint("observation_noise_negative > 0", name="observation_noise_negative"),
    CheckConstraint("daily_share BETWEEN 0 AND 1", name="daily_share"),
    CheckConstraint("contested_share BETWEEN 0 AND 1", name="contested_share"),
    CheckConstraint("daily_comparisons >= 0", name="daily_comparisons"),
    comment="What is set for a judge; null: as for every judge.",
)
