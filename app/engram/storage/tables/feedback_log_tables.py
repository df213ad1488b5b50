"""The log of verdicts: what was judged, what was said of it, by what it was applied, and what it then did.

It refers to collections alone. Answers may be deleted, and sentences and passages with the corpus: the log is
history, and everything learned can be computed from it again.
"""

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

from engram.storage.tables.table_base import build_timestamp_column, metadata, parent_key, space, tenant

judged_query = Table(
    "judged_query",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", Uuid, nullable=False, comment="The answered query's."),
    Column("question", Text, nullable=False),
    Column("embedding", VECTOR(), nullable=False),
    Column("time_constraint", Text),
    Column("time_embedding", VECTOR()),
    Column("profile", Text, nullable=False),
    Column("filter", JSONB, comment="What metadata its passages had to have."),
    Column("activated", ARRAY(BigInteger), nullable=False, comment="Sentences selected in any hop."),
    Column("ranked", ARRAY(BigInteger), comment="Best candidates; null where features alone did not rank."),
    Column("features", LargeBinary, comment="Of the candidates: (n, k) float32, little-endian, row by row."),
    Column(
        "answer_features",
        LargeBinary,
        comment="Features of the answer: (k,) float32; the first of ranked were shown.",
    ),
    Column(
        "sufficiency",
        Float(53),
        comment="Probability that the first five passages of the answer held all the evidence; null: unknown.",
    ),
    Column("reranker", Text, comment="Fingerprint of the belief in a reranker that was asked; null: none was."),
    Column("reranked", LargeBinary, comment="Of the candidates: (n, 2) float32, own score and log odds."),
    space(),
    PrimaryKeyConstraint("collection_id", "id"),
    CheckConstraint("profile IN ('paper', 'default')", name="profile"),
    comment="What verdicts on an answered query go by, copied when the first one is accepted.",
)

feedback_event = Table(
    "feedback_event",
    metadata,
    tenant(),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("query_id", Uuid, nullable=False),
    Column("idempotency_key", Text, nullable=False),
    Column("body_hash", LargeBinary, nullable=False),
    Column("judge", Text, nullable=False),
    Column("principal", Text, nullable=False, server_default=text("'local'"), comment="Whose request brought it."),
    Column(
        "trusted",
        Boolean,
        nullable=False,
        server_default=text("true"),
        comment="Whether its judge counts in full by whose request it was.",
    ),
    Column("version", SmallInteger, nullable=False, comment="By which the verdict is to be read."),
    Column("partial", Boolean, nullable=False),
    Column("retrieval_success", Boolean),
    Column("generation_success", Boolean),
    Column("generation_score", Float(53)),
    Column("confidence", Float(53), nullable=False),
    Column(
        "spared",
        ARRAY(BigInteger),
        nullable=False,
        comment="Sentences of passages that helped as a whole, of which it is not known which ones did.",
    ),
    Column("status", Text, nullable=False, server_default=text("'pending'")),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("error", Text),
    build_timestamp_column("received_at"),
    Column("applied_at", TIMESTAMP(timezone=True)),
    Column("applied_sequence", BigInteger, comment="Order of application; replay follows it."),
    Column("question_id", BigInteger, comment="The question that it taught; null until it is applied."),
    Column("observation_noise_positive", Float(53), comment="By which it was applied, as what follows."),
    Column("observation_noise_negative", Float(53)),
    Column("process_noise", Float(53)),
    Column("daily_share", Float(53)),
    Column("contested_share", Float(53)),
    Column("daily_comparisons", Integer, comment="Null: all."),
    Column("standing", Float(53), comment="Weight of its judge, below 1 of a new one."),
    Column("revoked_at", TIMESTAMP(timezone=True)),
    Column("rounds", JSONB, comment="Of the session that it judges: features of each, and passages found by ids."),
    Column("rating", Text, comment="Thumb that the verdict was made of; null where sentences were judged."),
    Column("reason", Text, comment="Reason of the rating."),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "principal", "idempotency_key"),
    parent_key("judged_query", "query_id"),
    Index(None, "collection_id", "query_id"),
    Index(None, "collection_id", "question_id"),
    Index(None, "collection_id", "judge", "received_at"),
    Index("feedback_event_pending_idx", "received_at", postgresql_where=text("status = 'pending'")),
    Index("feedback_event_parked_idx", "collection_id", "id", postgresql_where=text("status = 'parked'")),
    CheckConstraint("confidence > 0 AND confidence <= 1", name="confidence"),
    CheckConstraint("generation_score BETWEEN 0 AND 1", name="generation_score"),
    CheckConstraint("rating IN ('up', 'down', 'withdrawn')", name="rating"),
    CheckConstraint("status IN ('pending', 'applied', 'parked', 'revoked')", name="status"),
    CheckConstraint(
        "applied_sequence IS NULL OR num_nulls(applied_at, question_id, observation_noise_positive, "
        "observation_noise_negative, process_noise, daily_share, contested_share) = 0",
        name="applied",
    ),
    comment="The log of verdicts: everything learned is a function of it.",
)

