"""The first schema.

The dimension of the vector columns is the configured encoder's; a database keeps the one it was made with.
"""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import VECTOR
from sqlalchemy.dialects import postgresql

from app.settings import Settings

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

DIMENSION = Settings().embedding_dimension
VECTOR_COLUMNS = (
    ("passage", "embedding"),
    ("sentence", "embedding"),
    ("entity", "embedding"),
    ("time_expression", "embedding"),
    ("sentence_memory", "vector"),
    ("question", "embedding"),
)


def upgrade() -> None:
    op.execute("CREATE EXTENSION IF NOT EXISTS vector")
    op.execute(sa.schema.CreateSequence(sa.Sequence("feedback_applied")))
    op.create_table(
        "collection",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("passage_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("sentence_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("entity_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "lexical_length",
            sa.Float(precision=53),
            server_default=sa.text("0"),
            nullable=False,
            comment="Of all passages together, in terms: with passage_count the mean length that BM25 needs.",
        ),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("collection_pkey")),
        sa.UniqueConstraint("name", name=op.f("collection_name_key")),
    )
    op.create_table(
        "embedding_space",
        sa.Column("singleton", sa.SmallInteger(), server_default=sa.text("1"), autoincrement=False, nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("recorded_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("singleton = 1", name=op.f("embedding_space_singleton_check")),
        sa.PrimaryKeyConstraint("singleton", name=op.f("embedding_space_pkey")),
        comment="The one encoder whose vectors this database holds.",
    )
    op.create_table(
        "idempotency",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.LargeBinary(), nullable=False),
        sa.Column("answer", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collection.id"],
            name=op.f("idempotency_collection_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "key", name=op.f("idempotency_pkey")),
        comment="First answers of keyed writes other than feedback, whose log keeps its own keys.",
    )
    op.create_table(
        "entity",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False, comment="Normalised: equal names meet here."),
        sa.Column("surface", sa.Text(), nullable=False),
        sa.Column("embedding", VECTOR(DIMENSION), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("entity_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "id", name=op.f("entity_pkey")),
        sa.UniqueConstraint("collection_id", "name", name=op.f("entity_collection_id_name_key")),
        postgresql_with={"vacuum_index_cleanup": "off"},
    )
    op.create_index(
        "entity_embedding_hnsw",
        "entity",
        ["embedding"],
        unique=False,
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "vector_ip_ops"},
        postgresql_with={"m": "8", "ef_construction": "32"},
    )
    op.create_table(
        "episode",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("embedding", VECTOR(DIMENSION), nullable=False),
        sa.Column("time_constraint", sa.Text(), nullable=True),
        sa.Column("time_embedding", VECTOR(DIMENSION), nullable=True),
        sa.Column("memory", sa.Text(), nullable=False),
        sa.Column("profile", sa.Text(), nullable=False),
        sa.Column("activated", sa.ARRAY(sa.BigInteger()), nullable=False, comment="Sentences selected in any hop."),
        sa.Column(
            "answer",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="The response, as it was given.",
        ),
        sa.Column("trace", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column(
            "ranked",
            sa.ARRAY(sa.BigInteger()),
            nullable=True,
            comment="Best candidates; null where features alone did not rank.",
        ),
        sa.Column(
            "features",
            sa.LargeBinary(),
            nullable=True,
            comment="Of the candidates: (n, k) float32, little-endian, row by row.",
        ),
        sa.Column(
            "judged",
            sa.Integer(),
            server_default=sa.text("0"),
            nullable=False,
            comment="Events accepted for it.",
        ),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("memory IN ('off', 'read')", name=op.f("episode_memory_check")),
        sa.CheckConstraint("profile IN ('paper', 'default')", name=op.f("episode_profile_check")),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("episode_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "id", name=op.f("episode_pkey")),
    )
    op.create_index(
        "episode_unjudged_idx",
        "episode",
        ["collection_id", "created_at"],
        unique=False,
        postgresql_where=sa.text("judged = 0"),
    )
    op.create_table(
        "ingest_job",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'receiving'"), nullable=False),
        sa.Column("received", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("created", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("updated", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("unchanged", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("rejected", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("finished_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('receiving', 'queued', 'running', 'succeeded', 'failed')",
            name=op.f("ingest_job_status_check"),
        ),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("ingest_job_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "id", name=op.f("ingest_job_pkey")),
    )
    op.create_index(
        "ingest_job_open_idx",
        "ingest_job",
        ["created_at"],
        unique=False,
        postgresql_where=sa.text("status IN ('receiving', 'queued', 'running')"),
    )
    op.create_table(
        "passage",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("external_id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=True),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column(
            "metadata",
            postgresql.JSONB(astext_type=sa.Text()),
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
        ),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("embedding", VECTOR(DIMENSION), nullable=False),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("passage_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "id", name=op.f("passage_pkey")),
        sa.UniqueConstraint("collection_id", "external_id", name=op.f("passage_collection_id_external_id_key")),
        postgresql_with={"vacuum_index_cleanup": "off"},
    )
    op.create_index(
        "passage_embedding_hnsw",
        "passage",
        ["embedding"],
        unique=False,
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "vector_ip_ops"},
    )
    op.create_index(
        "passage_metadata_gin",
        "passage",
        ["metadata"],
        unique=False,
        postgresql_using="gin",
        postgresql_ops={"metadata": "jsonb_path_ops"},
    )
    op.create_table(
        "question",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("embedding", VECTOR(DIMENSION), nullable=False),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("question_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "id", name=op.f("question_pkey")),
        sa.UniqueConstraint("collection_id", "text_hash", name=op.f("question_collection_id_text_hash_key")),
        postgresql_with={"vacuum_index_cleanup": "off"},
        comment="Questions that verdicts were given for; insert-only.",
    )
    op.create_index(
        "question_embedding_hnsw",
        "question",
        ["embedding"],
        unique=False,
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "vector_ip_ops"},
    )
    op.create_table(
        "lexical_term",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("passage_count", sa.BigInteger(), nullable=False, comment="How many passages hold it."),
        sa.CheckConstraint("passage_count >= 0", name=op.f("lexical_term_passage_count_check")),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("lexical_term_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "id", name=op.f("lexical_term_pkey")),
        sa.UniqueConstraint("collection_id", "term", name=op.f("lexical_term_collection_id_term_key")),
        postgresql_with={"fillfactor": "70"},
    )
    op.create_table(
        "lexical_posting",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("term_id", sa.BigInteger(), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "frequency",
            sa.REAL(),
            nullable=False,
            comment="How often the passage has the term; need not be whole.",
        ),
        sa.Column(
            "length",
            sa.REAL(),
            nullable=False,
            comment="The passage's length in terms, so that no row is looked up.",
        ),
        sa.PrimaryKeyConstraint(
            "collection_id",
            "term_id",
            "passage_id",
            name=op.f("lexical_posting_pkey"),
            postgresql_include=["frequency", "length"],
        ),
        comment="No foreign keys: checking one costs more than the row. A posting is reached from its term only.",
    )
    op.create_table(
        "lexical_passage",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False),
        sa.Column("analyser", sa.Integer(), nullable=False, comment="Version of the analysis that gave the terms."),
        sa.Column("length", sa.REAL(), nullable=False),
        sa.Column(
            "term_ids", sa.ARRAY(sa.BigInteger()), nullable=False, comment="Where the passage's postings are."
        ),
        sa.ForeignKeyConstraint(
            ["collection_id", "passage_id"],
            ["passage.collection_id", "passage.id"],
            name=op.f("lexical_passage_passage_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("lexical_passage_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "passage_id", name=op.f("lexical_passage_pkey")),
        comment="What takes a passage out of the lexical index again, exactly as it came.",
    )
    op.create_table(
        "time_expression",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("starts_on", sa.Date(), nullable=True),
        sa.Column("ends_on", sa.Date(), nullable=True),
        sa.Column("embedding", VECTOR(DIMENSION), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"],
            ["collection.id"],
            name=op.f("time_expression_collection_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "id", name=op.f("time_expression_pkey")),
        sa.UniqueConstraint("collection_id", "text", name=op.f("time_expression_collection_id_text_key")),
    )
    op.create_table(
        "feedback_event",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("episode_id", sa.Uuid(), nullable=False),
        sa.Column("idempotency_key", sa.Text(), nullable=False),
        sa.Column("body_hash", sa.LargeBinary(), nullable=False),
        sa.Column("judge", sa.Text(), nullable=False),
        sa.Column("verdict", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("status", sa.Text(), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("received_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("applied_at", sa.TIMESTAMP(timezone=True), nullable=True),
        sa.Column(
            "applied_sequence",
            sa.BigInteger(),
            nullable=True,
            comment="Order of application; replay follows it.",
        ),
        sa.CheckConstraint("status IN ('pending', 'applied', 'parked')", name=op.f("feedback_event_status_check")),
        sa.ForeignKeyConstraint(
            ["collection_id", "episode_id"],
            ["episode.collection_id", "episode.id"],
            name=op.f("feedback_event_episode_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "id", name=op.f("feedback_event_pkey")),
        sa.UniqueConstraint(
            "collection_id", "idempotency_key", name=op.f("feedback_event_collection_id_idempotency_key_key")
        ),
        comment="The log of verdicts: everything learned is a function of it.",
    )
    op.create_index(
        op.f("feedback_event_collection_id_episode_id_idx"),
        "feedback_event",
        ["collection_id", "episode_id"],
        unique=False,
    )
    op.create_index(
        "feedback_event_pending_idx",
        "feedback_event",
        ["received_at"],
        unique=False,
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_table(
        "ingest_error",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id", "job_id"],
            ["ingest_job.collection_id", "ingest_job.id"],
            name=op.f("ingest_error_ingest_job_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "job_id", "line", name=op.f("ingest_error_pkey")),
    )
    op.create_table(
        "ingest_line",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("line", sa.BigInteger(), nullable=False),
        sa.Column("passage", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id", "job_id"],
            ["ingest_job.collection_id", "ingest_job.id"],
            name=op.f("ingest_line_ingest_job_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "job_id", "line", name=op.f("ingest_line_pkey")),
        comment="Accepted and not yet ingested; a line leaves in the transaction that ingests it.",
    )
    op.create_table(
        "sentence",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("time_expression_id", sa.BigInteger(), nullable=True),
        sa.Column("embedding", VECTOR(DIMENSION), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id", "passage_id"],
            ["passage.collection_id", "passage.id"],
            name=op.f("sentence_passage_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["collection_id", "time_expression_id"],
            ["time_expression.collection_id", "time_expression.id"],
            name=op.f("sentence_time_expression_fkey"),
        ),
        sa.PrimaryKeyConstraint("collection_id", "id", name=op.f("sentence_pkey")),
    )
    op.create_index(
        op.f("sentence_collection_id_passage_id_idx"),
        "sentence",
        ["collection_id", "passage_id"],
        unique=False,
    )
    op.create_index(
        op.f("sentence_collection_id_time_expression_id_idx"),
        "sentence",
        ["collection_id", "time_expression_id"],
        unique=False,
    )
    op.create_table(
        "entity_sentence",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("entity_id", sa.BigInteger(), nullable=False),
        sa.Column("sentence_id", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id", "entity_id"],
            ["entity.collection_id", "entity.id"],
            name=op.f("entity_sentence_entity_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["collection_id", "sentence_id"],
            ["sentence.collection_id", "sentence.id"],
            name=op.f("entity_sentence_sentence_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "entity_id", "sentence_id", name=op.f("entity_sentence_pkey")),
        comment="M_ES of GAM-RAG, Eq. 1.",
    )
    op.create_index(
        op.f("entity_sentence_collection_id_sentence_id_entity_id_idx"),
        "entity_sentence",
        ["collection_id", "sentence_id", "entity_id"],
        unique=False,
    )
    op.create_table(
        "memory_audit",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("sentence_id", sa.BigInteger(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("target", sa.SmallInteger(), nullable=False, comment="y of GAM-RAG, Eq. 10."),
        sa.Column("observation_noise", sa.Float(precision=53), nullable=False),
        sa.Column("gain", sa.Float(precision=53), nullable=False),
        sa.Column("residual", sa.Float(precision=53), nullable=False),
        sa.Column("perplexity_before", sa.Float(precision=53), nullable=False),
        sa.Column("perplexity_after", sa.Float(precision=53), nullable=False),
        sa.CheckConstraint("channel IN ('task', 'time', 'recall')", name=op.f("memory_audit_channel_check")),
        sa.ForeignKeyConstraint(
            ["collection_id", "event_id"],
            ["feedback_event.collection_id", "feedback_event.id"],
            name=op.f("memory_audit_feedback_event_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "collection_id", "event_id", "sentence_id", "channel", name=op.f("memory_audit_pkey")
        ),
        comment="One row per state an event moved. Rows outlive their sentence: the log is history.",
    )
    op.create_index(
        op.f("memory_audit_collection_id_sentence_id_idx"),
        "memory_audit",
        ["collection_id", "sentence_id"],
        unique=False,
    )
    op.create_table(
        "ranking_belief",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("prior", sa.Text(), nullable=False, comment="Fingerprint of the prior that the sums add to."),
        sa.Column("information", sa.ARRAY(sa.Float(precision=53)), nullable=False),
        sa.Column("precision", sa.ARRAY(sa.Float(precision=53)), nullable=False, comment="(k, k), row by row."),
        sa.Column("events", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("updated_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("ranking_belief_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "prior", name=op.f("ranking_belief_pkey")),
        comment="What verdicts taught about the ranking weights: the sum of the events' terms.",
    )
    op.create_table(
        "ranking_audit",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("prior", sa.Text(), nullable=False),
        sa.Column("observation_noise", sa.Float(precision=53), nullable=False),
        sa.Column(
            "surprise", sa.Float(precision=53), nullable=False, comment="Probability the prior gave to a rival."
        ),
        sa.Column("information", sa.ARRAY(sa.Float(precision=53)), nullable=False),
        sa.Column("precision", sa.ARRAY(sa.Float(precision=53)), nullable=False, comment="(k, k), row by row."),
        sa.ForeignKeyConstraint(
            ["collection_id", "event_id"],
            ["feedback_event.collection_id", "feedback_event.id"],
            name=op.f("ranking_audit_feedback_event_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "event_id", name=op.f("ranking_audit_pkey")),
        comment="What each event added to the ranking weights.",
    )
    op.create_table(
        "question_support",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("question_id", sa.BigInteger(), nullable=False),
        sa.Column("sentence_id", sa.BigInteger(), nullable=False),
        sa.Column("support", sa.Float(precision=53), nullable=False),
        sa.Column("perplexity", sa.Float(precision=53), nullable=False),
        sa.Column("update_count", sa.Integer(), nullable=False),
        sa.Column(
            "complete",
            sa.Boolean(),
            nullable=False,
            comment="Whether the last verdict claimed to name all evidence.",
        ),
        sa.CheckConstraint("perplexity BETWEEN 0 AND 1", name=op.f("question_support_perplexity_check")),
        sa.ForeignKeyConstraint(
            ["collection_id", "question_id"],
            ["question.collection_id", "question.id"],
            name=op.f("question_support_question_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["collection_id", "sentence_id"],
            ["sentence.collection_id", "sentence.id"],
            name=op.f("question_support_sentence_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "question_id", "sentence_id", name=op.f("question_support_pkey")),
        comment="How surely a sentence supports a question: the state that experience recall reads.",
        postgresql_with={"fillfactor": "70"},
    )
    op.create_index(
        op.f("question_support_collection_id_sentence_id_idx"),
        "question_support",
        ["collection_id", "sentence_id"],
        unique=False,
    )
    op.create_table(
        "sentence_memory",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("sentence_id", sa.BigInteger(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("vector", VECTOR(DIMENSION), nullable=False),
        sa.Column("perplexity", sa.Float(precision=53), nullable=False),
        sa.Column("update_count", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("channel IN ('task', 'time')", name=op.f("sentence_memory_channel_check")),
        sa.CheckConstraint("perplexity BETWEEN 0 AND 1", name=op.f("sentence_memory_perplexity_check")),
        sa.ForeignKeyConstraint(
            ["collection_id", "sentence_id"],
            ["sentence.collection_id", "sentence.id"],
            name=op.f("sentence_memory_sentence_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "sentence_id", "channel", name=op.f("sentence_memory_pkey")),
        comment="One row per sentence and channel, once a verdict touched it (GAM-RAG, Eq. 2).",
        postgresql_with={"fillfactor": "70"},
    )
    for table, column in VECTOR_COLUMNS:
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE PLAIN")


def downgrade() -> None:
    op.drop_table("sentence_memory")
    op.drop_index(op.f("question_support_collection_id_sentence_id_idx"), table_name="question_support")
    op.drop_table("question_support")
    op.drop_table("ranking_audit")
    op.drop_table("ranking_belief")
    op.drop_index(op.f("memory_audit_collection_id_sentence_id_idx"), table_name="memory_audit")
    op.drop_table("memory_audit")
    op.drop_index(op.f("entity_sentence_collection_id_sentence_id_entity_id_idx"), table_name="entity_sentence")
    op.drop_table("entity_sentence")
    op.drop_index(op.f("sentence_collection_id_time_expression_id_idx"), table_name="sentence")
    op.drop_index(op.f("sentence_collection_id_passage_id_idx"), table_name="sentence")
    op.drop_table("sentence")
    op.drop_table("ingest_line")
    op.drop_table("ingest_error")
    op.drop_index(
        "feedback_event_pending_idx",
        table_name="feedback_event",
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.drop_index(op.f("feedback_event_collection_id_episode_id_idx"), table_name="feedback_event")
    op.drop_table("feedback_event")
    op.drop_table("time_expression")
    op.drop_table("lexical_passage")
    op.drop_table("lexical_posting")
    op.drop_table("lexical_term")
    op.drop_index(
        "question_embedding_hnsw",
        table_name="question",
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "vector_ip_ops"},
    )
    op.drop_table("question")
    op.drop_index(
        "passage_metadata_gin",
        table_name="passage",
        postgresql_using="gin",
        postgresql_ops={"metadata": "jsonb_path_ops"},
    )
    op.drop_index(
        "passage_embedding_hnsw",
        table_name="passage",
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "vector_ip_ops"},
    )
    op.drop_table("passage")
    op.drop_index(
        "ingest_job_open_idx",
        table_name="ingest_job",
        postgresql_where=sa.text("status IN ('receiving', 'queued', 'running')"),
    )
    op.drop_table("ingest_job")
    op.drop_index("episode_unjudged_idx", table_name="episode", postgresql_where=sa.text("judged = 0"))
    op.drop_table("episode")
    op.drop_index(
        "entity_embedding_hnsw",
        table_name="entity",
        postgresql_using="hnsw",
        postgresql_ops={"embedding": "vector_ip_ops"},
    )
    op.drop_table("entity")
    op.drop_table("idempotency")
    op.drop_table("embedding_space")
    op.drop_table("collection")
    op.execute(sa.schema.DropSequence(sa.Sequence("feedback_applied")))
