"""Rules that hold of every table with rows of collections, whichever migration makes it;

they can be applied again.
"""

# The planner takes any collection for as large as its table, and so looks rows up by more than their collection.
# By itself it would go by how many rows collections have on average, which says nothing of one.
AS_LARGE_AS_ALL = """
    DO $$ DECLARE owned text; BEGIN
        FOR owned IN SELECT table_name FROM information_schema.columns
            WHERE table_schema = current_schema() AND column_name = 'collection_id'
        LOOP EXECUTE format('ALTER TABLE %I ALTER COLUMN collection_id SET (n_distinct = 1)', owned); END LOOP;
    END $$
"""
# And so from the first plan on, which a session may keep while the table grows: until a table is analysed it has
# one collection, and four rows for each value of what an index has next. Older servers guess at both until then.
BEFORE_ANY_ROW = """
    DO $$ BEGIN
        IF current_setting('server_version_num')::int >= 180000 THEN
            PERFORM pg_restore_attribute_stats(
                'schemaname', current_schema()::text, 'relname', t.relname::text, 'attname', a.attname::text,
                'inherited', false, 'null_frac', 0::real, 'avg_width', 8,
                'n_distinct', CASE WHEN a.attnum = c.attnum THEN 1::real ELSE -0.25::real END
            )
            FROM pg_class t
            JOIN pg_attribute c ON c.attrelid = t.oid AND c.attname = 'collection_id'
            JOIN pg_attribute a ON a.attrelid = t.oid
            WHERE t.relkind = 'r' AND t.relnamespace = current_schema()::regnamespace AND t.reltuples < 0
              AND EXISTS (
                SELECT FROM pg_index x
                WHERE x.indrelid = t.oid AND x.indkey[0] = c.attnum AND a.attnum IN (c.attnum, x.indkey[1])
            );
        END IF;
    END $$
"""

# A tenant's connections see rows of its collections only, whatever a statement says, and a caller's what belongs to
# passages that the caller may read (engram.context.tenancy). The owner of the tables, who migrates and works, is
# not bound by that. The policies of a table that is new let nobody see a row, until ``OPEN_POLICIES`` say whom.
# Citus takes no policy with a sub-query on a table that it distributes, and asks no node where one is false for
# ever: a table of the coordinator keeps these, and so does a shard, however it came to its node, until it is
# opened.
CLOSED = "current_user = ''"
_CLOSED_POLICIES = """
    DO $$ DECLARE
        owned record;
    BEGIN
        FOR owned IN
            SELECT c.relname AS name, bool_or(
                a.attname IN ('reader_set_id', 'passage_id', 'sentence_id') OR c.relname IN ('entity', 'question')
                OR c.relname LIKE 'fact%'
            ) AS of_passages
            FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
              AND NOT c.relispartition AND NOT c.relrowsecurity
            GROUP BY c.relname
            HAVING bool_or(a.attname = 'collection_id' OR c.relname = 'collection' AND a.attname = 'tenant')
        LOOP
            EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', owned.name);
            EXECUTE format($text$ CREATE POLICY tenant ON %I USING (<closed>) $text$, owned.name);
            IF owned.of_passages THEN
                EXECUTE format($text$
                    CREATE POLICY readers ON %I AS RESTRICTIVE FOR SELECT USING (<closed>)
                $text$, owned.name);
            END IF;
        END LOOP;
    END $$
"""
CLOSED_POLICIES = _CLOSED_POLICIES.replace("<closed>", CLOSED)
# Ids, sets of readers and vectors of all passages and names, and names themselves, whoever may see these: a view
# reads with the rights of its owner. A caller gets what row security shows of the rows that they lead to. The
# policy of names tests the sets by itself: through the table it would go by that one's policies as well, which
# costs more than the test.
VIEWS_OF_ALL = """
    CREATE OR REPLACE VIEW entity_reader_set AS SELECT collection_id, entity_id, reader_set_id FROM entity_sentence;
    CREATE OR REPLACE VIEW entity_embedding AS SELECT collection_id, id, embedding FROM entity;
    CREATE OR REPLACE VIEW entity_name AS SELECT collection_id, id, name FROM entity;
    CREATE OR REPLACE VIEW passage_embedding AS SELECT collection_id, id, embedding, reader_set_id FROM passage;
    CREATE OR REPLACE VIEW passage_key_vector AS SELECT collection_id, passage_id, vector FROM passage_key;
"""
VIEWS = ("entity_reader_set", "entity_embedding", "entity_name", "passage_embedding", "passage_key_vector")

