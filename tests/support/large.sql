CREATE TEMP TABLE direction AS
SELECT n, (SELECT array_agg(sin(n * 37 + k * k)) FROM generate_series(1, {dimension}) AS k)::vector AS v
FROM generate_series(0, {vectors} - 1) AS n;
CREATE UNIQUE INDEX ON direction (n);
CREATE FUNCTION pg_temp.at(place bigint) RETURNS vector STABLE LANGUAGE sql AS $$
    SELECT l2_normalize(a.v + b.v) FROM direction a, direction b
    WHERE a.n = place % {vectors} AND b.n = (place / {vectors} * 7 + 1 + place) % {vectors}
$$;

INSERT INTO collection (id, name, encoder_model, encoder_fingerprint, encoder_dimension, passage_count,
                        sentence_count, entity_count, lexical_length, key_generation)
OVERRIDING SYSTEM VALUE VALUES (1, 'large', '', '', {dimension}, {passages}, {sentences}, {sentences},
                                {passages} * 60, 2);
INSERT INTO passage (collection_id, id, external_id, title, text, language, metadata, content_hash, embedding)
SELECT 1, n, 'p' || n, 'Title ' || n, repeat('word ', 60), 'en', jsonb_build_object('part', n % 10),
       sha256(n::text::bytea), pg_temp.at(n)::halfvec
FROM generate_series(1, {passages}::bigint) AS n;
INSERT INTO time_expression (collection_id, id, text, starts_on, ends_on, embedding)
SELECT 1, n, (1000 + n)::text, make_date(1000 + n::int, 1, 1), make_date(1000 + n::int, 12, 31), pg_temp.at(n)::halfvec
FROM generate_series(1, 1000::bigint) AS n;
INSERT INTO sentence (collection_id, id, passage_id, position, text, time_expression_id, embedding)
SELECT 1, n, (n + 3) / 4, (n + 3) % 4, repeat('word ', 15), CASE WHEN n % 5 = 0 THEN n % 1000 + 1 END,
       pg_temp.at(n)::halfvec
FROM generate_series(1, {sentences}::bigint) AS n;
INSERT INTO entity (collection_id, id, name, surface, spelling, embedding)
SELECT 1, n, 'name ' || n, 'Name ' || n, 'name' || n, pg_temp.at(n)::halfvec
FROM generate_series(1, {sentences}::bigint) AS n;
INSERT INTO entity_sentence (collection_id, entity_id, sentence_id, passage_id)
SELECT DISTINCT 1, 1 + (n * (k * k + 1)) % ({sentences} / (1 + 20 * (k % 2))), n, (n + 3) / 4
FROM generate_series(1, {sentences}::bigint) AS n, generate_series(0, 4) AS k;
INSERT INTO lexical_term (collection_id, id, term, passage_count)
SELECT 1, n, 'term' || n, {passages} * 40 / 10000 FROM generate_series(1, 10000::bigint) AS n;
INSERT INTO lexical_passage (collection_id, passage_id, analyser, length, term_ids)
SELECT 1, n, 1, 60, ARRAY(SELECT 1 + (n * 40 + k) % 10000 FROM generate_series(1, 40) AS k)
FROM generate_series(1, {passages}::bigint) AS n;
INSERT INTO lexical_posting (collection_id, term_id, passage_id, frequency, length)
SELECT 1, term, passage_id, 1, 60 FROM lexical_passage, unnest(term_ids) AS term;

