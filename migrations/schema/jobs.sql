CREATE TABLE idempotency (
    collection_id BIGINT NOT NULL,
    key TEXT NOT NULL,
    body_hash BYTEA NOT NULL,
    answer JSONB NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT idempotency_pkey PRIMARY KEY (collection_id, key),
    CONSTRAINT idempotency_collection_fkey FOREIGN KEY(collection_id) REFERENCES collection (id) ON DELETE CASCADE
);
COMMENT ON TABLE idempotency IS 'First answers of keyed writes other than feedback, whose log keeps its own keys.';

CREATE TABLE ingest_job (
    collection_id BIGINT NOT NULL,
    id UUID NOT NULL,
    key_building TEXT,
    revocation JSONB,
    status TEXT DEFAULT 'receiving' NOT NULL,
    received BIGINT DEFAULT 0 NOT NULL,
    created BIGINT DEFAULT 0 NOT NULL,
    updated BIGINT DEFAULT 0 NOT NULL,
    unchanged BIGINT DEFAULT 0 NOT NULL,
    rejected BIGINT DEFAULT 0 NOT NULL,
    attempts INTEGER DEFAULT 0 NOT NULL,
    error TEXT,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT ingest_job_pkey PRIMARY KEY (collection_id, id),
    CONSTRAINT ingest_job_status_check CHECK (status IN ('receiving', 'queued', 'running', 'succeeded', 'failed')),
    CONSTRAINT ingest_job_key_building_check CHECK (key_building IN ('full', 'title', 'abstract', 'keywords')),
    CONSTRAINT ingest_job_collection_fkey FOREIGN KEY(collection_id) REFERENCES collection (id) ON DELETE CASCADE
);
CREATE INDEX ingest_job_open_idx ON ingest_job (created_at) WHERE status IN ('receiving', 'queued', 'running');
CREATE UNIQUE INDEX ingest_job_rekey_idx ON ingest_job (collection_id) WHERE key_building IS NOT NULL AND status IN ('queued', 'running');
COMMENT ON COLUMN ingest_job.key_building IS 'Of a re-key job: what base keys shall be made of; null: it ingests.';
COMMENT ON COLUMN ingest_job.revocation IS 'Of a job that revokes verdicts: which ones; null: another job.';

CREATE TABLE ingest_error (
    collection_id BIGINT NOT NULL,
    job_id UUID NOT NULL,
    line BIGINT NOT NULL,
    reason TEXT NOT NULL,
    CONSTRAINT ingest_error_pkey PRIMARY KEY (collection_id, job_id, line),
    CONSTRAINT ingest_error_ingest_job_fkey FOREIGN KEY(collection_id, job_id) REFERENCES ingest_job (collection_id, id) ON DELETE CASCADE
);

CREATE TABLE ingest_line (
    collection_id BIGINT NOT NULL,
    job_id UUID NOT NULL,
    line BIGINT NOT NULL,
    passage JSONB NOT NULL,
    CONSTRAINT ingest_line_pkey PRIMARY KEY (collection_id, job_id, line),
    CONSTRAINT ingest_line_ingest_job_fkey FOREIGN KEY(collection_id, job_id) REFERENCES ingest_job (collection_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE ingest_line IS 'Accepted and not yet ingested; a line leaves in the transaction that ingests it.';
