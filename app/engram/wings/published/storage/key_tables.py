"""Expansion units, what verdicts say of them, and generations of evolved keys."""

from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.passage_key_tables import evolved_key_version, evolved_posting, passage_key
from engram.storage.tables.table_base import (
    SENT_TEXT,
    build_collection_column,
    build_id_column,
    build_inherited_collection_column,
    build_parent_key,
    build_partial_index,
    build_timestamp_column,
    build_vector_column,
    metadata,
    require,
)
from engram.wings.published.storage.memory_tables import sentence_memory

expansion_unit = Table(
    "expansion_unit",
    metadata,
    build_collection_column(),
    build_id_column(),
    require("text_hash", LargeBinary),
    require("method", Text, comment="Method of the first verdict that brought the unit."),
    require("text", Text),
    build_vector_column("embedding"),
    require("terms", ARRAY(Text)),
    require("frequencies", ARRAY(REAL), comment="How often the unit has each of its terms."),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "text_hash"),
    comment="Expansion units that verdicts brought, each text once.",
    info={SENT_TEXT: "text"},
)

key_generation = Table(
    "key_generation",
    metadata,
    build_collection_column(),
    require("number", BigInteger, comment="1 for a collection's first evolution."),
    require("parent", BigInteger, comment="The generation that it started from; 0 for base keys."),
    require("active", Boolean, comment="Whether its evidence counts; false after a rollback."),
    require("reason", Text),
    require("rules", JSONB, comment="The constants that its keys were composed with."),
    require("events", BigInteger, comment="Number of events that it applied."),
    require("passages", BigInteger, comment="Number of keys that it wrote."),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "number"),
    CheckConstraint("number > 0 AND parent >= 0 AND parent < number", name="number"),
    CheckConstraint("reason IN ('saturated', 'pending', 'requested')", name="reason"),
)

key_evidence = Table(
    "key_evidence",
    metadata,
    build_inherited_collection_column(),
    require("event_id", BigInteger),
    require("gate", Text, comment="What validated the expansions; none: nothing did."),
    require("gain", Double, comment="Highest gain of its pairs (ERM, Eq. 9); 0 if not validated."),
    require("strength", Double, comment="λ of its gains."),
    Column("generation", BigInteger, comment="The generation that applied it; null while it waits."),
    PrimaryKeyConstraint("collection_id", "event_id"),
    build_parent_key("feedback_event", "event_id"),
    build_partial_index("key_evidence_waiting_idx", "collection_id", "event_id", where="generation IS NULL"),
    CheckConstraint("gate IN ('retrieval', 'generation', 'none')", name="gate"),
    comment="One row for each event that carried expansions.",
)

key_credit = Table(
    "key_credit",
    metadata,
    build_inherited_collection_column(),
    require("event_id", BigInteger),
    require("passage_id", BigInteger),
    require("unit_id", BigInteger),
    require("gain", Double, comment="Δ of ERM, Eq. 5."),
    require("weight", Double, comment="w of ERM, Eq. 6; 0 where the gain is not positive."),
    PrimaryKeyConstraint("collection_id", "event_id", "passage_id", "unit_id"),
    build_parent_key("key_evidence", "event_id", parent_column="event_id"),
    build_parent_key("expansion_unit", "unit_id"),
    Index(None, "collection_id", "passage_id", "unit_id", "event_id"),
    Index(None, "collection_id", "unit_id", "event_id"),
    CheckConstraint("weight BETWEEN 0 AND 1", name="weight"),
    comment="What an event adds to a passage and an expansion unit; scores are sums over these rows. "
    "Rows outlive their passage, which has them again if it returns.",
)

expansion_memory = Table(
    "expansion_memory",
    metadata,
    build_inherited_collection_column(),
    require("passage_id", BigInteger),
    require("unit_id", BigInteger),
    require("score", Double, comment="s of ERM, Eq. 7."),
    PrimaryKeyConstraint("collection_id", "passage_id", "unit_id"),
    build_parent_key("passage", "passage_id"),
    build_parent_key("expansion_unit", "unit_id"),
    Index(None, "collection_id", "unit_id"),
    CheckConstraint("score > 0", name="score"),
    postgresql_with={"fillfactor": "70"},
    comment="u of ERM: a passage's best units, as many as the capacity allows.",
)

key_evolution = Table(
    "key_evolution",
    metadata,
    build_collection_column(),
    require("batch_events", Integer, default="0", comment="Events in the open batch."),
    require("batch_gain", Double, default="0", comment="Highest alignment gain in the open batch."),
    require(
        "best_gain", Double, default="0", comment="Highest batch_gain of a full batch since the last evolution."
    ),
    require("stale_batches", Integer, default="0", comment="Full batches in a row without a better gain."),
    require("waiting", BigInteger, default="0", comment="Events that no generation has applied yet."),
    Column("due", Text, comment="Why an evolution is due; null if none is."),
    require(
        "behind",
        Boolean,
        default="false",
        comment="Whether applied verdicts may not have taught memories and keys yet.",
    ),
    PrimaryKeyConstraint("collection_id"),
    CheckConstraint("due IN ('saturated', 'pending')", name="due"),
    comment="State of a collection's batches (ERM, Eqs. 9-10). Its row is the lock on all key state.",
)

TABLES = (
    expansion_unit,
    key_generation,
    key_evidence,
    key_credit,
    expansion_memory,
    key_evolution,
    sentence_memory,
    passage_key,
    evolved_posting,
    evolved_key_version,
)
"""What the wing writes; the last three are the core's, which searches by keys alone read."""
