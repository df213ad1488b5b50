SELECT pg_advisory_xact_lock_shared(hashtextextended(%(name)s, 0))
