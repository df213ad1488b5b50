"""Whom to trust and how far: judges with noises and daily caps of their own, collections that serve by arms or
without what they learn, and on each verdict the constants by which it was applied.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

JSONB = postgresql.JSONB(astext_type=sa.Text())


def upgrade() -> None:
    op.create_table(
        "judge",
        sa.Column("collection_id", sa.BigInteger(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("observation_noise_positive", sa.Float(precision=53), nullable=True),
        sa.Column("observation_noise_negative", sa.Float(precision=53), nullable=True),
        sa.Column("daily_share", sa.Float(precision=53), nullable=True),
        sa.Column("contested_share", sa.Float(precision=53), nullable=True),
        sa.Column("daily_comparisons", sa.Integer(), nullable=True),
        sa.Column("updated_at", sa.TIMESTAMP(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("observation_noise_positive > 0", name=op.f("judge_observation_noise_positive_check")),
        sa.CheckConstraint("observation_noise_negative > 0", name=op.f("judge_observation_noise_negative_check")),
        sa.CheckConstraint("daily_share BETWEEN 0 AND 1", name=op.f("judge_daily_share_check")),
        sa.CheckConstraint("contested_share BETWEEN 0 AND 1", name=op.f("judge_contested_share_check")),
        sa.CheckConstraint("daily_comparisons >= 0", name=op.f("judge_daily_comparisons_check")),
        sa.ForeignKeyConstraint(
            ["collection_id"], ["collection.id"], name=op.f("judge_collection_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("collection_id", "name", name=op.f("judge_pkey")),
        comment="What is set for a judge; null: as for every judge.",
    )
    op.add_column(
        "feedback_event",
        sa.Column(
            "constants",
            JSONB,
            nullable=True,
            comment="Noises and caps by which it was applied; null: it was not, or before there were caps.",
        ),
    )
    op.create_index(
        op.f("feedback_event_collection_id_judge_received_at_idx"),
        "feedback_event",
        ["collection_id", "judge", "received_at"],
    )
    op.create_index(
        "feedback_event_parked_idx",
        "feedback_event",
        ["collection_id", "id"],
        postgresql_where=sa.text("status = 'parked'"),
    )
    op.add_column(
        "sentence_memory",
        sa.Column(
            "pulled",
            JSONB,
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
            comment="Of the last day that it moved: what each judge left of it, 1 being all.",
        ),
    )
    op.add_column(
        "question_support",
        sa.Column(
            "pulled",
            JSONB,
            server_default=sa.text("'{}'::jsonb"),
            nullable=False,
            comment="Of the last day that it moved: what each judge left of it, 1 being all.",
        ),
    )
    op.add_column(
        "question_support",
        sa.Column(
            "said",
            JSONB,
            server_default=sa.text("'[]'::jsonb"),
            nullable=False,
            comment="Judges and their last words, 1 supported, 0 rejected, in the order in which they first spoke.",
        ),
    )
    op.add_column(
        "ranking_audit",
        sa.Column(
            "counted",
            sa.Boolean(),
            server_default=sa.text("true"),
            nullable=False,
            comment="Whether the sum holds it: not what came after the judge's daily cap.",
        ),
    )
    op.add_column(
        "ranking_audit",
        sa.Column(
            "contested",
            sa.Boolean(),
            server_default=sa.text("false"),
            nullable=False,
            comment="Whether the verdict goes against what other judges said.",
        ),
    )
    op.add_column(
        "collection",
        sa.Column(
            "serving",
            sa.Text(),
            server_default=sa.text("'live'"),
            nullable=False,
            comment="shadow: it learns, and serves without memory.",
        ),
    )
    op.create_check_constraint(op.f("collection_serving_check"), "collection", "serving IN ('live', 'shadow')")
    op.add_column(
        "collection",
        sa.Column("experiment", JSONB, nullable=True, comment="Arms that queries are given by percentage."),
    )
    op.add_column(
        "collection",
        sa.Column("exploration", JSONB, nullable=True, comment="How answers make room for what is untried."),
    )
    op.add_column(
        "collection",
        sa.Column(
            "past",
            JSONB,
            nullable=True,
            comment="Of a copy that a replay made: of which collection, and as of when.",
        ),
    )
    op.add_column(
        "episode", sa.Column("arm", sa.Text(), nullable=True, comment="Given by the collection's experiment.")
    )
    op.add_column(
        "episode",
        sa.Column(
            "explored",
            postgresql.ARRAY(sa.BigInteger()),
            nullable=True,
            comment="Passages that exploration put into the answer.",
        ),
    )
    op.create_index(
        op.f("episode_collection_id_created_at_id_idx"), "episode", ["collection_id", "created_at", "id"]
    )
    # Counted when asked for: keeping a count rewrote the whole episode with every verdict.
    op.drop_index("episode_unjudged_idx", table_name="episode")
    op.drop_column("episode", "judged")


def downgrade() -> None:
    op.add_column(
        "episode",
        sa.Column(
            "judged",
            sa.Integer(),
            server_default=sa.text("0"),
            nullable=False,
            comment="Events accepted for it.",
        ),
    )
    op.execute(
        """
        UPDATE episode SET judged = accepted.count FROM (
            SELECT collection_id, episode_id, count(*) FROM feedback_event GROUP BY collection_id, episode_id
        ) AS accepted
        WHERE accepted.collection_id = episode.collection_id AND accepted.episode_id = episode.id
        """
    )
    op.create_index(
        "episode_unjudged_idx",
        "episode",
        ["collection_id", "created_at"],
        postgresql_where=sa.text("judged = 0"),
    )
    op.drop_index(op.f("episode_collection_id_created_at_id_idx"), table_name="episode")
    op.drop_column("episode", "explored")
    op.drop_column("episode", "arm")
    op.drop_column("collection", "past")
    op.drop_column("collection", "exploration")
    op.drop_column("collection", "experiment")
    op.drop_constraint(op.f("collection_serving_check"), "collection")
    op.drop_column("collection", "serving")
    op.drop_column("ranking_audit", "contested")
    op.drop_column("ranking_audit", "counted")
    op.drop_column("question_support", "said")
    op.drop_column("question_support", "pulled")
    op.drop_column("sentence_memory", "pulled")
    op.drop_index("feedback_event_parked_idx", table_name="feedback_event")
    op.drop_index(op.f("feedback_event_collection_id_judge_received_at_idx"), table_name="feedback_event")
    op.drop_column("feedback_event", "constants")
    op.drop_table("judge")
