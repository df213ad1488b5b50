WITH known AS MATERIALIZED (
    SELECT known.*
    FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(questions)s::bigint[]) AS id) AS wanted
INNER JOIN LATERAL (
    SELECT known.* FROM question_support known WHERE known.collection_id = %(collection)s AND known.question_id = wanted.id OFFSET 0
) AS known ON true
    WHERE %(sentences)s::bigint[] IS NULL OR known.sentence_id = ANY(%(sentences)s)
    ORDER BY known.question_id, known.sentence_id
)
SELECT array_send(array_agg(question_id)) AS questions, array_send(array_agg(sentence_id)) AS sentences,
       array_send(array_agg(support)) AS supports, array_send(array_agg(perplexity)) AS perplexities,
       array_send(array_agg(acceptance)) AS acceptance,
       array_send(array_agg(update_count::bigint)) AS counts,
       array_send(array_agg(complete)) AS complete,
       array_send(array_agg(answered)) AS answered, array_send(array_agg(sufficiency)) AS sufficiency,
       json_agg(gain_budgets) AS gain_budgets, json_agg(judge_statements) AS judge_statements
FROM known
