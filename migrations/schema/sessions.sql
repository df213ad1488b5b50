CREATE TABLE session (
    collection_id BIGINT NOT NULL,
    id UUID NOT NULL,
    job_id UUID,
    principal TEXT DEFAULT 'local' NOT NULL,
    trusted BOOLEAN DEFAULT true NOT NULL,
    llm_tokens BIGINT,
    question TEXT NOT NULL,
    planner TEXT NOT NULL,
    asked JSONB NOT NULL,
    budget JSONB NOT NULL,
    status TEXT DEFAULT 'running' NOT NULL,
    stop_reason TEXT,
    rounds SMALLINT DEFAULT 0 NOT NULL,
    cost JSONB DEFAULT '{}' NOT NULL,
    ranked BIGINT[] DEFAULT '{}' NOT NULL,
    enough REAL,
    covered REAL,
    notes JSONB DEFAULT '[]' NOT NULL,
    plan_state JSONB DEFAULT '{}' NOT NULL,
    conclusion JSONB,
    warnings JSONB DEFAULT '[]' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    finished_at TIMESTAMP WITH TIME ZONE,
    CONSTRAINT session_pkey PRIMARY KEY (collection_id, id),
    CONSTRAINT session_status_check CHECK (status IN ('running', 'stopped', 'cancelled', 'failed')),
    CONSTRAINT session_collection_fkey FOREIGN KEY(collection_id) REFERENCES collection (id) ON DELETE CASCADE
);
COMMENT ON COLUMN session.id IS 'Of version 7.';
COMMENT ON COLUMN session.job_id IS 'The job that runs it, or ran it last; null before the first.';
COMMENT ON COLUMN session.principal IS 'Whose request it was.';
COMMENT ON COLUMN session.trusted IS 'Whether its judge counts in full.';
COMMENT ON COLUMN session.llm_tokens IS 'What a day''s calls of a language model may cost whoever asked.';
COMMENT ON COLUMN session.asked IS 'How it is to retrieve, stop and answer.';
COMMENT ON COLUMN session.ranked IS 'Passages, best first.';
COMMENT ON COLUMN session.enough IS 'Probability that the best passages hold all the evidence.';
COMMENT ON COLUMN session.covered IS 'Share of what the question asks for that the pool has.';
COMMENT ON COLUMN session.notes IS 'The working memory.';
COMMENT ON COLUMN session.plan_state IS 'The planner''s own.';
COMMENT ON COLUMN session.conclusion IS 'The answer in words.';

CREATE TABLE session_evidence (
    collection_id BIGINT NOT NULL,
    session_id UUID NOT NULL,
    sentence_id BIGINT NOT NULL,
    passage_id BIGINT NOT NULL,
    place SMALLINT NOT NULL,
    round SMALLINT NOT NULL,
    query SMALLINT,
    gap TEXT,
    score REAL,
    CONSTRAINT session_evidence_pkey PRIMARY KEY (collection_id, session_id, sentence_id),
    CONSTRAINT session_evidence_session_fkey FOREIGN KEY(collection_id, session_id) REFERENCES session (collection_id, id) ON DELETE CASCADE
);
COMMENT ON TABLE session_evidence IS 'The evidence pool: sentences by id, so that a text that is deleted is in no pool.';
COMMENT ON COLUMN session_evidence.place IS 'In the order in which sentences came.';
COMMENT ON COLUMN session_evidence.query IS 'Of the round''s queries; null: the caller brought it.';

CREATE TABLE session_passage (
    collection_id BIGINT NOT NULL,
    session_id UUID NOT NULL,
    passage_id BIGINT NOT NULL,
    round SMALLINT NOT NULL,
    CONSTRAINT session_passage_pkey PRIMARY KEY (collection_id, session_id, passage_id),
    CONSTRAINT session_passage_session_fkey FOREIGN KEY(collection_id, session_id) REFERENCES session (collection_id, id) ON DELETE CASCADE
);
CREATE INDEX session_passage_read_idx ON session_passage (collection_id, passage_id);
COMMENT ON TABLE session_passage IS 'Which passages a session has read: what it made of them goes with any of them.';
COMMENT ON COLUMN session_passage.round IS 'That read it first.';

CREATE TABLE session_round (
    collection_id BIGINT NOT NULL,
    session_id UUID NOT NULL,
    number SMALLINT NOT NULL,
    action TEXT NOT NULL,
    said JSONB NOT NULL,
    episodes UUID[] NOT NULL,
    curated JSONB NOT NULL,
    enough REAL,
    covered REAL,
    cost JSONB NOT NULL,
    warnings JSONB DEFAULT '[]' NOT NULL,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT session_round_pkey PRIMARY KEY (collection_id, session_id, number),
    CONSTRAINT session_round_session_fkey FOREIGN KEY(collection_id, session_id) REFERENCES session (collection_id, id) ON DELETE CASCADE
);
COMMENT ON COLUMN session_round.said IS 'Sub-question, gap, queries, answer: what was made of passages.';
COMMENT ON COLUMN session_round.episodes IS 'Of the queries, in their order.';
COMMENT ON COLUMN session_round.curated IS 'What became of the sentences that were looked at.';

