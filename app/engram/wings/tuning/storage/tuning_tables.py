"""Tables of tuned question encoders: attempts, the verdicts behind each kept adapter, and states."""

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import (
    build_collection_column,
    build_inherited_collection_column,
    build_parent_key,
    build_partial_index,
    build_timestamp_column,
    metadata,
    require,
)

tuning_generation = Table(
    "tuning_generation",
    metadata,
    build_collection_column(),
    require(
        "number",
        BigInteger,
        comment="1 for a collection's first attempt; a reset begins no new count.",
    ),
    Column("adapter", LargeBinary, comment="The adapter's maps; null if it was refused or withdrawn."),
    require("encoder_fingerprint", Text, comment="Fingerprint of the encoder that it was learned for."),
    require("accepted", Boolean, comment="Whether held-out verdicts accepted it."),
    require("reason", Text, comment="The decision in words."),
    require("figures", JSONB, comment="What held-out verdicts said; empty if nothing was learned."),
    require("judged_count", BigInteger, comment="Judged questions of the collection at the time."),
    require("question_count", Integer, comment="Judged questions that it was learned from."),
    require("verdict_count", Integer, comment="Verdicts behind these."),
    Column("lender_id", BigInteger, comment="Collection whose verdicts taught it; null: its own did."),
    Column("lent_number", BigInteger, comment="Generation of that collection whose adapter it is."),
    build_timestamp_column("created_at"),
    Column("withdrawn_at", TIMESTAMP(timezone=True), comment="When it was withdrawn; null if it was not."),
    PrimaryKeyConstraint("collection_id", "number"),
    CheckConstraint("number > 0", name="number"),
    CheckConstraint("(lender_id IS NULL) = (lent_number IS NULL)", name="loan"),
    build_partial_index("tuning_generation_loan_idx", "lender_id", "lent_number", where="lender_id IS NOT NULL"),
    comment="Attempts to tune a collection's question encoder, accepted or not.",
)

tuning_verdict = Table(
    "tuning_verdict",
    metadata,
    build_inherited_collection_column(),
    require("generation", BigInteger),
    require("event_id", BigInteger),
    PrimaryKeyConstraint("collection_id", "generation", "event_id"),
    build_parent_key("tuning_generation", "generation", parent_column="number"),
    build_parent_key("feedback_event", "event_id"),
    Index(None, "collection_id", "event_id"),
    comment="Verdicts that a generation with an adapter was learned from.",
)

tuning_state = Table(
    "tuning_state",
    metadata,
    build_collection_column(),
    require("is_on", Boolean, default="true", comment="Whether the collection may be tuned."),
    require("last_number", BigInteger, default="0", comment="Number of its latest generation; outlives a reset."),
    PrimaryKeyConstraint("collection_id"),
    comment="Collections whose tuning was tried or switched.",
)

TABLES = (tuning_generation, tuning_verdict, tuning_state)
