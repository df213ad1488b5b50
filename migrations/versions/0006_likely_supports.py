"""A passage that helped as a whole teaches by the sentence of it that most likely did."""

from alembic import op

revision = "2026.6"
down_revision = "2026.5"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE verdict_sentence DROP CONSTRAINT verdict_sentence_role_check,
        DROP CONSTRAINT verdict_sentence_examined_check,
        ADD CONSTRAINT verdict_sentence_role_check
            CHECK (role IN ('supported', 'missed', 'rejected', 'likely')),
        ADD CONSTRAINT verdict_sentence_examined_check
            CHECK (examined IS NULL OR (role IN ('rejected', 'likely') AND examined > 0 AND examined < 1));
    COMMENT ON COLUMN verdict_sentence.examined IS
        'Probability that a rejected one was looked at, or that a likely one helped; null: 1.';
    COMMENT ON TABLE verdict_sentence IS
        'Sentences that a verdict names. What is missed was not returned and supports as well; what is likely is not named itself, but nearest to the question in a passage that helped as a whole.';
"""  # noqa: E501 - a comment as the table has it
# What likely supports taught stays, with the noise that its audit has, and so they stay supports.
DOWN = """
    UPDATE verdict_sentence SET role = 'supported', examined = NULL WHERE role = 'likely';
    UPDATE feedback_event SET version = 2 WHERE version = 3;
    ALTER TABLE verdict_sentence DROP CONSTRAINT verdict_sentence_role_check,
        DROP CONSTRAINT verdict_sentence_examined_check,
        ADD CONSTRAINT verdict_sentence_role_check CHECK (role IN ('supported', 'missed', 'rejected')),
        ADD CONSTRAINT verdict_sentence_examined_check
            CHECK (examined IS NULL OR (role = 'rejected' AND examined > 0 AND examined < 1));
    COMMENT ON COLUMN verdict_sentence.examined IS
        'With what probability a rejected one was looked at; null: for certain.';
    COMMENT ON TABLE verdict_sentence IS
        'Sentences that a verdict names. What is missed was not returned and supports as well.';
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
