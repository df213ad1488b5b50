"""Evolved keys as queries read them, and base keys of re-key jobs."""

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    CheckConstraint,
    Double,
    Index,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    Uuid,
)

from engram.storage.tables.table_base import (
    build_collection_column,
    build_inherited_collection_column,
    build_parent_key,
    build_timestamp_column,
    build_vector_column,
    metadata,
    require,
)

passage_key = Table(
    "passage_key",
    metadata,
    build_inherited_collection_column(),
    require("passage_id", BigInteger),
    require("generation", BigInteger, comment="The latest generation whose evidence the key holds."),
    build_vector_column("vector"),
    require("units", ARRAY(BigInteger), comment="The expansion units of the key, best first."),
    require("scores", ARRAY(Double)),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "passage_id"),
    build_parent_key("passage", "passage_id"),
    postgresql_with={"fillfactor": "70"},
    comment="Evolved keys as they are searched; a passage without a row has its base key.",
)

evolved_posting = Table(
    "evolved_posting",
    metadata,
    build_inherited_collection_column(),
    require("term", Text),
    require("passage_id", BigInteger),
    require("base", REAL, comment="How often the base key has the term."),
    require("frequency", REAL, comment="How often the evolved key has the term."),
    require("length", REAL, comment="The passage's length in terms, by its base key."),
    PrimaryKeyConstraint("collection_id", "term", "passage_id", postgresql_include=["base", "frequency", "length"]),
    build_parent_key("passage", "passage_id"),
    Index(None, "collection_id", "passage_id"),
    CheckConstraint("frequency > base AND base >= 0", name="frequency"),
    comment="Terms that evolution added to lexical keys; terms of base keys are in lexical_posting.",
)

staged_key = Table(
    "staged_key",
    metadata,
    build_inherited_collection_column(),
    require("job_id", Uuid),
    require("passage_id", BigInteger),
    require("content_hash", LargeBinary),
    build_vector_column("embedding"),
    PrimaryKeyConstraint("collection_id", "job_id", "passage_id"),
    build_parent_key("job", "job_id"),
    build_parent_key("passage", "passage_id"),
    Index(None, "collection_id", "passage_id"),
    comment="Base keys of a re-key job, which replace the old ones once all are there.",
)

evolved_key_version = Table(
    "evolved_key_version",
    metadata,
    build_collection_column(),
    require("version", Uuid, comment="A new value after each change of evolved keys."),
    PrimaryKeyConstraint("collection_id"),
    comment="Version of a collection's evolved keys: what a process keeps of an earlier one is stale.",
)
