"""The log of verdicts: what was judged, what was said of it, by what it was applied, and what it then did.

It refers to collections alone. Answers may be deleted, and sentences and passages with the corpus: the log is
history, and everything learned can be computed from it again.
"""

from sqlalchemy import (
    ARRAY,
    TIMESTAMP,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Sequence,
    SmallInteger,
    Table,
    Text,
    UniqueConstraint,
    Uuid,
)
from sqlalchemy.dialects.postgresql import JSONB

from engram.storage.tables.retrieval_tables import (
    build_question_columns,
    build_reranker_columns,
    build_teaching_columns,
)
from engram.storage.tables.table_base import (
    NOBODY,
    build_collection_column,
    build_id_column,
    build_inherited_collection_column,
    build_parent_key,
    build_partial_index,
    build_principal_column,
    build_space_column,
    build_timestamp_column,
    metadata,
    require,
)

judged_query = Table(
    "judged_query",
    metadata,
    build_collection_column(),
    require("id", Uuid, comment="Id of the answered query."),
    *build_question_columns(),
    require("profile", Text),
    Column("filter", JSONB, comment="Metadata that the passages had to have."),
    require("activated", ARRAY(BigInteger), comment="Sentences selected in any hop."),
    require("answered_at", TIMESTAMP(timezone=True), comment="Tells which texts of its sentences were judged."),
    *build_teaching_columns(),
    Column(
        "sufficiency",
        Double,
        comment="Probability that the first five passages of the answer held all the evidence; null: unknown.",
    ),
    *build_reranker_columns(),
    build_space_column(),
    build_principal_column("The principal who asked."),
    PrimaryKeyConstraint("collection_id", "id"),
    CheckConstraint("profile IN ('paper', 'default')", name="profile"),
    comment="Answered queries as their verdicts need them, copied with the first verdict.",
)

feedback_event = Table(
    "feedback_event",
    metadata,
    build_inherited_collection_column(),
    build_id_column(),
    require("query_id", Uuid),
    require("idempotency_key", Text),
    require("body_hash", LargeBinary),
    require("judge", Text),
    build_principal_column(),
    require(
        "trusted", Boolean, default="true", comment="Whether the principal's access makes the judge count in full."
    ),
    require("version", SmallInteger, comment="Format version of the verdict; other versions are refused."),
    require("partial", Boolean),
    Column("retrieval_success", Boolean),
    Column("generation_success", Boolean),
    Column("generation_score", Double),
    require("confidence", Double),
    require(
        "spared",
        ARRAY(BigInteger),
        comment="Sentences of passages that helped as a whole, where it is unknown which sentences did.",
    ),
    require("status", Text, default="'pending'"),
    require("attempts", Integer, default="0"),
    Column("error", Text),
    build_timestamp_column("received_at"),
    Column("applied_at", TIMESTAMP(timezone=True)),
    Column("applied_sequence", BigInteger, comment="Order of application; replay follows it."),
    Column("question_id", BigInteger, comment="The question that it taught; null until it is applied."),
    Column("observation_noise_positive", Double, comment="R that its supports were applied with."),
    Column("observation_noise_negative", Double, comment="R that its rejections were applied with."),
    Column("process_noise", Double, comment="Q that it was applied with."),
    Column("daily_share", Double, comment="The judge's daily cap when it was applied."),
    Column("contested_share", Double, comment="The judge's cap against other judges when it was applied."),
    Column(
        "daily_weight_verdicts",
        Integer,
        comment="Limit on the judge's verdicts of a day that update weights; null: none.",
    ),
    Column("standing", Double, comment="Weight of its judge; below 1 for a new judge."),
    Column("revoked_at", TIMESTAMP(timezone=True)),
    require("on_session", Boolean, default="false", comment="Whether it judges all of a session."),
    Column("rating", Text, comment="The thumb that became the verdict; null if sentences were judged."),
    Column("reason", Text, comment="Reason of the rating."),
    PrimaryKeyConstraint("collection_id", "id"),
    UniqueConstraint("collection_id", "principal", "idempotency_key"),
    build_parent_key("judged_query", "query_id"),
    Index(None, "collection_id", "query_id"),
    Index(None, "collection_id", "question_id"),
    Index(None, "collection_id", "judge", "received_at"),
    build_partial_index("feedback_event_named_idx", "received_at", where=f"principal <> '{NOBODY}'"),
    build_partial_index("feedback_event_pending_idx", "received_at", where="status = 'pending'"),
    build_partial_index("feedback_event_parked_idx", "collection_id", "id", where="status = 'parked'"),
    CheckConstraint("confidence > 0 AND confidence <= 1", name="confidence"),
    CheckConstraint("generation_score BETWEEN 0 AND 1", name="generation_score"),
    CheckConstraint("rating IN ('up', 'down', 'withdrawn')", name="rating"),
    CheckConstraint("status IN ('pending', 'applied', 'parked', 'revoked')", name="status"),
    CheckConstraint(
        "applied_sequence IS NULL OR num_nulls(applied_at, question_id, observation_noise_positive, "
        "observation_noise_negative, process_noise, daily_share, contested_share) = 0",
        name="applied",
    ),
    comment="The log of verdicts: everything learned is a function of it.",
)