verdict_sentence = Table(
    "verdict_sentence",
    metadata,
    tenant(),
    Column("event_id", BigInteger, nullable=False),
    Column("sentence_id", BigInteger, nullable=False),
    Column("role", Text, nullable=False),
    Column(
        "examined",
        Float(53),
        comment="Probability that a rejected one was looked at, or that a likely one helped; null: 1.",
    ),
    PrimaryKeyConstraint("collection_id", "event_id", "sentence_id"),
    parent_key("feedback_event", "event_id"),
    CheckConstraint("role IN ('supported', 'missed', 'rejected', 'likely')", name="role"),
    CheckConstraint(
        "examined IS NULL OR (role IN ('rejected', 'likely') AND examined > 0 AND examined < 1)", name="examined"
    ),
    comment="Sentences that a verdict names. What is missed was not returned and supports as well; what is likely "
    "is not named itself, but nearest to the question in a passage that helped as a whole.",
)

verdict_passage = Table(
    "verdict_passage",
    metadata,
    tenant(),
    Column("event_id", BigInteger, nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    PrimaryKeyConstraint("collection_id", "event_id", "passage_id"),
    parent_key("feedback_event", "event_id"),
    comment="Passages that helped as a whole.",
)

verdict_expansion = Table(
    "verdict_expansion",
    metadata,
    tenant(),
    Column("event_id", BigInteger, nullable=False),
    Column("place", SmallInteger, nullable=False),
    Column("method", Text, nullable=False),
    Column("text", Text, nullable=False),
    PrimaryKeyConstraint("collection_id", "event_id", "place"),
    parent_key("feedback_event", "event_id"),
    comment="Query expansions that came with a verdict, in their order.",
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
    parent_key("feedback_event", "event_id"),
    Index(None, "collection_id", "sentence_id"),
    CheckConstraint("channel IN ('task', 'time', 'recall')", name="channel"),
    comment="One row per state an event moved. Rows outlive their sentence: the log is history.",
)

ranking_audit = Table(
    "ranking_audit",
    metadata,
    tenant(),
    Column("event_id", BigInteger, nullable=False),
    Column("model", Text, nullable=False, comment="The belief that it adds to."),
    Column("prior", Text, nullable=False),
    Column("observation_noise", Float(53), nullable=False),
    Column("surprise", Float(53), nullable=False, comment="Probability the prior gave to what the verdict denies."),
    Column("information", ARRAY(Float(53)), info={"storage": "EXTERNAL"}, nullable=False),
    Column(
        "precision", ARRAY(Float(53)), info={"storage": "EXTERNAL"}, nullable=False, comment="(k, k), row by row."
    ),
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
    PrimaryKeyConstraint("collection_id", "event_id", "model"),
    parent_key("feedback_event", "event_id"),
    CheckConstraint("model IN ('ranking', 'reranker', 'round', 'sufficiency')", name="model"),
    postgresql_with={"toast_tuple_target": "8160"},
    comment="Changes of the ranking weights and of sufficiency, by event.",
)
