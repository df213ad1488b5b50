UPDATE question_memory SET changes_left = changes_left - %(changed)s
WHERE collection_id = %(collection)s AND changes_left > %(changed)s RETURNING collection_id
