SELECT
   audit.event_id, audit.sentence_id, audit.channel, audit.target, audit.observation_noise, audit.gain,
   audit.residual, audit.perplexity_before, audit.perplexity_after, audit.process_noise,
   audit.revision, s.revision_likeness
FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(ids)s::bigint[]) AS id) AS wanted
       INNER JOIN LATERAL (
           SELECT audit.* FROM memory_audit audit WHERE audit.collection_id = %(collection)s AND audit.event_id = wanted.id OFFSET 0
       ) AS audit ON true
       LEFT JOIN LATERAL (
           SELECT s.* FROM sentence s WHERE s.collection_id = %(collection)s AND s.id = audit.sentence_id OFFSET 0
       ) AS s ON true
       ORDER BY audit.event_id, audit.sentence_id, audit.channel
