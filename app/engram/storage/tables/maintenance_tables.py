"""Table of the audit log."""

from sqlalchemy import TIMESTAMP, Column, Index, PrimaryKeyConstraint, SmallInteger, Table, Text

from engram.storage.tables.table_base import build_id_column, build_timestamp_column, metadata, require

# It refers to no other table: an entry outlives what it is about.
audit_log = Table(
    "audit_log",
    metadata,
    build_id_column(),
    build_timestamp_column("begun_at"),
    Column("ended_at", TIMESTAMP(timezone=True), comment="Null: the process was lost and the outcome is unknown."),
    require("principal", Text),
    require("tenant", Text),
    Column("client", Text, comment="The address that the request came from."),
    Column("request_id", Text),
    require("action", Text),
    require("target", Text, comment="The request's path, or the command's arguments."),
    Column("body", Text, comment="The beginning of the request's body."),
    Column("status", SmallInteger, comment="HTTP status of the response."),
    PrimaryKeyConstraint("id"),
    Index(None, "tenant", "id"),
    comment="Administrative acts: who did what, when, and with which outcome.",
)
