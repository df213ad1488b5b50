SELECT array_send(array_agg(s.id)) AS ids, array_send(array_agg(s.passage_id)) AS passages
FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(ids)s::bigint[]) AS id) AS wanted
INNER JOIN LATERAL (
    SELECT s.* FROM sentence s WHERE s.collection_id = %(collection)s AND s.id = wanted.id OFFSET 0
) AS s ON true
