SELECT
p.id, p.external_id, p.title, p.text, p.metadata, p.language, d.source AS document, d.valid_from,
d.valid_until, d.replaced_by
    FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(ids)s::bigint[]) AS id) AS wanted
    INNER JOIN LATERAL (
        SELECT p.* FROM passage p WHERE p.collection_id = %(collection)s AND p.id = wanted.id OFFSET 0
    ) AS p ON true
LEFT JOIN LATERAL (
    SELECT d.source, d.valid_from, d.valid_until, (
    SELECT n.source FROM (
        SELECT r.collection_id, r.id, r.source FROM document r
        WHERE r.collection_id = %(collection)s AND r.id >= d.replaced_by ORDER BY r.id LIMIT 1
    ) AS n WHERE n.id = d.replaced_by AND true
) AS replaced_by
    FROM document d WHERE d.collection_id = %(collection)s AND d.id >= p.document_id
    ORDER BY d.id LIMIT 1
) AS d ON true
