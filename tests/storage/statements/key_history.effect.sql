SELECT evidence.gate, evidence.gain, evidence.generation, CASE WHEN evidence.gate = 'none' THEN NULL WHEN evidence.generation IS NULL THEN 'waiting'
          WHEN generation.active THEN 'taken in' ELSE 'rolled back' END AS status FROM key_evidence evidence
LEFT JOIN LATERAL (
    SELECT generation.* FROM key_generation generation WHERE generation.collection_id = %(collection)s AND generation.number = evidence.generation OFFSET 0
) AS generation ON true
WHERE evidence.collection_id = %(collection)s AND evidence.event_id = %(event)s
