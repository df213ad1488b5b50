"""Sessions: questions that take several rounds, kept as long as answered queries are."""

from sqlalchemy import (
    ARRAY,
    REAL,
    TIMESTAMP,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Index,
    PrimaryKeyConstraint,
    SmallInteger,
    Table,
    Text,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import (
    build_collection_column,
    build_inherited_collection_column,
    build_parent_key,
    build_principal_column,
    build_timestamp_column,
    metadata,
    require,
)

session = Table(
    "session",
    metadata,
    build_collection_column(),
    require("id", Uuid, comment="A UUID of version 7."),
    Column("job_id", Uuid, comment="The job that runs it, or ran it last; null before the first."),
    build_principal_column(),
    Column("caller", Text, comment="The principal that asks for it; null: it asks itself."),
    require("trusted", Boolean, default="true", comment="Whether its judge counts in full."),
    Column("llm_tokens", BigInteger, comment="Tokens that a language model may use for the principal on a day."),
    Column(
        "readers", JSONB, comment="What the principal is among readers of passages; null: it sees all passages."
    ),
    require("question", Text),
    require("planner", Text),
    require("asked", JSONB, comment="Options of retrieving, stopping and answering."),
    require("budget", JSONB),
    require("status", Text, default="'running'"),
    Column("stop_reason", Text),
    require("rounds", SmallInteger, default="0"),
    require("cost", JSONB, default="'{}'"),
    require("ranked", ARRAY(BigInteger), default="'{}'", comment="Passages, best first."),
    Column("sufficiency", REAL, comment="Probability that the best passages hold all the evidence."),
    Column("covered", REAL, comment="Share of the question's requirements that the evidence pool meets."),
    require("notes", JSONB, default="'[]'", comment="The working memory."),
    require("plan_state", JSONB, default="'{}'", comment="The planner's own state."),
    Column("conclusion", JSONB, comment="The answer in words."),
    require("warnings", JSONB, default="'[]'"),
    build_timestamp_column("created_at"),
    build_timestamp_column("updated_at"),
    Column("finished_at", TIMESTAMP(timezone=True)),
    PrimaryKeyConstraint("collection_id", "id"),
    CheckConstraint("status IN ('running', 'stopped', 'cancelled', 'failed')", name="status"),
)

session_round = Table(
    "session_round",
    metadata,
    build_inherited_collection_column(),
    require("session_id", Uuid),
    require("number", SmallInteger),
    require("action", Text),
    require("said", JSONB, comment="Texts of the round, such as sub-question, gap, queries and answer."),
    require("episodes", ARRAY(Uuid), comment="Episodes of the round's queries, in their order."),
    require("curated", JSONB, comment="Counts of the sentences that sifting took into the pool or left out."),
    Column("sufficiency", REAL),
    Column("covered", REAL),
    require("cost", JSONB),
    require("warnings", JSONB, default="'[]'"),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "session_id", "number"),
    build_parent_key("session", "session_id"),
)

session_passage = Table(
    "session_passage",
    metadata,
    build_inherited_collection_column(),
    require("session_id", Uuid),
    require("passage_id", BigInteger),
    require("round", SmallInteger, comment="The first round that read the passage."),
    PrimaryKeyConstraint("collection_id", "session_id", "passage_id"),
    build_parent_key("session", "session_id"),
    Index("session_passage_read_idx", "collection_id", "passage_id"),
    comment="Passages that a session has read; deleting one of them deletes what the session made of it.",
)

session_evidence = Table(
    "session_evidence",
    metadata,
    build_inherited_collection_column(),
    require("session_id", Uuid),
    require("sentence_id", BigInteger),
    require("passage_id", BigInteger),
    require("place", SmallInteger, comment="Place in the order in which sentences came."),
    require("round", SmallInteger),
    Column(
        "query", SmallInteger, comment="Number of the query in its round; null: the caller brought the sentence."
    ),
    Column("gap", Text),
    Column("score", REAL),
    PrimaryKeyConstraint("collection_id", "session_id", "sentence_id"),
    build_parent_key("session", "session_id"),
    comment="The evidence pool: sentences by id, so that no pool has a text that was deleted.",
)

TABLES = (session, session_round, session_passage, session_evidence)
