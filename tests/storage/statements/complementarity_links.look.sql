WITH best AS MATERIALIZED (
    SELECT member.id AS passage_id, own.id, own.similarity, own.embedding::vector, member.place
    FROM unnest(%(pool)s::bigint[]) WITH ORDINALITY AS member(id, place)
    CROSS JOIN LATERAL (
        SELECT s.id, -(s.embedding <#> (SELECT %(q)s::halfvec)) AS similarity, s.embedding FROM sentence s
        WHERE s.collection_id = %(collection)s AND s.passage_id = member.id
        ORDER BY similarity DESC, s.id LIMIT 1
    ) AS own
)
SELECT (SELECT json_agg(row) FROM (SELECT passage_id, id, similarity FROM best ORDER BY place) AS row) AS members,
       (SELECT array_send(array_agg(ARRAY[coalesce(-(p.embedding <#> (SELECT (SELECT embedding FROM best WHERE place = 1)::halfvec)), 0), coalesce(-(p.embedding <#> (SELECT (SELECT embedding FROM best WHERE place = 2)::halfvec)), 0), coalesce(-(p.embedding <#> (SELECT (SELECT embedding FROM best WHERE place = 3)::halfvec)), 0), coalesce(-(p.embedding <#> (SELECT (SELECT embedding FROM best WHERE place = 4)::halfvec)), 0)] ORDER BY p.id))
        FROM (
    SELECT p.* FROM passage p
    WHERE p.collection_id = %(collection)s AND p.id = ANY(%(candidates)s::bigint[]) AND true OFFSET 0
) AS p ) AS across,
       (SELECT json_agg(row) FROM (
    SELECT model, prior, information, precision, events FROM learned_weights
    WHERE collection_id = %(collection)s AND model = ANY(%(models)s) AND prior = ANY(%(priors)s)
    ) AS row) AS aside
