"""Tables of answered queries, as ids and numbers, partitioned by week."""

from typing import Any

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import (
    build_inherited_collection_column,
    build_partial_index,
    build_principal_column,
    build_space_column,
    build_timestamp_column,
    metadata,
    require,
)


def build_question_columns() -> list[Column[Any]]:
    """Build the columns of a question and the time that it names, with their vectors."""
    return [
        require("question", Text),
        require("embedding", VECTOR()),
        Column("time_constraint", Text),
        Column("time_embedding", VECTOR()),
    ]


def build_teaching_columns() -> list[Column[Any]]:
    """Build the columns from which a later verdict updates sufficiency."""
    return [
        Column("ranked", ARRAY(BigInteger), comment="Best candidates; null if features alone did not rank them."),
        Column(
            "answer_features",
            LargeBinary,
            comment="Features of the answer: (k,) float32; the first of ranked were shown.",
        ),
    ]


def build_reranker_columns() -> list[Column[Any]]:
    """Build the columns of what a reranker said of the candidates."""
    return [
        Column("reranker", Text, comment="Fingerprint of the belief in the reranker that was used; null: none."),
        Column(
            "reranked", LargeBinary, comment="For each candidate its own score and the log odds: (n, 2) float32."
        ),
    ]


episode = Table(
    "episode",
    metadata,
    build_inherited_collection_column(),
    require("id", Uuid, comment="A UUID of version 7, whose time selects the partition."),
    *build_question_columns(),
    require("memory", Text),
    require("profile", Text),
    require("strategy", Text),
    Column("filter", JSONB, comment="Metadata that the passages had to have."),
    require("activated", ARRAY(BigInteger), comment="Sentences selected in any hop."),
    require("shown", ARRAY(BigInteger), comment="The answer's passages, in order."),
    Column("explored", ARRAY(BigInteger), comment="Passages that exploration put into the answer."),
    require("hops", SmallInteger),
    require("total_ms", REAL),
    Column("arm", Text, comment="The arm of the collection's experiment."),
    build_principal_column(),
    require("answer", JSONB, comment="The answer, without the texts."),
    require("trace", JSONB, comment="The trace, without the texts."),
    *build_teaching_columns(),
    Column("best_features", LargeBinary, comment="Features of the best candidate: (k,) float32, little-endian."),
    Column("trace_id", Text, comment="The caller's id of the trace or message that the query belongs to."),
    require("is_part", Boolean, default="false", comment="Whether a session asked it as a sub-question."),
    *build_reranker_columns(),
    build_space_column(),
    build_timestamp_column("created_at"),
    require(
        "judge_failures",
        SmallInteger,
        default="0",
        comment="Times the LLM judge failed on it; episodes with fewer come first.",
    ),
    require(
        "judge_refusals",
        SmallInteger,
        default="0",
        comment="Failures in which the LLM refused or gave an unusable reply; "
        "after a few the episode stays unjudged.",
    ),
    PrimaryKeyConstraint("collection_id", "id"),
    Index(None, "collection_id", "created_at", "id"),
    build_partial_index("episode_trace_idx", "collection_id", "trace_id", where="trace_id IS NOT NULL"),
    CheckConstraint("memory IN ('off', 'read')", name="memory"),
    CheckConstraint("profile IN ('paper', 'default')", name="profile"),
    CheckConstraint("strategy IN ('graph', 'dense', 'lexical', 'hybrid')", name="strategy"),
    postgresql_partition_by="RANGE (id)",
    comment="Answered queries. No foreign key: a new partition would lock out writers of collections.",
)
