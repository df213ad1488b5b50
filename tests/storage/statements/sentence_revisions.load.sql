SELECT s.id, s.revised_at, s.revision_likeness FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(ids)s::bigint[]) AS id) AS wanted
INNER JOIN LATERAL (
    SELECT s.* FROM sentence s WHERE s.collection_id = %(collection)s AND s.id = wanted.id AND s.revised_at IS NOT NULL OFFSET 0
) AS s ON true
