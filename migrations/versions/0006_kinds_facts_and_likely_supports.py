"""Kinds of corpora go by questions too, facts by a setting of the collection, and supports may be likely ones."""

from alembic import op

revision = "2026.6"
down_revision = "2026.5"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE collection ADD passage_facts TEXT NOT NULL DEFAULT 'auto',
        ADD CONSTRAINT collection_passage_facts_check CHECK (passage_facts IN ('auto', 'on', 'off'));
    COMMENT ON COLUMN collection.passage_facts IS
        'Which passages facts are read from: on (all), off (none), auto (those about their title).';
    ALTER TABLE collection ADD question_share REAL, ADD question_count INTEGER NOT NULL DEFAULT 0;
    COMMENT ON COLUMN collection.question_share IS
        'Share of its questions that name what a candidate is titled after; null until enough were asked.';
    COMMENT ON COLUMN collection.question_count IS 'Different questions that question_share was looked for in.';
    COMMENT ON COLUMN collection.fixed_kind IS
        'The kind of corpus that somebody set; null: by what was measured.';
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
    ALTER TABLE collection DROP question_share, DROP question_count;
    COMMENT ON COLUMN collection.fixed_kind IS 'The kind of corpus that somebody set; null: by title_share.';
    ALTER TABLE collection DROP passage_facts;
"""


def upgrade() -> None:
    op.get_bind().connection.cursor().execute(UP)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
