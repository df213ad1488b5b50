INSERT INTO episode (collection_id, id, question, embedding, time_constraint, time_embedding, memory,
                     profile, strategy, filter, activated, shown, explored, hops, total_ms, arm,
                     principal, answer, trace, ranked, best_features, answer_features, reranker, reranked,
                     space, trace_id, is_part)
SELECT c.id, %(id)s, %(question)s, %(embedding)s, %(time_constraint)s, %(time_embedding)s,
       %(memory)s, %(profile)s, %(strategy)s, %(filter)s, %(activated)s, %(shown)s, %(explored)s, %(hops)s,
       %(total_ms)s, %(arm)s, %(principal)s, %(answer)s, %(trace)s, %(ranked)s, %(best_features)s,
       %(answer_features)s, %(reranker)s, %(reranked)s, %(space)s, %(trace_id)s, %(is_part)s
FROM collection c WHERE c.id = %(collection)s AND deleted_at IS NULL
FOR KEY SHARE
