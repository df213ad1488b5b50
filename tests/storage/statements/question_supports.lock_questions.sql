INSERT INTO question (collection_id, text_hash, text, embedding)
SELECT %(collection)s, new.* FROM unnest(%(hashes)s::bytea[], %(texts)s::text[], %(embeddings)s::vector[])
    AS new(hash, text, embedding)
ORDER BY new.hash ON CONFLICT DO NOTHING
