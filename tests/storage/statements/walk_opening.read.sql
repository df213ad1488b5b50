WITH called AS MATERIALIZED (
    SELECT given.name, called.id, called.surface
    FROM unnest(%(names)s::text[], %(spellings)s::text[]) AS given(name, spelling)
    CROSS JOIN LATERAL (
        SELECT * FROM (
            (SELECT e.id, CASE current_user WHEN 'engram_reader' THEN e.name ELSE e.surface END AS surface, 0 AS off FROM entity e
             WHERE e.collection_id = %(collection)s AND e.name = given.name)
            UNION ALL
            (SELECT e.id, CASE current_user WHEN 'engram_reader' THEN e.name ELSE e.surface END, 1 FROM entity e
             WHERE e.collection_id = %(collection)s AND e.spelling = given.spelling ORDER BY e.id LIMIT 1)
        ) AS either ORDER BY off LIMIT 1
    ) AS called
),
        active AS MATERIALIZED (SELECT * FROM (SELECT DISTINCT id, 1::float8 FROM called) AS given(entity_id, score)), linked AS (
            SELECT link.sentence_id, sum(active.score) AS activation
            FROM active CROSS JOIN LATERAL (
    SELECT l.sentence_id FROM entity_sentence l
    WHERE l.collection_id = %(collection)s AND l.entity_id = active.entity_id
    ORDER BY l.sentence_id LIMIT %(hub_limit)s
) AS link
            GROUP BY link.sentence_id ORDER BY activation DESC, link.sentence_id LIMIT %(candidate_limit)s
        ), reached AS MATERIALIZED (
            SELECT sentence_id, activation FROM linked
            UNION ALL
            SELECT extra, 0 FROM unnest(%(recalled)s::bigint[]) AS extra
            WHERE NOT EXISTS (SELECT FROM linked WHERE sentence_id = extra)
        ), candidates AS MATERIALIZED (
            SELECT * FROM (
                SELECT s.id, s.passage_id, reached.activation, -(s.embedding <#> (SELECT %(q)s::halfvec)) AS semantic
                FROM reached FULL JOIN (
        SELECT s.* FROM sentence s
        WHERE s.collection_id = %(collection)s AND s.id = ANY(ARRAY(SELECT sentence_id FROM reached)) AND true OFFSET 0
    ) AS s ON s.id = reached.sentence_id
                OFFSET 0
            ) AS found WHERE id IS NOT NULL
        )
        SELECT columns.* , (SELECT json_agg(row) FROM (SELECT * FROM called) AS row) AS called, (
    SELECT jsonb_build_object('space', space, 'base_keys', keys_version, 'evolved_keys', (
        SELECT version FROM evolved_key_version WHERE collection_id = %(collection)s
    ), 'questions', memory.version, 'sampled_until', coalesce(memory.sampled_until, 0),
    'question_generation', coalesce(memory.question_generation, 0))
    FROM collection LEFT JOIN question_memory memory ON memory.collection_id = %(collection)s
    WHERE collection.id = %(collection)s
) AS current, (SELECT json_agg(row) FROM (
        SELECT DISTINCT ON (judged.judge) judged.enough, judged.noise, judged.share FROM
    (
        SELECT spoken.*,
               CASE WHEN spoken.enough THEN spoken.positive ELSE spoken.negative END / spoken.weight AS noise
        FROM (
            SELECT event.id AS event_id, CASE WHEN event.standing < 1 THEN '' ELSE event.judge END AS judge, event.applied_sequence,
                   event.confidence * event.standing AS weight, event.observation_noise_positive AS positive,
                   event.observation_noise_negative AS negative, event.daily_share AS share, (
    event.retrieval_success IS FALSE OR NOT event.partial
    OR event.rating = 'down' AND coalesce(event.reason, '') <> ALL(%(reasons)s::text[])
) AS denies,
                   EXISTS (
                       SELECT audit.event_id FROM (SELECT event.id) AS judged
        INNER JOIN LATERAL (
            SELECT audit.* FROM memory_audit audit WHERE audit.collection_id = %(collection)s AND audit.event_id = judged.id OFFSET 0
        ) AS audit ON true
                       WHERE audit.channel = 'recall' AND audit.target = 1
                   ) AS enough
            FROM (
                SELECT id FROM question
                WHERE collection_id = %(collection)s AND text_hash = %(question_hash)s
            ) AS asked
        INNER JOIN LATERAL (
            SELECT event.* FROM feedback_event event WHERE event.collection_id = %(collection)s AND event.question_id = asked.id AND event.status = 'applied' OFFSET 0
        ) AS event ON true
        ) AS spoken
        WHERE spoken.enough OR spoken.denies
    ) AS judged
        ORDER BY judged.judge, judged.applied_sequence DESC
        ) AS row) AS judgements, (SELECT json_agg(row) FROM (
        WITH near AS MATERIALIZED (
            SELECT id, text, -(embedding <#> %(q)s) AS similarity FROM question
            WHERE collection_id = %(collection)s  ORDER BY (embedding <#> %(q)s) + 0 LIMIT %(questions)s
        ), known AS MATERIALIZED (
            SELECT near.*, supported.sentence_id, supported.support, supported.perplexity,
                   supported.acceptance, supported.complete,
                   supported.answered, supported.sufficiency
            FROM near
        INNER JOIN LATERAL (
            SELECT supported.* FROM question_support supported WHERE supported.collection_id = %(collection)s AND supported.question_id = near.id OFFSET 0
        ) AS supported ON true
            WHERE 2 * (supported.acceptance - 0.0 * supported.perplexity) - (1 - supported.perplexity) <> 0 OR supported.answered > 0
        )
        SELECT known.id AS question_id, known.text AS question, known.similarity, s.id AS sentence_id, s.passage_id,
               known.support, known.perplexity, known.acceptance, known.complete, known.answered, known.sufficiency
        FROM known
        INNER JOIN LATERAL (
            SELECT s.* FROM sentence s WHERE s.collection_id = %(collection)s AND s.id = known.sentence_id OFFSET 0
        ) AS s ON true
        ORDER BY known.similarity DESC, known.id, s.id
    ) AS row) AS past FROM (SELECT array_send(array_agg(id)) AS id, array_send(array_agg(passage_id)) AS passage_id, array_send(array_agg(activation)) AS activation, array_send(array_agg(semantic)) AS semantic FROM candidates) AS columns