# Rows that carry a passage's set of readers are seen by that, others by the passage or sentence
# that they name, names by a sentence that has them, past questions by a sentence that they taught. Facts are seen
# by a source that is seen; what is said of facts, by facts that are seen; stored moves of beliefs, which all
# sources made, by nobody. The sets are those that the connection was given; without any, only passages without
# readers are there. Of a row without a set the test is null, and 0, which is no set's id, keeps the array from
# being empty: one test of one array costs less than three tests. A table that a wing adds is bound as well. The
# role is named in the condition: a policy of a role could not be restored without it. An array of a sub-query is
# made once for a statement.
_OPEN_POLICIES = """
    DO $$ DECLARE
        bound record;
        tenants_own text := 'tenant = current_setting(''engram.tenant'', true)';
        visible text := $text$ (reader_set_id = ANY ((SELECT
            CASE WHEN current_user = 'engram_reader'
            THEN coalesce(nullif(current_setting('engram.reader_sets', true), '')::bigint[], '{}') || 0::bigint END
            )::bigint[])) IS NOT FALSE $text$;
        held text := $text$ (%1$I.%2$I IS NULL OR EXISTS (SELECT FROM %3$s held
            WHERE held.collection_id = %1$I.collection_id AND held.%4$I = %1$I.%2$I)) $text$;
        condition text;
    BEGIN
        FOR bound IN
            WITH place AS MATERIALIZED (<places>)
            SELECT p.name, c.relname AS place, array_agg(a.attname::text) AS columns,
                (SELECT jsonb_object_agg(o.name, o.oid::regclass) FROM place o
                 WHERE o.shard = p.shard OR o.shard IS NULL) AS beside,
                EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid AND polname = 'readers') AS of_passages
            FROM place p JOIN pg_class c ON c.oid = p.oid
            JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
            WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition
              AND EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid AND polname = 'tenant')
            GROUP BY p.name, p.shard, c.oid, c.relname
        LOOP
            EXECUTE format('ALTER POLICY tenant ON %I USING (%s)', bound.place, CASE
                WHEN 'collection_id' = ANY (bound.columns)
                THEN format('collection_id = ANY (ARRAY(SELECT id FROM %s WHERE %s))',
                    bound.beside ->> 'collection', tenants_own)
                ELSE tenants_own END);
            CONTINUE WHEN NOT bound.of_passages;
            condition := CASE
                WHEN 'reader_set_id' = ANY (bound.columns) THEN visible
                WHEN bound.name = 'entity' THEN format(
                    $text$ EXISTS (SELECT FROM %1$s
                        WHERE collection_id = %2$I.collection_id AND entity_id = %2$I.id AND %3$s) $text$,
                    coalesce(bound.beside ->> 'entity_reader_set', bound.beside ->> 'entity_sentence'),
                    bound.place, visible)
                WHEN bound.name = 'question'
                THEN format(held, bound.place, 'id', bound.beside ->> 'question_support', 'question_id')
                WHEN bound.name = 'fact'
                THEN format(held, bound.place, 'id', bound.beside ->> 'fact_source', 'fact_id')
                WHEN bound.name = 'fact_statement'
                THEN format(held, bound.place, 'id', bound.beside ->> 'fact_source', 'statement_id')
                WHEN bound.name = 'fact_entity' THEN concat_ws(' OR ',
                    format(held, bound.place, 'id', bound.beside ->> 'fact', 'named_subject_id'),
                    format(held, bound.place, 'id', bound.beside ->> 'fact', 'named_object_id'))
                WHEN bound.name = 'fact_graph'
                THEN format(held, bound.place, 'id', bound.beside ->> 'fact', 'graph_id')
                WHEN bound.name = 'fact_predicate' THEN format(
                    $text$ EXISTS (SELECT FROM %1$s held
                        WHERE held.collection_id = %2$I.collection_id AND held.graph_id = %2$I.graph_id
                          AND held.predicate = %2$I.predicate) $text$, bound.beside ->> 'fact', bound.place)
                WHEN bound.name = 'fact_event'
                THEN format(held, bound.place, 'fact_id', bound.beside ->> 'fact', 'id')
                    || ' AND (kind <> ''supersede'' OR '
                    || format(held, bound.place, 'other_id', bound.beside ->> 'fact', 'id') || ')'
                WHEN bound.name = 'fact_audit' THEN 'false'
                ELSE concat_ws(' AND ',
                    CASE WHEN 'passage_id' = ANY (bound.columns)
                         THEN format(held, bound.place, 'passage_id', bound.beside ->> 'passage', 'id') END,
                    CASE WHEN 'sentence_id' = ANY (bound.columns)
                         THEN format(held, bound.place, 'sentence_id', bound.beside ->> 'sentence', 'id') END)
            END;
            EXECUTE format('DROP POLICY readers ON %I', bound.place);  -- which Citus made of a shard as permissive
            EXECUTE format('CREATE POLICY readers ON %I AS RESTRICTIVE FOR SELECT USING (%s)', bound.place, CASE
                WHEN condition = visible THEN visible
                ELSE format('(SELECT current_user <> ''engram_reader'') OR (%s)', condition) END);
        END LOOP;
    END $$
"""
OPEN_POLICIES = _OPEN_POLICIES.replace(
    "<places>",
    """
    SELECT oid, relname AS name, NULL::text AS shard FROM pg_class
    WHERE relnamespace = current_schema()::regnamespace
      AND to_regclass('pg_catalog.pg_dist_partition') IS NULL
    """,
)
"""Of the tables of a database that is no cluster's."""
OPEN_POLICIES_OF_SHARDS = _OPEN_POLICIES.replace(
    "<places>",
    """
    SELECT shard_name(s.logicalrelid, s.shardid)::regclass AS oid, c.relname AS name, s.shardminvalue AS shard
    FROM pg_dist_shard s JOIN pg_class c ON c.oid = s.logicalrelid JOIN pg_dist_placement p ON p.shardid = s.shardid
    WHERE p.groupid = (SELECT groupid FROM pg_dist_local_group)
    """,
)
"""Of the shards on the node of a cluster that it runs on. Those of one range of collections ask each other."""

# What these roles may do: a backup does not hold it.
GRANTS = """
    DO $$ DECLARE
        granted record;
    BEGIN
        FOR granted IN
            SELECT DISTINCT c.relname AS name, r.rolname AS role FROM pg_class c
            JOIN pg_attribute a ON a.attrelid = c.oid
            JOIN pg_roles r ON r.rolname IN ('engram_tenant', 'engram_reader')
            WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
              AND NOT c.relispartition
              AND (a.attname = 'collection_id' OR c.relname = 'collection' AND a.attname = 'tenant')
        LOOP
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO %I', granted.name, granted.role);
            EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO %I', current_schema(), granted.role);
        END LOOP;
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'engram_reader') THEN
            GRANT SELECT ON entity_embedding, entity_name, passage_embedding, passage_key_vector TO engram_reader;
            GRANT SELECT ON entity_reader_set TO engram_reader;
        END IF;
        IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'engram_tenant') THEN
            GRANT SELECT ON entity_reader_set TO engram_tenant;
        END IF;
    END $$
"""
EVERY_TABLE = (AS_LARGE_AS_ALL, BEFORE_ANY_ROW, CLOSED_POLICIES, VIEWS_OF_ALL, OPEN_POLICIES, GRANTS)