CREATE TABLE episode_20240101 PARTITION OF episode
FOR VALUES FROM ('018cc251-f400-0000-0000-000000000000') TO ('018ce62b-cc00-0000-0000-000000000000');
CREATE FUNCTION pg_temp.query(n bigint) RETURNS uuid IMMUTABLE LANGUAGE sql AS $$
    SELECT ('018cc251-f400-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid
$$;
INSERT INTO episode (collection_id, id, question, embedding, time_embedding, memory, profile, strategy, activated,
                     shown, hops, total_ms, answer, trace, ranked, created_at)
SELECT 1, pg_temp.query(n), 'Question ' || n, pg_temp.at(n), pg_temp.at(n + 1), 'read', 'default', 'graph',
       ARRAY[4 * n, 4 * n + 1], ARRAY[n], 3, 10, '{{}}', '{{}}', ARRAY[n, n + 1],
       now() - n * interval '1 minute'
FROM generate_series(1, {passages}::bigint) AS n;
INSERT INTO question (collection_id, id, text_hash, text, embedding)
SELECT 1, n, sha256(n::text::bytea), 'Question ' || n, pg_temp.at(n)
FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO judged_query (collection_id, id, question, embedding, time_embedding, profile, activated, answered_at,
                          ranked)
SELECT collection_id, id, question, embedding, time_embedding, profile, activated, created_at, ranked FROM episode
ORDER BY created_at DESC LIMIT {events};
INSERT INTO feedback_event (collection_id, id, query_id, idempotency_key, body_hash, judge, version, partial,
                            confidence, spared, status, received_at, applied_at, applied_sequence, question_id,
                            observation_noise_positive, observation_noise_negative, process_noise, daily_share,
                            contested_share, daily_weight_verdicts)
SELECT 1, n, pg_temp.query(n), 'key ' || n, '', 'judge ' || n % 20, 1, false, 1, '{{}}',
       CASE WHEN n % 50 = 0 THEN 'revoked' WHEN n % 50 = 1 THEN 'parked' ELSE 'applied' END,
       now() - n * interval '1 minute', now(), n, n, 0.5, 0.5, 0.01, 0.98, 0.1, 50
FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO verdict_sentence (collection_id, event_id, sentence_id, role)
SELECT 1, n, 4 * n + k, 'supported' FROM generate_series(1, {events}::bigint) AS n, generate_series(0, 3) AS k;
INSERT INTO verdict_passage (collection_id, event_id, passage_id)
SELECT 1, n, n FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO verdict_expansion (collection_id, event_id, place, method, text)
SELECT 1, n, 1, 'facet', 'Unit ' || n FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO memory_audit (collection_id, event_id, sentence_id, channel, target, observation_noise, gain, residual,
                          perplexity_before, perplexity_after, process_noise)
SELECT 1, n, 4 * n + k, channel, 1, 0.5, 0.5, 0.1, 1, 0.5, 0.01
FROM generate_series(1, {events}::bigint) AS n, generate_series(0, 3) AS k,
     unnest('{{task,time,recall}}'::text[]) AS channel;
INSERT INTO question_support (collection_id, question_id, sentence_id, support, perplexity, acceptance, update_count, complete)
SELECT 1, n, 4 * n + k, 1, 0.2, 1, 1, true FROM generate_series(1, {events}::bigint) AS n, generate_series(0, 3) AS k;
INSERT INTO sentence_memory (collection_id, sentence_id, channel, vector, perplexity, update_count,
                             time_expression_id)
SELECT 1, 4 * n + k, channel, pg_temp.at(n + k), 0.5, 1, CASE channel WHEN 'time' THEN n % 1000 + 1 END
FROM generate_series(1, {events}::bigint) AS n, generate_series(0, 3) AS k,
     unnest('{{task,time}}'::text[]) AS channel;
INSERT INTO learned_weights (collection_id, model, prior, information, precision, events)
SELECT 1, model, 'prior', array_fill(0::float8, ARRAY[14]), array_fill(0::float8, ARRAY[196]), {events}
FROM unnest('{{sufficiency,reranker}}'::text[]) AS model;
INSERT INTO weight_audit (collection_id, event_id, model, prior, observation_noise, surprise, information,
                           precision)
SELECT 1, n, model, 'prior', 0.5, 0.5, array_fill(0::float8, ARRAY[14]), array_fill(0::float8, ARRAY[196])
FROM generate_series(1, {events}::bigint) AS n, unnest('{{sufficiency,reranker}}'::text[]) AS model;
INSERT INTO judge (collection_id, name) SELECT 1, 'judge ' || n FROM generate_series(1, 500) AS n;

INSERT INTO expansion_unit (collection_id, id, text_hash, method, text, embedding, terms, frequencies)
SELECT 1, n, sha256(n::text::bytea), 'facet', 'Unit ' || n, pg_temp.at(n), ARRAY['term' || n], ARRAY[1]
FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO key_generation (collection_id, number, parent, active, reason, rules, events, passages)
SELECT 1, n, n - 1, true, 'pending', '{{}}', {events} / 100, {events} / 100 FROM generate_series(1, 100) AS n;
INSERT INTO key_evidence (collection_id, event_id, gate, gain, strength, generation)
SELECT 1, n, 'retrieval', 0.1, 0.5, CASE WHEN n % 10 > 0 THEN n % 100 + 1 END
FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO key_credit (collection_id, event_id, passage_id, unit_id, gain, weight)
SELECT 1, n, n + p, 1 + (n + u) % {events}, 0.1, 0.5
FROM generate_series(1, {events}::bigint) AS n, generate_series(0, 1) AS p, generate_series(0, 1) AS u;
INSERT INTO expansion_memory (collection_id, passage_id, unit_id, score)
SELECT collection_id, passage_id, unit_id, sum(gain * weight) FROM key_credit GROUP BY 1, 2, 3;
INSERT INTO passage_key (collection_id, passage_id, generation, vector, units, scores)
SELECT 1, n, 1, pg_temp.at(n + 7), ARRAY[n], ARRAY[0.1] FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO evolved_posting (collection_id, term, passage_id, base, frequency, length)
SELECT 1, 'term' || 1 + (n * 8 + k) % 10000, n, 0, 1, 60
FROM generate_series(1, {events}::bigint) AS n, generate_series(1, 8) AS k;
INSERT INTO key_evolution (collection_id) VALUES (1);

INSERT INTO fact_entity (collection_id, id, name, bare, surface, tail)
SELECT 1, n, 'name ' || n, 'name ' || n, 'Name ' || n, n::text FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO fact (collection_id, id, subject_id, predicate, object_id, named_subject_id, named_object_id,
                  object_text, object_key, object_kind, observations)
SELECT 1, n, n, 'relation ' || n % 50, 1 + n % {events}, n, 1 + n % {events}, 'Name', '', 'entity', 2
FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO fact_event (collection_id, id, kind, judge, idempotency_key, body_hash, fact_id, sequence,
                        observation_noise_positive, observation_noise_negative, process_noise, daily_share,
                        contested_share)
SELECT 1, n, 'assert', 'judge ' || n % 20, 'key ' || n, '', n, 2 * n, 0.5, 0.5, 0.01, 0.98, 0.1
FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO fact_statement (collection_id, id, event_id, source, text)
SELECT 1, n, n, 'judge ' || n % 20, repeat('word ', 15) FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO fact_source (collection_id, id, fact_id, passage_id, statement_id, confidence, sequence,
                         observation_noise_positive, observation_noise_negative, process_noise)
SELECT 1, 2 * n + k, n, n, 2 * n + k, 1, 2 * n + k, 0.5, 0.5, 0.01
FROM generate_series(1, {events}::bigint) AS n, generate_series(0, 1) AS k;
INSERT INTO fact_audit (collection_id, fact_id, sequence, target, observation_noise, gain, residual,
                        perplexity_before, perplexity_after, belief, at)
SELECT 1, fact_id, sequence, 1, 0.5, 0.5, 0.1, 1, 0.5, 0.75, now() FROM fact_source;

INSERT INTO job (collection_id, id, kind, lane, status, received)
SELECT 1, md5(n::text)::uuid, 'ingest', 'graph', 'succeeded', 100 FROM generate_series(1, 1000) AS n;
INSERT INTO ingest_line (collection_id, job_id, line, passage)
SELECT 1, md5((n % 10)::text)::uuid, n, '{{}}' FROM generate_series(1, {passages}) AS n;
INSERT INTO ingest_error (collection_id, job_id, line, reason)
SELECT 1, md5((n % 10)::text)::uuid, n, 'empty' FROM generate_series(1, {passages}) AS n;
INSERT INTO staged_key (collection_id, job_id, passage_id, content_hash, embedding)
SELECT 1, md5('1')::uuid, n, '', pg_temp.at(n) FROM generate_series(1, {events}::bigint) AS n;
INSERT INTO idempotency (collection_id, key, body_hash, answer)
SELECT 1, 'key ' || n, '', '{{}}' FROM generate_series(1, {passages}) AS n;

SELECT setval(pg_get_serial_sequence(name, 'id'), 10 * {sentences}) FROM unnest(
    '{{collection,passage,time_expression,sentence,entity,lexical_term,question,feedback_event,expansion_unit,
       fact_entity,fact,fact_event,fact_statement,fact_source}}'::text[]
) AS name;
SELECT setval('feedback_applied', 10 * {sentences}), setval('fact_said', 10 * {sentences});
DROP TABLE direction CASCADE;
