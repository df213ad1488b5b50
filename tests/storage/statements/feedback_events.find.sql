SELECT
    collection_id, id, query_id, idempotency_key, body_hash, judge, principal, trusted, status, attempts, error,
    received_at, applied_at, revoked_at
 FROM feedback_event WHERE collection_id = %(collection)s AND id = %(id)s
