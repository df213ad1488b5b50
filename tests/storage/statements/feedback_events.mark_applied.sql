UPDATE feedback_event SET status = 'applied', applied_at = now(), error = NULL,
    applied_sequence = drawn.sequence, question_id = drawn.question,
    observation_noise_positive = drawn.positive, observation_noise_negative = drawn.negative,
    process_noise = drawn.process, daily_share = drawn.share, contested_share = drawn.contested,
    daily_weight_verdicts = drawn.weight_verdicts, standing = drawn.standing
FROM (
    SELECT %(collection)s::bigint AS collection_id, event.*, nextval('feedback_applied') AS sequence
    FROM unnest(%(ids)s::bigint[], %(questions)s::bigint[], %(positive)s::float8[], %(negative)s::float8[],
                %(process)s::float8[], %(share)s::float8[], %(contested)s::float8[],
                %(weight_verdicts)s::integer[], %(standing)s::float8[])
        WITH ORDINALITY AS event(id, question, positive, negative, process, share, contested,
                                 weight_verdicts, standing, n)
    ORDER BY n
) AS drawn
WHERE feedback_event.collection_id = drawn.collection_id AND feedback_event.id = drawn.id
