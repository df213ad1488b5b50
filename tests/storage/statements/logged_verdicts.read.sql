SELECT event.*, said.*, helped.*, brought.*
FROM unnest(%(ids)s::bigint[]) AS wanted(id)
CROSS JOIN LATERAL (
    SELECT id, version, partial, retrieval_success, generation_success, generation_score, confidence,
           spared, on_session, rating, reason
    FROM feedback_event WHERE collection_id = %(collection)s AND id = wanted.id OFFSET 0
) AS event
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(sentence_id ORDER BY sentence_id), '{}') AS named,
           coalesce(array_agg(role ORDER BY sentence_id), '{}') AS roles,
           coalesce(array_agg(coalesce(examined, 1) ORDER BY sentence_id), '{}') AS examined
    FROM verdict_sentence WHERE collection_id = %(collection)s AND event_id = wanted.id
) AS said
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(passage_id ORDER BY passage_id), '{}') AS passages
    FROM verdict_passage WHERE collection_id = %(collection)s AND event_id = wanted.id
) AS helped
CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(method ORDER BY place), '{}') AS methods,
           coalesce(array_agg(text ORDER BY place), '{}') AS texts
    FROM verdict_expansion WHERE collection_id = %(collection)s AND event_id = wanted.id
) AS brought
