WITH
    corpus AS (
        SELECT passage_count AS passages, %(k1)s::float8 * (1 - %(b)s::float8) AS base,
               %(k1)s::float8 * %(b)s::float8 / nullif(lexical_length / nullif(passage_count, 0), 0) AS slope
        FROM collection WHERE id = %(collection)s
    ), asked AS MATERIALIZED (
        SELECT term.id, asked.place,  corpus.base, corpus.slope,
               sum(term.passage_count) OVER rarest <= %(postings)s OR row_number() OVER rarest = 1 AS scanned,
               asked.weight * ln(1 + (corpus.passages - term.passage_count + 0.5::float8)
                                     / (term.passage_count + 0.5::float8)) AS weight
        FROM unnest(%(terms)s::text[], %(weights)s::float8[]) WITH ORDINALITY AS asked(term, weight, place)
        INNER JOIN LATERAL (
            SELECT term.* FROM lexical_term term WHERE term.collection_id = %(collection)s AND term.term = asked.term OFFSET 0
        ) AS term ON true
     CROSS JOIN corpus
        WINDOW rarest AS (ORDER BY term.passage_count, asked.place ROWS UNBOUNDED PRECEDING)
    )
,
        worded AS MATERIALIZED (
        SELECT passage_id, sum(score)::real AS score FROM (
            WITH scanned AS MATERIALIZED (
                SELECT found.passage_id, found.score FROM (SELECT passage_id, sum(score) AS score FROM (SELECT posting.passage_id, asked.place,
    asked.weight * posting.frequency / (posting.frequency + asked.base + asked.slope * posting.length)
 AS score FROM (SELECT * FROM asked WHERE scanned) AS asked
        INNER JOIN LATERAL (
            SELECT posting.* FROM lexical_posting posting WHERE posting.collection_id = %(collection)s AND posting.term_id = asked.id  OFFSET 0
        ) AS posting ON true
    ) AS said GROUP BY passage_id OFFSET 0) AS found
                ORDER BY score::real DESC, passage_id
                LIMIT %(limit)s * (SELECT CASE WHEN bool_and(scanned) THEN 1 ELSE 16 END FROM asked)
            )
            SELECT passage_id, score FROM scanned UNION ALL SELECT passage_id, score FROM (SELECT posting.passage_id, asked.place,
    asked.weight * posting.frequency / (posting.frequency + asked.base + asked.slope * posting.length)
 AS score FROM (SELECT * FROM asked WHERE NOT scanned) AS asked
        INNER JOIN LATERAL (
            SELECT posting.* FROM lexical_posting posting WHERE posting.collection_id = %(collection)s AND posting.term_id = asked.id AND posting.passage_id = ANY(ARRAY(SELECT passage_id FROM scanned)) OFFSET 0
        ) AS posting ON true
    ) AS said
        ) AS said GROUP BY passage_id ORDER BY score DESC, passage_id LIMIT %(limit)s
    ),
        nearest AS MATERIALIZED (
            SELECT id, -distance AS similarity, title FROM (
                SELECT p.id, (p.embedding <#> (SELECT %(key)s::halfvec)) + 0 AS distance, p.title FROM passage p
                WHERE p.collection_id = %(collection)s  ORDER BY (p.embedding <#> (SELECT %(key)s::halfvec)) + 0 LIMIT %(nearest)s
            ) AS nearest ORDER BY distance
        ),
        keyed AS MATERIALIZED (
    SELECT id, similarity, title FROM nearest UNION ALL
    SELECT p.id, -(p.embedding <#> (SELECT %(key)s::halfvec)) AS similarity, p.title
    FROM (
        SELECT p.* FROM passage p
        WHERE p.collection_id = %(collection)s AND p.id = ANY(ARRAY(SELECT passage_id FROM worded UNION SELECT unnest(%(ids)s::bigint[]))) AND true OFFSET 0
    ) AS p
 WHERE p.id NOT IN (SELECT id FROM nearest)
),
        said AS MATERIALIZED (
            SELECT posting.passage_id, asked.place,
    asked.weight * posting.frequency / (posting.frequency + asked.base + asked.slope * posting.length)
 AS score FROM asked
        INNER JOIN LATERAL (
            SELECT posting.* FROM lexical_posting posting WHERE posting.collection_id = %(collection)s AND posting.term_id = asked.id AND posting.passage_id = ANY(ARRAY(SELECT id FROM keyed)) OFFSET 0
        ) AS posting ON true
        )
        SELECT passages.*, words.*, question.* FROM (
            SELECT array_send(array_agg(id)) AS ids, array_send(array_agg(similarity)) AS similarities,
                   array_agg(title) AS titles
            FROM keyed
        ) AS passages CROSS JOIN (
            SELECT array_send(array_agg(passage_id)) AS saying, array_send(array_agg(place)) AS said,
                   array_send(array_agg(score)) AS scores
            FROM said
        ) AS words CROSS JOIN (
            SELECT array_send(array_agg(place)) AS places, array_send(array_agg(weight)) AS weights FROM asked
        ) AS question
