INSERT INTO question_memory (collection_id, version, sampled_until, changes_left)
SELECT %(collection)s, %(version)s, coalesce(max(id), 0), floor(0.1 * count(*))
FROM question WHERE collection_id = %(collection)s
ON CONFLICT (collection_id) DO UPDATE SET version = excluded.version,
    sampled_until = excluded.sampled_until, changes_left = excluded.changes_left
