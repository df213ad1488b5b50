INSERT INTO memory_audit (collection_id, event_id, sentence_id, channel, target, observation_noise,
                          gain, residual, perplexity_before, perplexity_after, process_noise)
SELECT %(collection)s, row.event_id, row.sentence_id, (ARRAY['task', 'time', 'recall'])[row.channel + 1], row.target,
       row.noise, row.gain, row.residual, row.before, row.after, row.process
FROM unnest(
    %(events)s::bigint[], %(sentences)s::bigint[], %(channels)s::bigint[], %(targets)s::bigint[],
    %(noises)s::float8[], %(gains)s::float8[], %(residuals)s::float8[], %(before)s::float8[],
    %(after)s::float8[], %(process)s::float8[]
) AS row(event_id, sentence_id, channel, target, noise, gain, residual, before, after, process)
