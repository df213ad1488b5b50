"""Verdicts that can be revoked: what a replay of the log needs beside it, and jobs that revoke."""

import hashlib

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

BATCH = 1_000


def upgrade() -> None:
    op.drop_constraint(op.f("feedback_event_status_check"), "feedback_event")
    op.create_check_constraint(
        op.f("feedback_event_status_check"),
        "feedback_event",
        "status IN ('pending', 'applied', 'parked', 'revoked')",
    )
    op.add_column("feedback_event", sa.Column("revoked_at", sa.TIMESTAMP(timezone=True), nullable=True))
    op.add_column(
        "feedback_event",
        sa.Column(
            "question_id",
            sa.BigInteger(),
            nullable=True,
            comment="The question that it taught; null until it is applied.",
        ),
    )
    _find_questions()
    op.create_index(
        op.f("feedback_event_collection_id_question_id_idx"), "feedback_event", ["collection_id", "question_id"]
    )
    op.add_column(
        "ingest_job",
        sa.Column(
            "revocation",
            postgresql.JSONB(astext_type=sa.Text()),
            nullable=True,
            comment="Of a job that revokes verdicts: which ones; null: another job.",
        ),
    )
    op.add_column("memory_audit", sa.Column("process_noise", sa.Float(precision=53), nullable=True))
    # What was added to the perplexity, freed of the last bits that taking the difference costs.
    op.execute(
        """
        UPDATE memory_audit
        SET process_noise = round((perplexity_after - (1 - gain) * perplexity_before)::numeric, 12)::float8
        """
    )
    op.alter_column("memory_audit", "process_noise", nullable=False)
    op.add_column(
        "sentence_memory",
        sa.Column(
            "time_expression_id", sa.BigInteger(), nullable=True, comment="Of a time memory: what it began as."
        ),
    )
    op.execute(
        """
        UPDATE sentence_memory memory SET time_expression_id = sentence.time_expression_id FROM sentence
        WHERE memory.channel = 'time' AND sentence.collection_id = memory.collection_id
          AND sentence.id = memory.sentence_id
        """
    )
    op.create_foreign_key(
        op.f("sentence_memory_time_expression_fkey"),
        "sentence_memory",
        "time_expression",
        ["collection_id", "time_expression_id"],
        ["collection_id", "id"],
    )
    op.create_index(
        "sentence_memory_time_idx",
        "sentence_memory",
        ["collection_id", "time_expression_id"],
        unique=False,
        postgresql_where=sa.text("time_expression_id IS NOT NULL"),
    )


def _find_questions() -> None:
    """Say of each applied event which question it taught, as it was found when it was applied: by its words."""
    connection = op.get_bind()
    questions = {
        (row.collection_id, bytes(row.text_hash)): row.id
        for row in connection.execute(sa.text("SELECT collection_id, id, text_hash FROM question"))
    }
    asked = connection.execute(
        sa.text(
            """
            SELECT DISTINCT event.collection_id, event.episode_id, episode.question FROM feedback_event event
            JOIN episode ON episode.collection_id = event.collection_id AND episode.id = event.episode_id
            WHERE event.status = 'applied'
            """
        )
    ).all()
    for start in range(0, len(asked), BATCH):
        found = []
        for collection_id, episode, text in asked[start : start + BATCH]:
            words = " ".join(text.casefold().split())
            question = questions.get((collection_id, hashlib.sha256(words.encode()).digest()))
            if question is not None:
                found.append((collection_id, episode, question))
        connection.execute(
            sa.text(
                """
                UPDATE feedback_event event SET question_id = found.question
                FROM unnest(
                    CAST(:collections AS bigint[]), CAST(:episodes AS uuid[]), CAST(:questions AS bigint[])
                ) AS found(collection, episode, question)
                WHERE event.collection_id = found.collection AND event.episode_id = found.episode
                  AND event.status = 'applied'
                """
            ),
            {
                "collections": [row[0] for row in found],
                "episodes": [row[1] for row in found],
                "questions": [row[2] for row in found],
            },
        )


def downgrade() -> None:
    op.drop_index("sentence_memory_time_idx", table_name="sentence_memory")
    op.drop_constraint(op.f("sentence_memory_time_expression_fkey"), "sentence_memory", type_="foreignkey")
    op.drop_column("sentence_memory", "time_expression_id")
    op.drop_column("memory_audit", "process_noise")
    op.execute("DELETE FROM ingest_job WHERE revocation IS NOT NULL")
    op.drop_column("ingest_job", "revocation")
    op.drop_index(op.f("feedback_event_collection_id_question_id_idx"), table_name="feedback_event")
    op.drop_column("feedback_event", "question_id")
    op.drop_column("feedback_event", "revoked_at")
    op.drop_constraint(op.f("feedback_event_status_check"), "feedback_event")
    # The version before knows no revocation: what was revoked is parked, so that it is not applied again.
    op.execute("UPDATE feedback_event SET status = 'parked', error = 'revoked' WHERE status = 'revoked'")
    op.create_check_constraint(
        op.f("feedback_event_status_check"), "feedback_event", "status IN ('pending', 'applied', 'parked')"
    )
