"""Tables of tenants, which own collections, and of access keys."""

from sqlalchemy import (
    ARRAY,
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

from engram.storage.tables.table_base import build_timestamp_column, metadata, require

_QUOTAS = {
    "passages": "Passages that the tenant may hold.",
    "queries": "Queries on a day (UTC).",
    "verdicts": "Verdicts on a day (UTC).",
    "llm_tokens": "Tokens that a language model may read and write on a day (UTC).",
    "jobs": "Jobs that may be open at a time.",
    "judges": "Judges that may give verdicts or have settings.",
    "collections": "Collections that the tenant may have.",
    "keys": "Access keys that may be valid at a time.",
    "sessions": "Sessions that may start on a day (UTC).",
    "facts": "Facts that callers may state on a day (UTC).",
}

tenant_table = Table(
    "tenant",
    metadata,
    Column("name", Text, primary_key=True),
    *(Column(name, BigInteger, comment=comment) for name, comment in _QUOTAS.items()),
    Column("closed_at", TIMESTAMP(timezone=True), comment="When its removal began; nobody can use it any more."),
    build_timestamp_column("created_at"),
    *(CheckConstraint(f"{name} >= 0", name=name) for name in _QUOTAS),
    comment="Owners of collections, judges and keys, with their quotas; a null quota is the default.",
)

access_key = Table(
    "access_key",
    metadata,
    Column("id", BigInteger, Identity(), primary_key=True),
    Column("tenant", Text, ForeignKey("tenant.name", ondelete="CASCADE"), nullable=False),
    require("name", Text, comment="The principal's name; a key and its successors share it."),
    require("judge", Text, comment="The judge under whose name its verdicts count."),
    require("trusted", Boolean, comment="Whether its judge counts in full from the beginning."),
    require("digest", LargeBinary, comment="SHA-256 of the key; the key itself is not stored."),
    require("hint", Text, comment="The key's last characters."),
    require("scopes", JSONB, comment="Scopes by collection; * stands for every collection."),
    Column(
        "llm_tokens",
        BigInteger,
        comment="Tokens that a language model may read and write on a day; null: no bound.",
    ),
    build_timestamp_column("created_at"),
    Column("expires_at", TIMESTAMP(timezone=True)),
    Column("revoked_at", TIMESTAMP(timezone=True)),
    require("reads_as", ARRAY(Text), default="'{}'", comment="What it is among the readers of passages."),
    UniqueConstraint("digest"),
    Index(None, "tenant", "name"),
    CheckConstraint("octet_length(digest) = 32", name="digest"),
    CheckConstraint("llm_tokens >= 0", name="llm_tokens"),
    comment="Access keys, with which requests prove who makes them.",
)

quota_usage = Table(
    "quota_usage",
    metadata,
    Column("tenant", Text, ForeignKey("tenant.name", ondelete="CASCADE"), nullable=False),
    require("principal", Text, comment="The principal who used it; empty: the whole tenant."),
    require("day", Date, comment="Day in UTC."),
    require("kind", Text),
    require("amount", BigInteger),
    PrimaryKeyConstraint("tenant", "principal", "day", "kind"),
    CheckConstraint("kind IN ('queries', 'verdicts', 'llm_tokens', 'sessions', 'facts')", name="kind"),
    comment="Use of quotas per day.",
)
