"""Vectors have the dimension of their collection; encoders behind servers and trust in rerankers are kept."""

from typing import Any

from alembic import op

from engram.config.settings import Settings

revision = "2026.13"
down_revision = "2026.12"
branch_labels = None
depends_on = None

DEFAULT_DIMENSION = 384
"""Of a database without collections that goes back to one dimension, where no setting names another."""

# MAIN keeps vectors in the row as PLAIN does, but lets those that a page cannot hold leave it.
WITHOUT_DIMENSION = """
    DO $$ DECLARE held record; BEGIN
        FOR held IN
            SELECT c.oid::regclass AS name, a.attname, a.attstorage FROM pg_attribute a
            JOIN pg_class c ON c.oid = a.attrelid
            WHERE a.atttypid = 'vector'::regtype AND a.attnum > 0 AND NOT a.attisdropped
              AND c.relkind IN ('r', 'p') AND NOT c.relispartition
              AND c.relnamespace = current_schema()::regnamespace
        LOOP
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I TYPE vector', held.name, held.attname);
            IF held.attstorage = 'p' THEN
                EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE MAIN', held.name, held.attname);
            END IF;
        END LOOP;
    END $$
"""
# Their statements differ from what queries ask for; workers build those of large collections anew.
WITHOUT_VECTOR_INDEXES = """
    DO $$ DECLARE held record; BEGIN
        FOR held IN
            SELECT i.oid::regclass AS name FROM pg_class i JOIN pg_am method ON method.oid = i.relam
            WHERE method.amname = 'hnsw' AND i.relnamespace = current_schema()::regnamespace
        LOOP EXECUTE format('DROP INDEX %s', held.name); END LOOP;
    END $$;
    UPDATE collection SET indexed = '{}', index_recall = '{}' WHERE indexed <> '{}' OR index_recall <> '{}';
"""
UP = """
    ALTER TABLE collection ADD encoder_dimension INTEGER,
        ADD CONSTRAINT collection_encoder_dimension_check CHECK (encoder_dimension BETWEEN 1 AND 4096);
    UPDATE collection SET encoder_dimension = {dimension};
    ALTER TABLE collection ALTER encoder_dimension SET NOT NULL;
    COMMENT ON COLUMN collection.encoder_dimension IS 'Length of each of its vectors.';

    CREATE TABLE encoder (
        fingerprint TEXT NOT NULL,
        model TEXT NOT NULL,
        dimension INTEGER NOT NULL,
        probes BYTEA NOT NULL,
        created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
        CONSTRAINT encoder_pkey PRIMARY KEY (fingerprint),
        CONSTRAINT encoder_dimension_check CHECK (dimension BETWEEN 1 AND 4096)
    );
    COMMENT ON TABLE encoder IS
        'Encoders behind a server, which shows no weights: known by what they make of probes.';
    COMMENT ON COLUMN encoder.probes IS 'Vectors of fixed texts, one after the other, float32 little-endian.';
"""
RERANKER_UP = """
    ALTER TABLE episode ADD reranker TEXT, ADD reranked BYTEA;
    ALTER TABLE judged_query ADD reranker TEXT, ADD reranked BYTEA;
    COMMENT ON COLUMN episode.reranker IS
        'Fingerprint of the belief in a reranker that was asked; null: none was.';
    COMMENT ON COLUMN episode.reranked IS
        'Of the candidates: (n, 2) float32, own score and log odds.';
    COMMENT ON COLUMN judged_query.reranker IS
        'Fingerprint of the belief in a reranker that was asked; null: none was.';
    COMMENT ON COLUMN judged_query.reranked IS
        'Of the candidates: (n, 2) float32, own score and log odds.';
    ALTER TABLE ranking_belief DROP CONSTRAINT ranking_belief_model_check, ADD CONSTRAINT
        ranking_belief_model_check CHECK (model IN ('ranking', 'reranker', 'round', 'sufficiency'));
    ALTER TABLE ranking_audit DROP CONSTRAINT ranking_audit_model_check, ADD CONSTRAINT
        ranking_audit_model_check CHECK (model IN ('ranking', 'reranker', 'round', 'sufficiency'));
"""
RERANKER_DOWN = """
    DELETE FROM ranking_audit WHERE model = 'reranker';
    DELETE FROM ranking_belief WHERE model = 'reranker';
    ALTER TABLE ranking_audit DROP CONSTRAINT ranking_audit_model_check, ADD CONSTRAINT
        ranking_audit_model_check CHECK (model IN ('ranking', 'round', 'sufficiency'));
    ALTER TABLE ranking_belief DROP CONSTRAINT ranking_belief_model_check, ADD CONSTRAINT
        ranking_belief_model_check CHECK (model IN ('ranking', 'round', 'sufficiency'));
    ALTER TABLE judged_query DROP reranker, DROP reranked;
    ALTER TABLE episode DROP reranker, DROP reranked;
"""
# Vectors of other dimensions that do not serve are given up; those that serve keep the database from going back.
DOWN = """
    DELETE FROM staged_embedding WHERE vector_dims(embedding) <> {dimension};
    DO $$ DECLARE held record; BEGIN
        FOR held IN
            SELECT c.oid::regclass AS name, a.attname, a.attstorage FROM pg_attribute a
            JOIN pg_class c ON c.oid = a.attrelid
            WHERE a.atttypid = 'vector'::regtype AND a.attnum > 0 AND NOT a.attisdropped
              AND c.relkind IN ('r', 'p') AND NOT c.relispartition
              AND c.relnamespace = current_schema()::regnamespace
        LOOP
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I TYPE vector({dimension})', held.name, held.attname);
            IF held.attstorage = 'm' THEN
                EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET STORAGE PLAIN', held.name, held.attname);
            END IF;
        END LOOP;
    END $$;
    DROP TABLE encoder;
    ALTER TABLE collection DROP encoder_dimension;
"""


def upgrade() -> None:
    driver = op.get_bind().connection.cursor()
    driver.execute(
        "SELECT atttypmod FROM pg_attribute WHERE attrelid = 'sentence'::regclass AND attname = 'embedding'"
    )
    ((dimension,),) = driver.fetchall()
    driver.execute(WITHOUT_VECTOR_INDEXES)
    driver.execute(WITHOUT_DIMENSION)
    driver.execute(UP.replace("{dimension}", str(dimension)))
    driver.execute(RERANKER_UP)


def downgrade() -> None:
    driver = op.get_bind().connection.cursor()
    dimension = _one_dimension(driver)
    driver.execute(WITHOUT_VECTOR_INDEXES)
    driver.execute(RERANKER_DOWN)
    driver.execute(DOWN.replace("{dimension}", str(dimension)))


def _one_dimension(driver: Any) -> int:
    driver.execute("SELECT DISTINCT encoder_dimension FROM collection ORDER BY 1")
    dimensions = [row[0] for row in driver.fetchall()]
    if len(dimensions) > 1:
        held = ", ".join(map(str, dimensions))
        raise ValueError(
            f"collections hold vectors of several dimensions ({held}), which the earlier schema cannot"
        )
    return int(dimensions[0] if dimensions else Settings().embedding_dimension or DEFAULT_DIMENSION)
