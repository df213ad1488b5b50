"""Work that waits: jobs, and first answers of keyed writes."""

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import build_timestamp_column, metadata

OPEN = "status IN ('queued', 'running')"

# No index has a column that a beat or a batch changes, so that both are HOT.
job = Table(
    "job",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("id", Uuid, nullable=False),
    Column("number", BigInteger, Identity(), nullable=False, comment="The order in which jobs came."),
    Column("kind", Text, nullable=False),
    Column(
        "lane",
        Text,
        nullable=False,
        comment="Jobs of a collection's lane are done one by one, in their order.",
    ),
    Column(
        "single",
        Boolean,
        nullable=False,
        server_default=text("false"),
        comment="At most one of its kind is open in a collection.",
    ),
    Column("payload", JSONB, nullable=False, server_default=text("'{}'"), comment="What is asked for."),
    Column("status", Text, nullable=False),
    Column("stage", Text, comment="What a job that has several stages is at."),
    Column("received", BigInteger, nullable=False, server_default=text("0")),
    Column("created", BigInteger, nullable=False, server_default=text("0")),
    Column("updated", BigInteger, nullable=False, server_default=text("0")),
    Column("unchanged", BigInteger, nullable=False, server_default=text("0")),
    Column("rejected", BigInteger, nullable=False, server_default=text("0")),
    Column(
        "position",
        BigInteger,
        nullable=False,
        server_default=text("0"),
        comment="The id after which a job that takes rows in order goes on.",
    ),
    Column("result", JSONB, comment="What a job that succeeded has to say beyond counts."),
    Column("attempts", Integer, nullable=False, server_default=text("0")),
    Column("error", Text),
    Column("claimant", Uuid, comment="Of a running job: who has it in hand."),
    Column("claimed_at", TIMESTAMP(timezone=True)),
    Column(
        "due_at",
        TIMESTAMP(timezone=True),
        nullable=False,
        server_default=text("now()"),
        comment="When it may be claimed: of a running job, the end of its claimant's lease.",
    ),
    Column("cancel_requested_at", TIMESTAMP(timezone=True)),
    build_timestamp_column("created_at"),
    build_timestamp_column("updated_at"),
    Column("finished_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("collection_id", "id"),
    Index("job_number_idx", "collection_id", "number", unique=True),
    Index("job_open_idx", "collection_id", "lane", "number", postgresql_where=text(OPEN)),
    Index("job_turn_idx", "collection_id", "lane", "claimed_at"),
    Index("job_receiving_idx", "collection_id", postgresql_where=text("status = 'receiving'")),
    # What the claim sees to, also of two claims that do not see each other.
    Index("job_running_idx", "collection_id", "lane", unique=True, postgresql_where=text("status = 'running'")),
    Index("job_single_idx", "collection_id", "kind", unique=True, postgresql_where=text(f"single AND {OPEN}")),
    CheckConstraint(
        "status IN ('receiving', 'queued', 'running', 'succeeded', 'failed', 'cancelled')", name="status"
    ),
)

idempotency = Table(
    "idempotency",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column(
        "principal",
        Text,
        nullable=False,
        server_default=text("'local'"),
        comment="Whose request it was: keys of others say nothing.",
    ),
    Column("key", Text, nullable=False),
    Column("body_hash", LargeBinary, nullable=False),
    Column("answer", JSONB, nullable=False),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "principal", "key"),
    comment="First answers of keyed writes other than feedback, whose log keeps its own keys.",
)
