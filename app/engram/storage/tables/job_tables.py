"""Work that waits: jobs, and first answers of keyed writes."""

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import (
    build_collection_column,
    build_partial_index,
    build_principal_column,
    build_timestamp_column,
    metadata,
    require,
)

OPEN = "status IN ('queued', 'running')"

# No index has a column that a heartbeat or a batch changes, so that both are HOT.
job = Table(
    "job",
    metadata,
    build_collection_column(),
    require("id", Uuid),
    Column("number", BigInteger, Identity(), nullable=False, comment="The order in which jobs came."),
    require("kind", Text),
    require("lane", Text, comment="Jobs of one lane of a collection are done one by one, in their order."),
    require(
        "single", Boolean, default="false", comment="Whether a collection has at most one open job of its kind."
    ),
    require("payload", JSONB, default="'{}'", comment="The request."),
    require("status", Text),
    Column("stage", Text, comment="The current stage of a job with several stages."),
    require("received", BigInteger, default="0"),
    require("created", BigInteger, default="0"),
    require("updated", BigInteger, default="0"),
    require("unchanged", BigInteger, default="0"),
    require("rejected", BigInteger, default="0"),
    require(
        "position",
        BigInteger,
        default="0",
        comment="The last id done by a job that takes rows in order of their ids.",
    ),
    Column("result", JSONB, comment="The result of a job that succeeded, beside its counts."),
    require("attempts", Integer, default="0"),
    Column("error", Text),
    Column("claimant", Uuid, comment="The worker that runs the job."),
    Column("claimed_at", TIMESTAMP(timezone=True)),
    require(
        "due_at",
        TIMESTAMP(timezone=True),
        default="now()",
        comment="When the job may be claimed; for a running job, the end of its lease.",
    ),
    Column("cancel_requested_at", TIMESTAMP(timezone=True)),
    build_timestamp_column("created_at"),
    build_timestamp_column("updated_at"),
    Column("finished_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("collection_id", "id"),
    Index("job_number_idx", "collection_id", "number", unique=True),
    build_partial_index("job_open_idx", "collection_id", "lane", "number", where=OPEN),
    Index("job_turn_idx", "collection_id", "lane", "claimed_at"),
    build_partial_index("job_receiving_idx", "collection_id", where="status = 'receiving'"),
    # Claims keep to both rules; these indexes hold even for two claims that do not see each other.
    build_partial_index("job_running_idx", "collection_id", "lane", where="status = 'running'", unique=True),
    build_partial_index("job_single_idx", "collection_id", "kind", where=f"single AND {OPEN}", unique=True),
    CheckConstraint(
        "status IN ('receiving', 'queued', 'running', 'succeeded', 'failed', 'cancelled')", name="status"
    ),
)

idempotency = Table(
    "idempotency",
    metadata,
    build_collection_column(),
    build_principal_column("The principal who made the request; each principal has keys of its own."),
    require("key", Text),
    require("body_hash", LargeBinary),
    require("answer", JSONB),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "principal", "key"),
    comment="First answers of keyed writes other than feedback, whose log keeps its own keys.",
)
