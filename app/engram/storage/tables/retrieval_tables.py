"""Tables of answered queries, as ids and numbers, partitioned by week."""

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import metadata, now, space, tenant

episode = Table(
    "episode",
    metadata,
    tenant(),
    Column("id", Uuid, nullable=False, comment="Of version 7: its time decides on the partition."),
    Column("question", Text, nullable=False),
    Column("embedding", VECTOR(), nullable=False),
    Column("time_constraint", Text),
    Column("time_embedding", VECTOR()),
    Column("memory", Text, nullable=False),
    Column("profile", Text, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("filter", JSONB, comment="What metadata its passages had to have."),
    Column("activated", ARRAY(BigInteger), nullable=False, comment="Sentences selected in any hop."),
    Column("shown", ARRAY(BigInteger), nullable=False, comment="The answer's passages, in order."),
    Column("explored", ARRAY(BigInteger), comment="Passages that exploration put into the answer."),
    Column("hops", SmallInteger, nullable=False),
    Column("total_ms", REAL, nullable=False),
    Column("arm", Text, comment="Given by the collection's experiment."),
    Column("principal", Text, nullable=False, server_default=text("'local'"), comment="Whose request it was."),
    Column("answer", JSONB, nullable=False, comment="What was answered, without the texts."),
    Column("trace", JSONB, nullable=False, comment="How it came about, without the texts."),
    Column("ranked", ARRAY(BigInteger), comment="Best candidates; null where features alone did not rank."),
    Column("features", LargeBinary, comment="Of the candidates: (n, k) float32, little-endian, row by row."),
    Column(
        "answer_features",
        LargeBinary,
        comment="Features of the answer: (k,) float32; the first of ranked were shown.",
    ),
    Column("trace_id", Text, comment="The caller's id of the trace or message that the query belongs to."),
    space(),
    now("created_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    Index(None, "collection_id", "created_at", "id"),
    Index("episode_trace_idx", "collection_id", "trace_id", postgresql_where=text("trace_id IS NOT NULL")),
    CheckConstraint("memory IN ('off', 'read')", name="memory"),
    CheckConstraint("profile IN ('paper', 'default')", name="profile"),
    CheckConstraint("strategy IN ('graph', 'dense', 'lexical', 'hybrid')", name="strategy"),
    postgresql_partition_by="RANGE (id)",
    comment="No foreign key: a new week's partition would lock out who writes to collections.",
)
