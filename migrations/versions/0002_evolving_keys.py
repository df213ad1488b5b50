"""Keys that evolve: expansion units, what verdicts say of them, evolved keys, and re-key jobs."""

import sqlalchemy as sa
from alembic import op
from pgvector.sqlalchemy import VECTOR
from sqlalchemy.dialects import postgresql

from app.settings import Settings

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

DIMENSION = Settings().embedding_dimension
VECTOR_COLUMNS = (("expansion_unit", "embedding"), ("passage_key", "vector"), ("staged_key", "embedding"))


def upgrade() -> None:
    op.create_table(
        "expansion_unit",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("text_hash", sa.LargeBinary(), nullable=False),
        sa.Column("method", sa.Text(), nullable=False, comment="Of the verdict that brought it first."),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("embedding", VECTOR(DIMENSION), nullable=False),
        sa.Column("terms", sa.ARRAY(sa.Text()), nullable=False),
        sa.Column(
            "frequencies", sa.ARRAY(sa.REAL()), nullable=False, comment="How often the unit has each of its terms."
        ),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("expansion_unit_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "id", name=op.f("expansion_unit_pkey")),
        sa.UniqueConstraint("collection_id", "text_hash", name=op.f("expansion_unit_collection_id_text_hash_key")),
        comment="Expansion units that verdicts brought along, each text once.",
    )
    op.create_table(
        "key_evolution",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "batch_events", sa.Integer(), server_default=sa.text("0"), nullable=False, comment="In the open batch."
        ),
        sa.Column("batch_gain", sa.Float(precision=53), server_default=sa.text("0"), nullable=False),
        sa.Column("best_gain", sa.Float(precision=53), server_default=sa.text("0"), nullable=False),
        sa.Column("stale_batches", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column(
            "waiting",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="Events not taken in yet.",
        ),
        sa.Column("due", sa.Text(), nullable=True, comment="Why an evolution is due; null if none is."),
        sa.CheckConstraint("due IN ('saturated', 'pending')", name=op.f("key_evolution_due_check")),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("key_evolution_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", name=op.f("key_evolution_pkey")),
        comment="How far a collection's batches have come (ERM, Eqs. 9-10). Its row is the lock on all key state.",
    )
    op.create_table(
        "key_generation",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False, comment="1 for a collection's first evolution."),
        sa.Column(
            "parent", sa.BigInteger(), nullable=False, comment="The generation it went on from; 0 for base keys."
        ),
        sa.Column(
            "active",
            sa.Boolean(),
            nullable=False,
            comment="Whether what it took in counts: false once rolled back.",
        ),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column(
            "rules",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=False,
            comment="The constants its keys were composed with.",
        ),
        sa.Column("events", sa.BigInteger(), nullable=False, comment="Events it took in."),
        sa.Column("passages", sa.BigInteger(), nullable=False, comment="Keys it wrote."),
        sa.Column("created_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "reason IN ('saturated', 'pending', 'requested')", name=op.f("key_generation_reason_check")
        ),
        sa.CheckConstraint(
            "number > 0 AND parent >= 0 AND parent < number", name=op.f("key_generation_number_check")
        ),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("key_generation_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "number", name=op.f("key_generation_pkey")),
    )
    op.create_table(
        "evolved_posting",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False),
        sa.Column("base", sa.REAL(), nullable=False, comment="How often the base key has the term."),
        sa.Column("frequency", sa.REAL(), nullable=False, comment="How often the evolved key has it."),
        sa.Column("length", sa.REAL(), nullable=False, comment="The passage's length in terms, by its base key."),
        sa.CheckConstraint("frequency > base AND base >= 0", name=op.f("evolved_posting_frequency_check")),
        sa.ForeignKeyConstraint(
            ["collection_id", "passage_id"],
            ["passage.collection_id", "passage.id"],
            name=op.f("evolved_posting_passage_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "term", "passage_id", name=op.f("evolved_posting_pkey")),
        comment="Terms that evolution added to lexical keys; what base keys hold stays in lexical_posting.",
    )
    op.create_index(
        op.f("evolved_posting_collection_id_passage_id_idx"),
        "evolved_posting",
        ["collection_id", "passage_id"],
        unique=False,
    )
    op.create_table(
        "expansion_memory",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=False),
        sa.Column("score", sa.Float(precision=53), nullable=False, comment="s of ERM, Eq. 7."),
        sa.CheckConstraint("score > 0", name=op.f("expansion_memory_score_check")),
        sa.ForeignKeyConstraint(
            ["collection_id", "passage_id"],
            ["passage.collection_id", "passage.id"],
            name=op.f("expansion_memory_passage_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["collection_id", "unit_id"],
            ["expansion_unit.collection_id", "expansion_unit.id"],
            name=op.f("expansion_memory_expansion_unit_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "passage_id", "unit_id", name=op.f("expansion_memory_pkey")),
        comment="u of ERM: a passage's best units, as many as the capacity allows.",
        postgresql_with={"fillfactor": "70"},
    )
    op.create_index(
        op.f("expansion_memory_collection_id_unit_id_idx"),
        "expansion_memory",
        ["collection_id", "unit_id"],
        unique=False,
    )
    op.create_table(
        "passage_key",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "generation", sa.BigInteger(), nullable=False, comment="The latest evolution that it holds evidence of."
        ),
        sa.Column("vector", VECTOR(DIMENSION), nullable=False),
        sa.Column(
            "units", sa.ARRAY(sa.BigInteger()), nullable=False, comment="What it is composed of, best first."
        ),
        sa.Column("scores", sa.ARRAY(sa.Float(precision=53)), nullable=False),
        sa.Column("updated_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id", "passage_id"],
            ["passage.collection_id", "passage.id"],
            name=op.f("passage_key_passage_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "passage_id", name=op.f("passage_key_pkey")),
        comment="Evolved keys as they are searched; a passage without a row has its base key.",
        postgresql_with={"fillfactor": "70"},
    )
    op.create_table(
        "staged_key",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("job_id", sa.Uuid(), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("embedding", VECTOR(DIMENSION), nullable=False),
        sa.ForeignKeyConstraint(
            ["collection_id", "job_id"],
            ["ingest_job.collection_id", "ingest_job.id"],
            name=op.f("staged_key_ingest_job_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["collection_id", "passage_id"],
            ["passage.collection_id", "passage.id"],
            name=op.f("staged_key_passage_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "job_id", "passage_id", name=op.f("staged_key_pkey")),
        comment="Base keys of a re-key job, until all are there and take the old ones' place.",
    )
    op.create_index(
        op.f("staged_key_collection_id_passage_id_idx"), "staged_key", ["collection_id", "passage_id"], unique=False
    )
    op.create_table(
        "key_evidence",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column(
            "gate", sa.Text(), nullable=False, comment="What validated the expansions; 'none': they were not."
        ),
        sa.Column(
            "gain",
            sa.Float(precision=53),
            nullable=False,
            comment="Highest gain of its pairs (ERM, Eq. 9); 0 if not validated.",
        ),
        sa.Column("strength", sa.Float(precision=53), nullable=False, comment="λ its gains were taken with."),
        sa.Column(
            "generation",
            sa.BigInteger(),
            nullable=True,
            comment="The evolution that took it in; null while it waits.",
        ),
        sa.CheckConstraint("gate IN ('retrieval', 'generation', 'none')", name=op.f("key_evidence_gate_check")),
        sa.ForeignKeyConstraint(
            ["collection_id", "event_id"],
            ["feedback_event.collection_id", "feedback_event.id"],
            name=op.f("key_evidence_feedback_event_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "event_id", name=op.f("key_evidence_pkey")),
        comment="One row per event that carried expansions.",
    )
    op.create_index(
        "key_evidence_waiting_idx",
        "key_evidence",
        ["collection_id", "event_id"],
        unique=False,
        postgresql_where=sa.text("generation IS NULL"),
    )
    op.create_table(
        "key_credit",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("event_id", sa.BigInteger(), nullable=False),
        sa.Column("passage_id", sa.BigInteger(), nullable=False),
        sa.Column("unit_id", sa.BigInteger(), nullable=False),
        sa.Column("gain", sa.Float(precision=53), nullable=False, comment="Δ of ERM, Eq. 5."),
        sa.Column(
            "weight",
            sa.Float(precision=53),
            nullable=False,
            comment="w of ERM, Eq. 6; 0 where the gain is not positive.",
        ),
        sa.CheckConstraint("weight BETWEEN 0 AND 1", name=op.f("key_credit_weight_check")),
        sa.ForeignKeyConstraint(
            ["collection_id", "event_id"],
            ["key_evidence.collection_id", "key_evidence.event_id"],
            name=op.f("key_credit_key_evidence_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["collection_id", "passage_id"],
            ["passage.collection_id", "passage.id"],
            name=op.f("key_credit_passage_fkey"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["collection_id", "unit_id"],
            ["expansion_unit.collection_id", "expansion_unit.id"],
            name=op.f("key_credit_expansion_unit_fkey"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("collection_id", "event_id", "passage_id", "unit_id", name=op.f("key_credit_pkey")),
        comment="What each event says of each (passage, unit): scores are sums over these.",
    )
    op.create_index(
        op.f("key_credit_collection_id_passage_id_unit_id_idx"),
        "key_credit",
        ["collection_id", "passage_id", "unit_id"],
        unique=False,
    )
    op.create_index(
        op.f("key_credit_collection_id_unit_id_idx"), "key_credit", ["collection_id", "unit_id"], unique=False
    )
    op.add_column(
        "collection",
        sa.Column(
            "key_building",
            sa.Text(),
            server_default=sa.text("'full'"),
            nullable=False,
            comment="What base keys are made of.",
        ),
    )
    op.add_column(
        "collection",
        sa.Column(
            "key_generation",
            sa.BigInteger(),
            server_default=sa.text("0"),
            nullable=False,
            comment="0: base keys serve.",
        ),
    )
    op.add_column("episode", sa.Column("strategy", sa.Text(), server_default=sa.text("'graph'"), nullable=False))
    op.add_column(
        "ingest_job",
        sa.Column(
            "key_building",
            sa.Text(),
            nullable=True,
            comment="Of a re-key job: what base keys shall be made of; null: it ingests.",
        ),
    )
    op.create_index(
        "ingest_job_rekey_idx",
        "ingest_job",
        ["collection_id"],
        unique=True,
        postgresql_where=sa.text("key_building IS NOT NULL AND status IN ('queued', 'running')"),
    )
    op.create_check_constraint(
        op.f("collection_key_building_check"),
        "collection",
        "key_building IN ('full', 'title', 'abstract', 'keywords')",
    )
    op.create_check_constraint(
        op.f("ingest_job_key_building_check"),
        "ingest_job",
        "key_building IN ('full', 'title', 'abstract', 'keywords')",
    )
    op.create_check_constraint(
        op.f("episode_strategy_check"), "episode", "strategy IN ('graph', 'dense', 'lexical', 'hybrid')"
    )
    for table, column in VECTOR_COLUMNS:
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} SET STORAGE PLAIN")


def downgrade() -> None:
    op.drop_index(
        "ingest_job_rekey_idx",
        table_name="ingest_job",
        postgresql_where=sa.text("key_building IS NOT NULL AND status IN ('queued', 'running')"),
    )
    op.drop_column("ingest_job", "key_building")
    op.drop_column("episode", "strategy")
    op.drop_column("collection", "key_generation")
    op.drop_column("collection", "key_building")
    op.drop_index(op.f("key_credit_collection_id_unit_id_idx"), table_name="key_credit")
    op.drop_index(op.f("key_credit_collection_id_passage_id_unit_id_idx"), table_name="key_credit")
    op.drop_table("key_credit")
    op.drop_index(
        "key_evidence_waiting_idx", table_name="key_evidence", postgresql_where=sa.text("generation IS NULL")
    )
    op.drop_table("key_evidence")
    op.drop_index(op.f("staged_key_collection_id_passage_id_idx"), table_name="staged_key")
    op.drop_table("staged_key")
    op.drop_table("passage_key")
    op.drop_index(op.f("expansion_memory_collection_id_unit_id_idx"), table_name="expansion_memory")
    op.drop_table("expansion_memory")
    op.drop_index(op.f("evolved_posting_collection_id_passage_id_idx"), table_name="evolved_posting")
    op.drop_table("evolved_posting")
    op.drop_table("key_generation")
    op.drop_table("key_evolution")
    op.drop_table("expansion_unit")
