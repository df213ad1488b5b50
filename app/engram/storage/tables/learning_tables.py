"""Tables of questions and learning: supports and weights. Their log is in ``feedback_log_tables``."""

from sqlalchemy import (
    ARRAY,
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
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.table_base import (
    SENT_TEXT,
    build_collection_column,
    build_id_column,
    build_inherited_collection_column,
    build_parent_key,
    build_timestamp_column,
    build_vector_column,
    metadata,
    require,
)


def build_gain_budget_column() -> Column[object]:
    """Build the column of a state's gain budget."""
    return require(
        "gain_budgets",
        JSONB,
        default="'{}'",
        comment="The last day on which the state moved, and the share that each judge left unmoved on it (1: all).",
    )


question = Table(
    "question",
    metadata,
    build_collection_column(),
    build_id_column(),
    require("text_hash", LargeBinary),
    require("text", Text),
    build_vector_column("embedding"),
    build_timestamp_column("created_at"),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "text_hash"),
    comment="Questions that verdicts were given for; rows are only inserted.",
    info={SENT_TEXT: "text"},
)

question_memory = Table(
    "question_memory",
    metadata,
    build_collection_column(),
    require("version", Uuid, comment="A new value whenever the questions are to be sampled anew."),
    require("sampled_until", BigInteger, default="0", comment="The newest question that may be sampled."),
    require(
        "changes_left",
        BigInteger,
        default="0",
        comment="Questions that verdicts may still change before the questions are sampled anew.",
    ),
    require(
        "question_generation",
        BigInteger,
        default="0",
        comment="Generation of the question encoder that verdicts taught; 0: the encoder as it is.",
    ),
    PrimaryKeyConstraint("collection_id"),
    comment="Version of a collection's sample of judged questions: what was measured on an earlier one is stale.",
)

question_support = Table(
    "question_support",
    metadata,
    build_inherited_collection_column(),
    require("question_id", BigInteger),
    require("sentence_id", BigInteger),
    require("support", Double),
    require("perplexity", Double),
    require("acceptance", Double, comment="How surely judges accept the sentence; it counts against rejections."),
    require("update_count", Integer),
    require("complete", Boolean, comment="Whether the last verdict claimed to name all evidence."),
    require(
        "answered",
        Double,
        default="0",
        comment="Highest sufficiency of the answers whose verdicts supported the sentence.",
    ),
    require(
        "sufficiency",
        Double,
        default="0",
        comment="Sufficiency of an answer in which all evidence of the question leads.",
    ),
    build_gain_budget_column(),
    require(
        "judge_statements",
        JSONB,
        default="'[]'",
        comment="For each text that the sentence had, each judge's last word: 1 for support, 0 for rejection.",
    ),
    PrimaryKeyConstraint("collection_id", "question_id", "sentence_id"),
    build_parent_key("question", "question_id"),
    build_parent_key("sentence", "sentence_id"),
    Index(None, "collection_id", "sentence_id"),
    CheckConstraint("perplexity BETWEEN 0 AND 1", name="perplexity"),
    postgresql_with={"fillfactor": "70"},
    comment="How surely a sentence supports a question; the question memory reads it.",
)

learned_weights = Table(
    "learned_weights",
    metadata,
    build_collection_column(),
    require("model", Text, comment="The model whose weights the belief is about."),
    require("prior", Text, comment="Fingerprint of the prior that the sums add to."),
    require("information", ARRAY(Double)),
    require("precision", ARRAY(Double), comment="(k, k), row by row."),
    require("events", BigInteger, default="0"),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "model", "prior"),
    comment="What verdicts taught about a model's weights: the sum of the events' terms.",
)

judge = Table(
    "judge",
    metadata,
    build_collection_column(),
    require("name", Text),
    Column("observation_noise_positive", Double),
    Column("observation_noise_negative", Double),
    Column("daily_share", Double),
    Column("contested_share", Double),
    Column("daily_weight_verdicts", Integer),
    Column("trusted", Boolean, comment="Whether the judge counts in full, whoever sends its verdicts."),
    build_timestamp_column("updated_at"),
    PrimaryKeyConstraint("collection_id", "name"),
    CheckConstraint("observation_noise_positive > 0", name="observation_noise_positive"),
    CheckConstraint("observation_noise_negative > 0", name="observation_noise_negative"),
    CheckConstraint("daily_share BETWEEN 0 AND 1", name="daily_share"),
    CheckConstraint("contested_share BETWEEN 0 AND 1", name="contested_share"),
    CheckConstraint("daily_weight_verdicts >= 0", name="daily_weight_verdicts"),
    comment="Settings of single judges; null: the setting that holds for every judge.",
)
