INSERT INTO question_support (collection_id, question_id, sentence_id, support, perplexity, acceptance,
                                  update_count, complete, gain_budgets, judge_statements, answered, sufficiency)
    SELECT new.* FROM (SELECT %(collection)s::bigint AS collection_id, * FROM
unnest(
    %(questions)s::bigint[], %(sentences)s::bigint[], %(supports)s::float8[], %(perplexities)s::float8[],
    %(acceptance)s::float8[], %(counts)s::bigint[], %(complete)s::boolean[], %(gain_budgets)s::jsonb[],
    %(judge_statements)s::jsonb[],
    %(answered)s::float8[], %(sufficiency)s::float8[]
) AS given(question_id, sentence_id, support, perplexity, acceptance, update_count, complete, gain_budgets,
           judge_statements, answered, sufficiency)
 OFFSET 0) AS new
    ON CONFLICT (collection_id, question_id, sentence_id) DO UPDATE SET
        support = excluded.support, perplexity = excluded.perplexity,
        acceptance = excluded.acceptance, update_count = excluded.update_count,
        complete = excluded.complete, gain_budgets = excluded.gain_budgets,
        judge_statements = excluded.judge_statements,
        answered = excluded.answered, sufficiency = excluded.sufficiency
