SELECT question.text_hash, question.id FROM (SELECT DISTINCT %(collection)s::bigint AS collection_id, unnest(%(hashes)s::bytea[]) AS id) AS wanted JOIN question
  ON question.collection_id = wanted.collection_id AND question.text_hash = wanted.id
ORDER BY question.text_hash FOR UPDATE OF question
