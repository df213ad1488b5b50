WITH memory AS MATERIALIZED (
    SELECT memory.sentence_id, memory.channel, memory.vector, memory.perplexity, memory.update_count,
           memory.gain_budgets
    FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(ids)s::bigint[]) AS id) AS wanted JOIN sentence_memory memory
      ON memory.collection_id = wanted.collection_id AND memory.sentence_id = wanted.id
    WHERE memory.channel = 'task' OR memory.sentence_id = ANY(%(timed)s)
    ORDER BY memory.sentence_id, memory.channel FOR UPDATE OF memory
)
SELECT array_send(array_agg(sentence_id)) AS ids,
       array_send(array_agg((channel = 'time')::integer::bigint)) AS channels,
       string_agg(vector_send(vector), ''::bytea) AS vectors,
       array_send(array_agg(perplexity)) AS perplexities,
       array_send(array_agg(update_count::bigint)) AS counts,
       json_agg(gain_budgets) AS gain_budgets
FROM memory
