"""Keys that evolve: expansion units, what verdicts say of them, evolved keys, and their generations."""

from pgvector.sqlalchemy import VECTOR
from sqlalchemy import (
    ARRAY,
    REAL,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Identity,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import build_timestamp_column, metadata, parent_key, tenant


def _build_collection_column() -> Column[int]:
    return Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False)


expansion_unit = Table(
    "expansion_unit",
    metadata,
    _build_collection_column(),
    Column("id", BigInteger, Identity(), nullable=False),
    Column("text_hash", LargeBinary, nullable=False),
    Column("method", Text, nullable=False, comment="Of the verdict that brought it first."),
    Column("text", Text, nullable=False),
    Column("embedding", VECTOR(), info={"storage": "MAIN"}, nullable=False),
    Column("terms", ARRAY(Text), nullable=False),
    Column("frequencies", ARRAY(REAL), nullable=False, comment="How often the unit has each of its terms."),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "text_hash"),
    comment="Expansion units that verdicts brought along, each text once.",
)

key_generation = Table(
    "key_generation",
    metadata,
    _build_collection_column(),
    Column("number", BigInteger, nullable=False, comment="1 for a collection's first evolution."),
    Column("parent", BigInteger, nullable=False, comment="The generation it went on from; 0 for base keys."),
    Column("active", Boolean, nullable=False, comment="Whether what it took in counts: false once rolled back."),
    Column("reason", Text, nullable=False),
    Column("rules", JSONB, nullable=False, comment="The constants its keys were composed with."),
    Column("events", BigInteger, nullable=False, comment="Events it took in."),
    Column("passages", BigInteger, nullable=False, comment="Keys it wrote."),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "number"),
    CheckConstraint("number > 0 AND parent >= 0 AND parent < number", name="number"),
    CheckConstraint("reason IN ('saturated', 'pending', 'requested')", name="reason"),
)

key_evidence = Table(
    "key_evidence",
    metadata,
    tenant(),
    Column("event_id", BigInteger, nullable=False),
    Column("gate", Text, nullable=False, comment="What validated the expansions; 'none': they were not."),
    Column(
        "gain", Float(53), nullable=False, comment="Highest gain of its pairs (ERM, Eq. 9); 0 if not validated."
    ),
    Column("strength", Float(53), nullable=False, comment="λ its gains were taken with."),
    Column("generation", BigInteger, comment="The evolution that took it in; null while it waits."),
    PrimaryKeyConstraint("collection_id", "event_id"),
    parent_key("feedback_event", "event_id"),
    Index("key_evidence_waiting_idx", "collection_id", "event_id", postgresql_where=text("generation IS NULL")),
    CheckConstraint("gate IN ('retrieval', 'generation', 'none')", name="gate"),
    comment="One row per event that carried expansions.",
)

key_credit = Table(
    "key_credit",
    metadata,
    tenant(),
    Column("event_id", BigInteger, nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("unit_id", BigInteger, nullable=False),
    Column("gain", Float(53), nullable=False, comment="Δ of ERM, Eq. 5."),
    Column("weight", Float(53), nullable=False, comment="w of ERM, Eq. 6; 0 where the gain is not positive."),
    PrimaryKeyConstraint("collection_id", "event_id", "passage_id", "unit_id"),
    parent_key("key_evidence", "event_id", references="event_id"),
    parent_key("passage", "passage_id"),
    parent_key("expansion_unit", "unit_id"),
    Index(None, "collection_id", "passage_id", "unit_id", "event_id"),
    Index(None, "collection_id", "unit_id", "event_id"),
    CheckConstraint("weight BETWEEN 0 AND 1", name="weight"),
    comment="What each event says of each (passage, unit): scores are sums over these.",
)

expansion_memory = Table(
    "expansion_memory",
    metadata,
    tenant(),
    Column("passage_id", BigInteger, nullable=False),
    Column("unit_id", BigInteger, nullable=False),
    Column("score", Float(53), nullable=False, comment="s of ERM, Eq. 7."),
    PrimaryKeyConstraint("collection_id", "passage_id", "unit_id"),
    parent_key("passage", "passage_id"),
    parent_key("expansion_unit", "unit_id"),
    Index(None, "collection_id", "unit_id"),
    CheckConstraint("score > 0", name="score"),
    postgresql_with={"fillfactor": "70"},
    comment="u of ERM: a passage's best units, as many as the capacity allows.",
)

passage_key = Table(
    "passage_key",
    metadata,
    tenant(),
    Column("passage_id", BigInteger, nullable=False),
    Column("generation", BigInteger, nullable=False, comment="The latest evolution that it holds evidence of."),
    Column("vector", VECTOR(), info={"storage": "MAIN"}, nullable=False),
    Column("units", ARRAY(BigInteger), nullable=False, comment="What it is composed of, best first."),
    Column("scores", ARRAY(Float(53)), nullable=False),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "passage_id"),
    parent_key("passage", "passage_id"),
    postgresql_with={"fillfactor": "70"},
    comment="Evolved keys as they are searched; a passage without a row has its base key.",
)

evolved_posting = Table(
    "evolved_posting",
    metadata,
    tenant(),
    Column("term", Text, nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("base", REAL, nullable=False, comment="How often the base key has the term."),
    Column("frequency", REAL, nullable=False, comment="How often the evolved key has it."),
    Column("length", REAL, nullable=False, comment="The passage's length in terms, by its base key."),
    PrimaryKeyConstraint("collection_id", "term", "passage_id", postgresql_include=["base", "frequency", "length"]),
    parent_key("passage", "passage_id"),
    Index(None, "collection_id", "passage_id"),
    CheckConstraint("frequency > base AND base >= 0", name="frequency"),
    comment="Terms that evolution added to lexical keys; what base keys hold stays in lexical_posting.",
)

key_evolution = Table(
    "key_evolution",
    metadata,
    Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False),
    Column("batch_events", Integer, nullable=False, server_default=text("0"), comment="In the open batch."),
    Column("batch_gain", Float(53), nullable=False, server_default=text("0")),
    Column("best_gain", Float(53), nullable=False, server_default=text("0")),
    Column("stale_batches", Integer, nullable=False, server_default=text("0")),
    Column("waiting", BigInteger, nullable=False, server_default=text("0"), comment="Events not taken in yet."),
    Column("due", Text, comment="Why an evolution is due; null if none is."),
    Column(
        "keys_version",
        Uuid,
        nullable=False,
        server_default=text("gen_random_uuid()"),
        comment="Another one with each change of evolved keys.",
    ),
    PrimaryKeyConstraint("collection_id"),
    CheckConstraint("due IN ('saturated', 'pending')", name="due"),
    comment="How far a collection's batches have come (ERM, Eqs. 9-10). Its row is the lock on all key state.",
)

staged_key = Table(
    "staged_key",
    metadata,
    tenant(),
    Column("job_id", Uuid, nullable=False),
    Column("passage_id", BigInteger, nullable=False),
    Column("content_hash", LargeBinary, nullable=False),
    Column("embedding", VECTOR(), info={"storage": "MAIN"}, nullable=False),
    PrimaryKeyConstraint("collection_id", "job_id", "passage_id"),
    parent_key("job", "job_id"),
    parent_key("passage", "passage_id"),
    Index(None, "collection_id", "passage_id"),
    comment="Base keys of a re-key job, until all are there and take the old ones' place.",
)
