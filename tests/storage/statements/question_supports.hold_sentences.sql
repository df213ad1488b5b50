SELECT s.id FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(ids)s::bigint[]) AS id) AS wanted JOIN sentence s ON s.collection_id = wanted.collection_id AND s.id = wanted.id
ORDER BY s.id FOR KEY SHARE OF s
