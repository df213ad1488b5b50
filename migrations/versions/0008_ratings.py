"""Verdicts may be made of ratings, and supports remember how sufficient the judged answers were."""

from alembic import op

revision = "2026.8"
down_revision = "2026.7"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE feedback_event ADD rating TEXT, ADD reason TEXT,
        ADD CONSTRAINT feedback_event_rating_check CHECK (rating IN ('up', 'down', 'withdrawn'));
    COMMENT ON COLUMN feedback_event.rating IS
        'Thumb that the verdict was made of; null where sentences were judged.';
    COMMENT ON COLUMN feedback_event.reason IS 'Reason of the rating.';
    ALTER TABLE judged_query ADD sufficiency FLOAT(53);
    COMMENT ON COLUMN judged_query.sufficiency IS
        'Probability that the first five passages of the answer held all the evidence; null: unknown.';
    ALTER TABLE question_support ADD answered FLOAT(53) NOT NULL DEFAULT 0,
        ADD sufficiency FLOAT(53) NOT NULL DEFAULT 0;
    COMMENT ON COLUMN question_support.answered IS
        'Highest sufficiency of the answers whose verdicts supported the sentence.';
    COMMENT ON COLUMN question_support.sufficiency IS
        'Probability that an answer is sufficient in which all evidence of the question leads.';
"""
# Earlier verdicts judge queries without a sufficiency: a replay gives their supports 0 as well.
DOWN = """
    ALTER TABLE question_support DROP answered, DROP sufficiency;
    ALTER TABLE judged_query DROP sufficiency;
    UPDATE feedback_event SET version = 3 WHERE version = 4;
    ALTER TABLE feedback_event DROP rating, DROP reason;
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
