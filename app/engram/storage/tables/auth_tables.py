"""Tables of tenants, which own collections, and of access keys."""

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Date,
    ForeignKey,
    Identity,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import build_timestamp_column, metadata

tenant_table = Table(
    "tenant",
    metadata,
    Column("name", Text, primary_key=True),
    Column("passages", BigInteger, comment="Quotas, null for the default: how many it may hold,"),
    Column("queries", BigInteger, comment="and, of a day (UTC), how many it may ask,"),
    Column("verdicts", BigInteger, comment="give,"),
    Column("llm_tokens", BigInteger, comment="have a language model read and write,"),
    Column("jobs", BigInteger, comment="and, at any time, how many jobs may be open."),
    Column("judges", BigInteger, comment="And how many may give verdicts, or have something set."),
    Column("collections", BigInteger, comment="How many collections it may have,"),
    Column("keys", BigInteger, comment="access keys that count,"),
    Column("sessions", BigInteger, comment="and, of a day (UTC), how many sessions it may start,"),
    Column("facts", BigInteger, comment="and how many facts it may state by itself."),
    Column("closed_at", TIMESTAMP(timezone=True), comment="It is being removed: nobody is of it any more."),
    build_timestamp_column("created_at"),
    *(
        CheckConstraint(f"{name} >= 0", name=name)
        for name in (
            "passages",
            "queries",
            "verdicts",
            "llm_tokens",
            "jobs",
            "judges",
            "collections",
            "keys",
            "sessions",
            "facts",
        )
    ),
    comment="Owners of collections, judges and keys.",
)

access_key = Table(
    "access_key",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("tenant", Text, ForeignKey("tenant.name", ondelete="CASCADE"), nullable=False),
    Column("name", Text, nullable=False, comment="Of the principal; keys that follow each other share it."),
    Column("judge", Text, nullable=False, comment="Whose verdicts come with it."),
    Column("trusted", Boolean, nullable=False, comment="Whether its judge counts in full from the beginning."),
    Column("digest", LargeBinary, nullable=False, comment="SHA-256 of the key, which is stored nowhere."),
    Column("hint", Text, nullable=False, comment="The key's last characters."),
    Column("scopes", JSONB, nullable=False, comment="Collection, * for all -> what is allowed there."),
    Column(
        "llm_tokens",
        BigInteger,
        comment="What a language model may read and write on a day; null: no bound.",
    ),
    build_timestamp_column("created_at"),
    Column("expires_at", TIMESTAMP(timezone=True)),
    Column("revoked_at", TIMESTAMP(timezone=True)),
    UniqueConstraint("digest"),
    Index(None, "tenant", "name"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    CheckConstraint("llm_tokens >= 0", name="llm_tokens"),
    comment="Keys that requests are made with.",
)

quota_usage = Table(
    "quota_usage",
    metadata,
    Column("tenant", Text, ForeignKey("tenant.name", ondelete="CASCADE"), nullable=False),
    Column("principal", Text, nullable=False, comment="Whose; empty: of the whole tenant."),
    Column("day", Date, nullable=False, comment="UTC."),
    Column("kind", Text, nullable=False),
    Column("amount", BigInteger, nullable=False),
    PrimaryKeyConstraint("tenant", "principal", "day", "kind"),
    CheckConstraint("kind IN ('queries', 'verdicts', 'llm_tokens', 'sessions', 'facts')", name="kind"),
    comment="Use of quotas per day.",
)
