INSERT INTO sentence_memory
            (collection_id, sentence_id, channel, vector, perplexity, update_count, time_expression_id)
        SELECT collection_id, id, channel, vector, 1, 0, time_expression_id FROM (
    SELECT s.collection_id, s.id, s.text, 'task' AS channel, l2_normalize(s.embedding::vector) AS vector,
           NULL::bigint AS time_expression_id
    FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(ids)s::bigint[]) AS id) AS wanted
        INNER JOIN LATERAL (
            SELECT s.* FROM sentence s WHERE s.collection_id = %(collection)s AND s.id = wanted.id OFFSET 0
        ) AS s ON true
    UNION ALL
    SELECT s.collection_id, s.id, s.text, 'time', l2_normalize(t.embedding::vector), t.id
    FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(timed)s::bigint[]) AS id) AS wanted
        INNER JOIN LATERAL (
            SELECT s.* FROM sentence s WHERE s.collection_id = %(collection)s AND s.id = wanted.id OFFSET 0
        ) AS s ON true
        INNER JOIN LATERAL (
            SELECT t.* FROM time_expression t WHERE t.collection_id = %(collection)s AND t.id = s.time_expression_id OFFSET 0
        ) AS t ON true
) AS base ORDER BY id, channel
        ON CONFLICT DO NOTHING
