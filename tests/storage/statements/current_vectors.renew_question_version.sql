INSERT INTO question_memory (collection_id, version) VALUES (%(collection)s, %(version)s)
ON CONFLICT (collection_id) DO UPDATE SET version = excluded.version
