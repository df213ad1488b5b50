SELECT term.term, term.passage_count AS holding
    FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(terms)s::text[]) AS id) AS wanted
INNER JOIN LATERAL (
    SELECT term.* FROM lexical_term term WHERE term.collection_id = %(collection)s AND term.term = wanted.id OFFSET 0
) AS term ON true
