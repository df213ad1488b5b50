CREATE TABLE episode (
    collection_id BIGINT NOT NULL,
    id UUID NOT NULL,
    question TEXT NOT NULL,
    embedding vector({dimension}) NOT NULL,
    time_constraint TEXT,
    time_embedding vector({dimension}),
    memory TEXT NOT NULL,
    profile TEXT NOT NULL,
    strategy TEXT NOT NULL,
    filter JSONB,
    activated BIGINT[] NOT NULL,
    shown BIGINT[] NOT NULL,
    explored BIGINT[],
    hops SMALLINT NOT NULL,
    total_ms REAL NOT NULL,
    arm TEXT,
    principal TEXT DEFAULT 'local' NOT NULL,
    answer JSONB NOT NULL,
    trace JSONB NOT NULL,
    ranked BIGINT[],
    features BYTEA,
    enough BYTEA,
    created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    CONSTRAINT episode_pkey PRIMARY KEY (collection_id, id),
    CONSTRAINT episode_memory_check CHECK (memory IN ('off', 'read')),
    CONSTRAINT episode_profile_check CHECK (profile IN ('paper', 'default')),
    CONSTRAINT episode_strategy_check CHECK (strategy IN ('graph', 'dense', 'lexical', 'hybrid'))
) PARTITION BY RANGE (id);
CREATE INDEX episode_collection_id_created_at_id_idx ON episode (collection_id, created_at, id);
COMMENT ON TABLE episode IS 'No foreign key: a new week''s partition would lock out who writes to collections.';
COMMENT ON COLUMN episode.id IS 'Of version 7: its time decides on the partition.';
COMMENT ON COLUMN episode.filter IS 'What metadata its passages had to have.';
COMMENT ON COLUMN episode.activated IS 'Sentences selected in any hop.';
COMMENT ON COLUMN episode.shown IS 'The answer''s passages, in order.';
COMMENT ON COLUMN episode.explored IS 'Passages that exploration put into the answer.';
COMMENT ON COLUMN episode.arm IS 'Given by the collection''s experiment.';
COMMENT ON COLUMN episode.principal IS 'Whose request it was.';
COMMENT ON COLUMN episode.answer IS 'What was answered, without the texts.';
COMMENT ON COLUMN episode.trace IS 'How it came about, without the texts.';
COMMENT ON COLUMN episode.ranked IS 'Best candidates; null where features alone did not rank.';
COMMENT ON COLUMN episode.features IS 'Of the candidates: (n, k) float32, little-endian, row by row.';
COMMENT ON COLUMN episode.enough IS 'Features of the answer: (k,) float32; the first of ranked were shown.';