verdict_sentence = Table(
    "verdict_sentence",
    metadata,
    build_inherited_collection_column(),
    require("event_id", BigInteger),
    require("sentence_id", BigInteger),
    require(
        "role",
        Text,
        comment="missed: it supports but was not returned. likely: not named, but nearest to the question "
        "in a passage that helped as a whole.",
    ),
    Column(
        "examined",
        Double,
        comment="Probability that the judge looked at a rejected sentence, or that a likely one helped; null: 1.",
    ),
    PrimaryKeyConstraint("collection_id", "event_id", "sentence_id"),
    build_parent_key("feedback_event", "event_id"),
    CheckConstraint("role IN ('supported', 'missed', 'rejected', 'likely')", name="role"),
    CheckConstraint(
        "examined IS NULL OR (role IN ('rejected', 'likely') AND examined > 0 AND examined < 1)", name="examined"
    ),
    comment="Sentences that a verdict judges, each with its role.",
)

verdict_passage = Table(
    "verdict_passage",
    metadata,
    build_inherited_collection_column(),
    require("event_id", BigInteger),
    require("passage_id", BigInteger),
    PrimaryKeyConstraint("collection_id", "event_id", "passage_id"),
    build_parent_key("feedback_event", "event_id"),
    comment="Passages that helped as a whole.",
)

verdict_expansion = Table(
    "verdict_expansion",
    metadata,
    build_inherited_collection_column(),
    require("event_id", BigInteger),
    require("place", SmallInteger),
    require("method", Text),
    require("text", Text),
    PrimaryKeyConstraint("collection_id", "event_id", "place"),
    build_parent_key("feedback_event", "event_id"),
    comment="Query expansions that came with a verdict, in their order.",
)

applied_sequence = Sequence("feedback_applied", metadata=metadata)

memory_audit = Table(
    "memory_audit",
    metadata,
    build_inherited_collection_column(),
    require("event_id", BigInteger),
    require("sentence_id", BigInteger),
    require("channel", Text),
    require("target", SmallInteger, comment="y of GAM-RAG, Eq. 10."),
    require("observation_noise", Double),
    require("gain", Double),
    require("residual", Double),
    require("perplexity_before", Double),
    require("perplexity_after", Double),
    require("process_noise", Double),
    require(
        "revision", Integer, default="0", comment="How often the judged text of the sentence had been revised."
    ),
    PrimaryKeyConstraint("collection_id", "event_id", "sentence_id", "channel"),
    build_parent_key("feedback_event", "event_id"),
    Index(None, "collection_id", "sentence_id"),
    CheckConstraint("channel IN ('task', 'time', 'recall')", name="channel"),
    comment="One row for each state that an event moved. Rows outlive their sentence: the log is history.",
)

weight_audit = Table(
    "weight_audit",
    metadata,
    build_inherited_collection_column(),
    require("event_id", BigInteger),
    require("model", Text, comment="The belief that the event adds to."),
    require("prior", Text, comment="Fingerprint of the prior that the term adds to."),
    require("observation_noise", Double),
    require("surprise", Double, comment="1 - the probability that the prior gave to the verdict."),
    require("information", ARRAY(Double), storage="EXTERNAL"),
    require("precision", ARRAY(Double), storage="EXTERNAL", comment="(k, k), row by row."),
    require(
        "counted", Boolean, default="true", comment="False for events after the judge's daily cap: no sum has them."
    ),
    require("contested", Boolean, default="false", comment="Whether the verdict goes against other judges."),
    PrimaryKeyConstraint("collection_id", "event_id", "model"),
    build_parent_key("feedback_event", "event_id"),
    postgresql_with={"toast_tuple_target": "8160"},
    comment="Terms of events in the weights of models.",
)
