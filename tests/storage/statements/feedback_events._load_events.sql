SELECT event.id, event.judge, event.trusted, to_char(event.received_at AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS day, judged.question, judged.profile, judged.filter,
               judged.embedding, judged.time_embedding, judged.sufficiency,
    judged.activated, judged.ranked, judged.answer_features, judged.reranker, judged.reranked
,
               extract(epoch FROM clock_timestamp() - event.received_at)::float8 AS waited,
               judged.space, judged.answered_at,
               (SELECT space FROM collection WHERE id = %(collection)s) AS current_space
        FROM unnest(%(ids)s::bigint[]) AS wanted(id)
        CROSS JOIN LATERAL (
            SELECT id, judge, trusted, received_at, query_id FROM feedback_event
            WHERE collection_id = %(collection)s AND id = wanted.id AND status IS NOT DISTINCT FROM 'pending' FOR UPDATE SKIP LOCKED
        ) AS event
        INNER JOIN LATERAL (
            SELECT judged.* FROM judged_query judged WHERE judged.collection_id = %(collection)s AND judged.id = event.query_id OFFSET 0
        ) AS judged ON true
        ORDER BY event.id
