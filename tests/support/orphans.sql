-- entity_sentence of another passage than its sentence is of
SELECT count(*) FROM entity_sentence l
JOIN sentence s ON s.collection_id = l.collection_id AND s.id = l.sentence_id
WHERE l.collection_id = %(c)s AND l.passage_id <> s.passage_id

-- fact of a graph or an entity that is not there
SELECT count(*) FROM fact f WHERE f.collection_id = %(c)s AND NOT (
    (f.graph_id = 0 OR EXISTS (
        SELECT FROM fact_graph g WHERE g.collection_id = f.collection_id AND g.id = f.graph_id))
    AND EXISTS (SELECT FROM fact_entity e WHERE e.collection_id = f.collection_id AND e.id = f.subject_id)
    AND (f.object_id = 0 OR EXISTS (
        SELECT FROM fact_entity e WHERE e.collection_id = f.collection_id AND e.id = f.object_id)))

-- entity or predicate of a graph that is not there
SELECT count(*) FROM (
    SELECT collection_id, graph_id FROM fact_entity UNION ALL SELECT collection_id, graph_id FROM fact_event
    UNION ALL SELECT collection_id, graph_id FROM fact_predicate
) of WHERE of.collection_id = %(c)s AND of.graph_id <> 0 AND NOT EXISTS (
    SELECT FROM fact_graph g WHERE g.collection_id = of.collection_id AND g.id = of.graph_id)

-- fact_source of a passage that is not there
SELECT count(*) FROM fact_source f WHERE f.collection_id = %(c)s AND f.passage_id IS NOT NULL
  AND NOT EXISTS (SELECT FROM passage p WHERE p.collection_id = f.collection_id AND p.id = f.passage_id)

-- passage of readers that are not there
SELECT count(*) FROM passage p WHERE p.collection_id = %(c)s AND p.reader_set_id IS NOT NULL
  AND NOT EXISTS (SELECT FROM reader_set r
                  WHERE r.collection_id = p.collection_id AND r.id = p.reader_set_id)

-- row of other readers than its passage
SELECT count(*) FROM (
    SELECT collection_id, passage_id, reader_set_id FROM sentence
    UNION ALL SELECT collection_id, passage_id, reader_set_id FROM entity_sentence
    UNION ALL SELECT collection_id, passage_id, reader_set_id FROM lexical_posting
) of JOIN passage p ON p.collection_id = of.collection_id AND p.id = of.passage_id
WHERE of.collection_id = %(c)s AND of.reader_set_id IS DISTINCT FROM p.reader_set_id

-- episode of a collection that is gone
SELECT count(*) FROM episode WHERE collection_id = %(c)s
    AND NOT EXISTS (SELECT FROM collection WHERE id = %(c)s)

-- lexical_posting without its term or passage
SELECT count(*) FROM lexical_posting p WHERE p.collection_id = %(c)s AND NOT (
    EXISTS (SELECT FROM lexical_term t WHERE t.collection_id = p.collection_id AND t.id = p.term_id)
    AND EXISTS (SELECT FROM lexical_passage l
                WHERE l.collection_id = p.collection_id AND l.passage_id = p.passage_id))

-- lexical_passage without a term
SELECT count(*) FROM lexical_passage l, unnest(l.term_ids) AS named(id) WHERE l.collection_id = %(c)s
  AND NOT EXISTS (SELECT FROM lexical_term t WHERE t.collection_id = l.collection_id AND t.id = named.id)

-- lexical_passage whose postings are not those it knows
SELECT count(*) FROM lexical_passage l WHERE l.collection_id = %(c)s AND cardinality(l.term_ids) <> (
    SELECT count(*) FROM lexical_posting p
    WHERE p.collection_id = l.collection_id AND p.passage_id = l.passage_id)

-- feedback_event without its question
SELECT count(*) FROM feedback_event e WHERE e.collection_id = %(c)s AND e.question_id IS NOT NULL
  AND e.status = 'applied'
  AND NOT EXISTS (SELECT FROM question q WHERE q.collection_id = e.collection_id AND q.id = e.question_id)

