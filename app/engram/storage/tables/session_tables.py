"""Sessions: questions that take several rounds, kept as long as answered queries are."""

from sqlalchemy import (
    ARRAY,
    REAL,
    TIMESTAMP,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import build_timestamp_column, metadata, parent_key, tenant

session = Table(
    "session",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", Uuid, nullable=False, comment="Of version 7."),
    Column("job_id", Uuid, comment="The job that runs it, or ran it last; null before the first."),
    Column("principal", Text, nullable=False, server_default=text("'local'"), comment="Whose request it was."),
    Column(
        "trusted", Boolean, nullable=False, server_default=text("true"), comment="Whether its judge counts in full."
    ),
    Column("llm_tokens", BigInteger, comment="What a day's calls of a language model may cost whoever asked."),
    Column("question", Text, nullable=False),
    Column("planner", Text, nullable=False),
    Column("asked", JSONB, nullable=False, comment="How it is to retrieve, stop and answer."),
    Column("budget", JSONB, nullable=False),
    Column("status", Text, nullable=False, server_default=text("'running'")),
    Column("stop_reason", Text),
    Column("rounds", SmallInteger, nullable=False, server_default=text("0")),
    Column("cost", JSONB, nullable=False, server_default=text("'{}'")),
    Column(
        "ranked", ARRAY(BigInteger), nullable=False, server_default=text("'{}'"), comment="Passages, best first."
    ),
    Column("sufficiency", REAL, comment="Probability that the best passages hold all the evidence."),
    Column("covered", REAL, comment="Share of what the question asks for that the pool has."),
    Column("notes", JSONB, nullable=False, server_default=text("'[]'"), comment="The working memory."),
    Column("plan_state", JSONB, nullable=False, server_default=text("'{}'"), comment="The planner's own."),
    Column("conclusion", JSONB, comment="The answer in words."),
    Column("warnings", JSONB, nullable=False, server_default=text("'[]'")),
    build_timestamp_column("created_at"),
    build_timestamp_column("updated_at"),
    Column("finished_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("collection_id", "id"),
    CheckConstraint("status IN ('running', 'stopped', 'cancelled', 'failed')", name="status"),
)

session_round = Table(
    "session_round",
    metadata,
    tenant(),
    Column("session_id", Uuid, nullable=False),
    Column("number", SmallInteger, nullable=False),
    Column("action", Text, nullable=False),
    Column("said", JSONB, nullable=False, comment="Sub-question, gap, queries, answer: what was made of passages."),
    Column("episodes", ARRAY(Uuid), nullable=False, comment="Of the queries, in their order."),
    Column("curated", JSONB, nullable=False, comment="What became of the sentences that were looked at."),
    Column("sufficiency", REAL),
    Column("covered", REAL),
    Column("cost", JSONB, nullable=False),
    Column("walk", JSONB, comment="Where its queries would have gone on, by ids: the next round resumes it."),
    Column("warnings", JSONB, nullable=False, server_default=text("'[]'")),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "session_id", "number"),
    parent_key("session", "session_id"),
)

session_passage = Table(
    "session_passage",
    metadata,
    tenant(),
    Column("session_id", Uuid, nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("round", SmallInteger, nullable=False, comment="That read it first."),
    PrimaryKeyConstraint("collection_id", "session_id", "passage_id"),
    parent_key("session", "session_id"),
    Index("session_passage_read_idx", "collection_id", "passage_id"),
    comment="Which passages a session has read: what it made of them goes with any of them.",
)

session_evidence = Table(
    "session_evidence",
    metadata,
    tenant(),
    Column("session_id", Uuid, nullable=False),
    Column("sentence_id", BigInteger, nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("place", SmallInteger, nullable=False, comment="In the order in which sentences came."),
    Column("round", SmallInteger, nullable=False),
    Column("query", SmallInteger, comment="Of the round's queries; null: the caller brought it."),
    Column("gap", Text),
    Column("score", REAL),
    PrimaryKeyConstraint("collection_id", "session_id", "sentence_id"),
    parent_key("session", "session_id"),
    comment="The evidence pool: sentences by id, so that a text that is deleted is in no pool.",
)
