WITH c AS MATERIALIZED ( -- before any row in it, as collections.lock_against_deletion says
        SELECT id FROM collection WHERE id = ANY(%(collections)s) AND deleted_at IS NULL ORDER BY id
        FOR KEY SHARE
    ), new AS MATERIALIZED ( -- of several with one key the first
        SELECT DISTINCT ON (c.id, given.principal, given.key) c.id AS collection_id, given.*
        FROM unnest(%(collections)s::bigint[], %(queries)s::uuid[], %(keys)s::text[], %(hashes)s::bytea[],
                    %(judges)s::text[], %(principals)s::text[], %(trusted)s::boolean[], %(partial)s::boolean[],
                    %(found)s::boolean[], %(right)s::boolean[], %(scores)s::float8[],
                    %(confidences)s::float8[], %(spared)s::text[], %(on_session)s::boolean[],
                    %(ratings)s::text[], %(reasons)s::text[])
            WITH ORDINALITY AS given(collection, query, key, hash, judge, principal, trusted, partial,
                                     retrieval_success, generation_success, generation_score, confidence,
                                     spared, on_session, rating, reason, n)
        JOIN c ON c.id = given.collection
        CROSS JOIN LATERAL (
            SELECT e.created_at, e.answer -> 'collapsed' AS collapsed FROM episode e
            WHERE e.collection_id = c.id AND e.id = given.query
              AND (%(checked)s OR e.principal = given.principal OR current_user <> 'engram_reader') OFFSET 0
        ) AS asked
        WHERE NOT EXISTS (
              SELECT FROM unnest(%(places)s::bigint[], %(sentences)s::bigint[]) AS named(n, id)
              WHERE named.n = given.n
                AND (SELECT s.id FROM sentence s WHERE s.collection_id = c.id AND s.id = named.id
                     AND (s.revised_at IS NULL OR asked.created_at >= ALL (s.revised_at))) IS NULL
          )
          AND NOT EXISTS (
              SELECT FROM unnest(%(places)s::bigint[], %(sentences)s::bigint[]) AS named(n, id)
              WHERE named.n = given.n
                AND asked.collapsed ? (SELECT s.passage_id::text FROM sentence s
                                       WHERE s.collection_id = c.id AND s.id = named.id)
          )
        ORDER BY c.id, given.principal, given.key, given.n
    ), event AS (
        INSERT INTO feedback_event
            (collection_id, query_id, idempotency_key, body_hash, judge, principal, trusted, version, partial,
             retrieval_success, generation_success, generation_score, confidence, spared, on_session, rating,
             reason)
        SELECT collection_id, query, key, hash, judge, principal, trusted, %(version)s, partial,
               retrieval_success, generation_success, generation_score, confidence, spared::bigint[],
               on_session, rating, reason
        FROM new ORDER BY collection_id, principal, key
        ON CONFLICT (collection_id, principal, idempotency_key) DO NOTHING
        RETURNING
collection_id, id, query_id, idempotency_key, body_hash, judge, principal, trusted, status, attempts, error,
received_at, applied_at, revoked_at
    ), copied AS (
        INSERT INTO judged_query
            (collection_id, id, question, embedding, time_constraint, time_embedding, profile, filter,
             activated, answered_at, ranked, answer_features, sufficiency, reranker, reranked, space, principal)
        SELECT asked.collection_id, e.id, e.question, e.embedding, e.time_constraint, e.time_embedding,
               e.profile, e.filter, e.activated, e.created_at, e.ranked, e.answer_features,
               (e.answer ->> 'sufficiency')::float8, e.reranker, e.reranked, e.space, e.principal
        FROM (SELECT DISTINCT collection_id, query_id FROM event) AS asked
        CROSS JOIN LATERAL (
            SELECT * FROM episode WHERE collection_id = asked.collection_id AND id = asked.query_id OFFSET 0
        ) AS e
        WHERE (SELECT judged.id FROM judged_query judged
               WHERE judged.collection_id = asked.collection_id AND judged.id = asked.query_id) IS NULL
        ORDER BY asked.collection_id, e.id
        ON CONFLICT (collection_id, id) DO NOTHING
    ), accepted AS (
        SELECT event.collection_id, event.id, new.n FROM event
        JOIN new ON new.collection_id = event.collection_id AND new.principal = event.principal
                AND new.key = event.idempotency_key
    ), naming AS (
        INSERT INTO verdict_sentence (collection_id, event_id, sentence_id, role, examined)
        SELECT accepted.collection_id, accepted.id, said.sentence, said.role, nullif(said.examined, 1)
        FROM accepted
        JOIN unnest(%(said_by)s::bigint[], %(said_of)s::bigint[], %(said)s::text[], %(examined)s::float8[])
            AS said(n, sentence, role, examined) USING (n)
    ), helping AS (
        INSERT INTO verdict_passage (collection_id, event_id, passage_id)
        SELECT accepted.collection_id, accepted.id, helped.passage FROM accepted
        JOIN unnest(%(helped_by)s::bigint[], %(helped)s::bigint[]) AS helped(n, passage) USING (n)
    ), bringing AS (
        INSERT INTO verdict_expansion (collection_id, event_id, place, method, text)
        SELECT accepted.collection_id, accepted.id, brought.place, brought.method, brought.text FROM accepted
        JOIN unnest(%(brought_by)s::bigint[], %(brought_at)s::bigint[], %(methods)s::text[],
                    %(texts)s::text[]) AS brought(n, place, method, text) USING (n)
    )
    SELECT * FROM event