-- judged_query without a verdict
SELECT count(*) FROM judged_query j WHERE j.collection_id = %(c)s AND NOT EXISTS (
    SELECT FROM feedback_event e WHERE e.collection_id = j.collection_id AND e.query_id = j.id)

-- question without a verdict
SELECT count(*) FROM question q WHERE q.collection_id = %(c)s AND NOT EXISTS (
    SELECT FROM feedback_event e
    WHERE e.collection_id = q.collection_id AND e.question_id = q.id AND e.status = 'applied')

-- memory_audit of an event that is not applied
SELECT count(*) FROM memory_audit a JOIN feedback_event e
  ON e.collection_id = a.collection_id AND e.id = a.event_id
WHERE a.collection_id = %(c)s AND e.status <> 'applied'

-- weight_audit of an event that is not applied
SELECT count(*) FROM weight_audit a JOIN feedback_event e
  ON e.collection_id = a.collection_id AND e.id = a.event_id
WHERE a.collection_id = %(c)s AND e.status <> 'applied'

-- key_evidence of an event that is not applied
SELECT count(*) FROM key_evidence a JOIN feedback_event e
  ON e.collection_id = a.collection_id AND e.id = a.event_id
WHERE a.collection_id = %(c)s AND e.status <> 'applied'

-- event that says when it was applied, and is not
SELECT count(*) FROM feedback_event WHERE collection_id = %(c)s AND status IN ('pending', 'parked')
  AND (applied_at IS NOT NULL OR applied_sequence IS NOT NULL OR question_id IS NOT NULL)

-- applied event that does not say when
SELECT count(*) FROM feedback_event WHERE collection_id = %(c)s AND status = 'applied'
  AND (applied_at IS NULL OR applied_sequence IS NULL OR question_id IS NULL)

-- two events of one place in the order
SELECT count(*) - count(DISTINCT applied_sequence) FROM feedback_event
WHERE collection_id = %(c)s AND applied_sequence IS NOT NULL

-- expansion_unit that is credited to nothing
SELECT count(*) FROM expansion_unit u WHERE u.collection_id = %(c)s AND NOT EXISTS (
    SELECT FROM key_credit k WHERE k.collection_id = u.collection_id AND k.unit_id = u.id)

-- evolved key of units that are not there
SELECT count(*) FROM passage_key k, unnest(k.units) AS named(id) WHERE k.collection_id = %(c)s
  AND NOT EXISTS (SELECT FROM expansion_unit u WHERE u.collection_id = k.collection_id AND u.id = named.id)

-- evidence of a generation that is not there
SELECT count(*) FROM key_evidence k WHERE k.collection_id = %(c)s AND k.generation IS NOT NULL
  AND NOT EXISTS (SELECT FROM key_generation g
                  WHERE g.collection_id = k.collection_id AND g.number = k.generation)

-- collection that serves a generation that is not there
SELECT count(*) FROM collection k WHERE k.id = %(c)s AND k.key_generation > 0
  AND NOT EXISTS (SELECT FROM key_generation g WHERE g.collection_id = k.id AND g.number = k.key_generation)

-- line of a job that is closed
SELECT count(*) FROM ingest_line l
JOIN job j ON j.collection_id = l.collection_id AND j.id = l.job_id
WHERE l.collection_id = %(c)s AND j.status IN ('succeeded', 'failed', 'cancelled')

-- document of a job that is closed
SELECT count(*) FROM ingest_document d
JOIN job j ON j.collection_id = d.collection_id AND j.id = d.job_id
WHERE d.collection_id = %(c)s AND j.status IN ('succeeded', 'failed', 'cancelled')

-- first answer that names no job
SELECT count(*) FROM idempotency i WHERE i.collection_id = %(c)s AND i.answer ? 'job_id'
  AND NOT EXISTS (SELECT FROM job j
                  WHERE j.collection_id = i.collection_id AND j.id::text = i.answer ->> 'job_id')

-- entity that no sentence names
SELECT count(*) FROM entity e WHERE e.collection_id = %(c)s AND NOT EXISTS (
    SELECT FROM entity_sentence s WHERE s.collection_id = e.collection_id AND s.entity_id = e.id)
