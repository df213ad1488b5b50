UPDATE sentence_memory SET vector = new.vector, perplexity = new.perplexity,
        update_count = new.update_count, gain_budgets = new.gain_budgets, updated_at = now()
    FROM (SELECT %(collection)s::bigint AS collection_id, * FROM
unnest(%(ids)s::bigint[], %(channels)s::bigint[], %(vectors)s::vector[], %(perplexities)s::float8[],
       %(counts)s::bigint[], %(gain_budgets)s::jsonb[])
    AS given(sentence_id, channel, vector, perplexity, update_count, gain_budgets)
 OFFSET 0) AS new
    WHERE sentence_memory.collection_id = new.collection_id
      AND sentence_memory.sentence_id = new.sentence_id
      AND sentence_memory.channel = (ARRAY['task', 'time', 'recall'])[new.channel + 1]
