CREATE TABLE ingest_error (
    collection_id BIGINT NOT NULL,
    job_id UUID NOT NULL,
    line BIGINT NOT NULL,
    reason TEXT NOT NULL,
    CONSTRAINT ingest_error_pkey PRIMARY KEY (collection_id, job_id, line),
    CONSTRAINT ingest_error_job_fkey FOREIGN KEY(collection_id, job_id) REFERENCES job (collection_id, id) ON DELETE CASCADE
);

CREATE TABLE ingest_line (
    collection_id BIGINT NOT NULL,
    job_id UUID NOT NULL,
    line BIGINT NOT NULL,
    passage JSONB NOT NULL,
    CONSTRAINT ingest_line_pkey PRIMARY KEY (collection_id, job_id, line),
    CONSTRAINT ingest_line_job_fkey FOREIGN KEY(collection_id, job_id) REFERENCES job (collection_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE ingest_line IS 'Accepted and not yet ingested; a line leaves in the transaction that ingests it.';
