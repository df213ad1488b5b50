"""Queries carry the caller's trace id, and pulled scores are remembered so that each counts once."""

from alembic import op

from engram.migrations.rules import EVERY_TABLE

revision = "2026.10"
down_revision = "2026.9"
branch_labels = None
depends_on = None

UP = """
    ALTER TABLE episode ADD trace_id TEXT;
    COMMENT ON COLUMN episode.trace_id IS 'The caller''s id of the trace or message that the query belongs to.';
    CREATE INDEX episode_trace_idx ON episode (collection_id, trace_id) WHERE trace_id IS NOT NULL;

    CREATE TABLE pulled_score (
        collection_id BIGINT NOT NULL,
        principal TEXT DEFAULT 'local' NOT NULL,
        source TEXT NOT NULL,
        score_id TEXT NOT NULL,
        judge TEXT NOT NULL,
        rating TEXT,
        digest TEXT NOT NULL,
        revision INTEGER NOT NULL,
        scored_at TIMESTAMP WITH TIME ZONE NOT NULL,
        queries UUID[] NOT NULL,
        updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT pulled_score_pkey PRIMARY KEY (collection_id, principal, source, score_id),
        CONSTRAINT pulled_score_collection_fkey
            FOREIGN KEY (collection_id) REFERENCES collection (id) ON DELETE CASCADE,
        CONSTRAINT pulled_score_rating_check CHECK (rating IN ('up', 'down'))
    );
    COMMENT ON TABLE pulled_score IS 'Scores of other products that became ratings, as they were last sent.';
    COMMENT ON COLUMN pulled_score.source IS 'The name of the pull, such as langfuse@cloud.langfuse.com.';
    COMMENT ON COLUMN pulled_score.principal IS 'Whose pull it is; those of others do not touch it.';
    COMMENT ON COLUMN pulled_score.rating IS 'Null: the score was deleted, and its rating revoked.';
    COMMENT ON COLUMN pulled_score.revision IS 'How often it was sent; part of the Idempotency-Key.';
    COMMENT ON COLUMN pulled_score.digest IS 'SHA-256 of everything that the rating says; a change is sent again.';
    COMMENT ON COLUMN pulled_score.queries IS 'Queries that were rated.';
"""
DOWN = """
    DROP TABLE pulled_score;
    DROP INDEX episode_trace_idx;
    ALTER TABLE episode DROP trace_id;
"""


def upgrade() -> None:
    cursor = op.get_bind().connection.cursor()
    cursor.execute(UP)
    for rule in EVERY_TABLE:
        cursor.execute(rule)


def downgrade() -> None:
    op.get_bind().connection.cursor().execute(DOWN)
