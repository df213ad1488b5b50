WITH
        active AS MATERIALIZED (SELECT * FROM unnest(%(entities)s::bigint[], %(scores)s::float8[]) AS given(entity_id, score)), linked AS (
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
        SELECT columns.*  FROM (SELECT array_send(array_agg(id)) AS id, array_send(array_agg(passage_id)) AS passage_id, array_send(array_agg(activation)) AS activation, array_send(array_agg(semantic)) AS semantic FROM candidates) AS columns
