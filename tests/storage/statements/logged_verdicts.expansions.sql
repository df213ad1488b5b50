SELECT brought.event_id, brought.method, brought.text
FROM unnest(%(ids)s::bigint[]) AS wanted(id)
CROSS JOIN LATERAL (
    SELECT event_id, place, method, text FROM verdict_expansion
    WHERE collection_id = %(collection)s AND event_id = wanted.id OFFSET 0
) AS brought
ORDER BY brought.event_id, brought.place
