"""What statements read in a collection that the planner has not heard of, beside one of thousands of passages."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import psycopg
import pytest
from sqlalchemy.engine import make_url
from structlog.testing import capture_logs

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.core.ranking.profiles import DEFAULT
from engram.services.question import caches
from engram.storage.corpus import collections
from engram.storage.corpus.collections import IndexRecall
from engram.storage.database import observe_sql
from engram.storage.learning import question_supports
from engram.storage.maintenance import vector_indexes
from engram.storage.question import entity_lookup, passages_by_key
from engram.storage.question.query_focus import Focus, GraphLimits
from tests.support import knowledge, large, workload
from tests.support.campaign import leave_to_campaign
from tests.support.citus import skip_on_citus
from tests.support.databases import application_on, new_database, open_migrated
from tests.support.keys import unit
from tests.support.plans import TENANTS, Watch, watch_plans

KEPT_AFTER = 20
FUNCTIONS = 180
"""Of the storage layer that are run, at least: so many that none is left out by mistake."""
# Everything else looks up what it needs, whatever the planner knows.
WHOLE_COLLECTIONS = {
    "collection_deletion.remove_piece": "a collection goes with all that is in it",
    "collection_deletion.has_rows": "a collection goes with all that is in it",
    "collection_deletion.end": "a collection goes with all that is in it",
    "learned_state.delete_all": "all that was learned is forgotten",
    "sessions.delete_all": "all that was learned is forgotten",
    "staged_embeddings.forget_texts": "all that was learned is forgotten",
    "session_erasure.forget_in_copy": "a copy of a log is made of all of it",
    "session_erasure._forget_asked_rounds": "an erasure looks at the rounds that all jobs were asked to make",
    "graph_hops.find_all_sentences": "a question that names nothing may be about any sentence",
    "memory_hops.find_all_sentences": "a question that names nothing may be about any sentence",
    "sentence_memories.delete_all": "all that was learned is forgotten",
    "passages_by_key.find_nearest_passages": "exact search: a collection without a vector index is small",
    "passages_by_key._search_nearest_to_each": "exact search, as well",
    "passages_by_key.load_all_keys": "a process keeps them all",
    "document_versions._load": "documents whose dates were never read are looked for, once an ingest",
    "documents.find_taught": "verdicts that wait are few, and known by no sentence of theirs",
    "document_versions.list_all": "documents are told from their versions, once an ingest that wrote some",
    "passage_counts.count": "all passages of a collection are counted",
    "passages.sample": "a sample is drawn from all passages, once an ingest",
    "reader_sets.is_bound": "any set of readers tells that passages have some",
    "reader_sets.describe_visible": "what a caller sees of a collection is counted",
    "kinds.load_best_candidates": "the latest queries, up to a limit, once an ingest",
    "kinds.keep": "any belief about weights tells that verdicts taught something; they are few",
    "kinds.list_unmeasured": "any belief about weights tells that verdicts taught something; they are few",
    "passage_candidates.find": "exact search, as well",
    "question_supports.recall": "exact search, as well",
    "current_vectors.renew_question_version": "judged questions are counted when a share of them changed",
    "question_samples.load_question_sample": "exact search, as well",
    "question_samples.load_asked_sample": "exact search, as well",
    "question_samples.load_question_vectors": "a sample of judged questions, up to a limit",
    "walk_opening.read": "exact search, as well",
    "asked_questions.list_asked": "the latest queries, up to a limit",
    "influence_rows.list_near_questions": "exact search, as well",
    "influence_rows.list_latest_terms": "the terms of weights are explained by the latest of all",
    "replay_history.terms": "a sum of weights is made of all terms",
    "replay_history.term_sums": "a sum of weights is made of all terms",
    "stored_outcomes.beliefs": "a verification asks for all beliefs",
    "stored_outcomes.list_left_behind": "a verification looks for what should not be there",
    "revocations.begin": "a job revokes all verdicts that match",
    "key_generations.delete_all": "all that was learned is forgotten",
    "key_generations.go_to": "evolutions are few, and a rollback says of each whether it counts",
    "key_generations.open_next": "evolutions are few, and the next one has the next number",
    "key_generations.page": "evolutions are few, and listed",
    "key_generations.list_touched_passages": "a rollback looks for what the evolutions took in",
    "evolved_keys.list_due": "one row a collection says whether an evolution is due",
    "evolved_keys.list_behind": "one row a collection says whether all verdicts are credited",
    "key_evidence_log.list_uncredited": "keys that learn again look for all that was not credited",
    "memory_log.list_untaught": "memories that learn again look for all that moved none",
    "staged_keys.list_unstaged": "a re-key job goes through all passages",
    "staged_keys.count": "what a re-key job staged is as much as there are passages",
    "staged_keys.let_go": "what a re-key job staged is as much as there are passages",
    "joined_entities.load_joins": "a verification asks for all entities that stand for another one",
    "joined_entities.list_counting_joins": "a verification asks for all joins that count",
    "job_claims._take": "jobs that run are few, and counted by tenant",
    "collection_copies.copy_passages": "a copy takes its sets of readers, which are few",
    "copied_facts.copy_facts": "a copy",
    "copied_keys.copy_generations": "a copy",
    "copied_keys.count_generations": "a copy",
    "copied_keys.settle_restored": "a copy; evolutions are few",
    "copied_keys.has_keys": "a copy",
    "copied_keys.count_keyed": "a copy",
    "copied_log.list_revoked_since": "a copy",
    "copied_log.count_learned_rows": "a copy",
    "copied_log.count_questions": "a copy",
    "copied_log.count_removed_sentences": "a copy",
    "copied_memories.count_moved": "a copy",
    "collection_copies.census": "a copy",
    "collection_copies.open_copy": "a copy",
    "collection_copies.settle_counts": "a copy",
    "tuning_samples.load_supports": "the newest judged questions, up to a limit, teach an encoder",
    "tuning_samples.load_passages": "an encoder learns from all passages, or an even sample of them",
    "tuning_samples.count_judged": "the next attempt is due by how many questions were judged",
    "tuning_samples.list_asked_questions": "the latest queries, up to a limit, once an attempt",
    "tuning_generations.load_progress": "the next attempt is due by how many questions were judged",
    "tuning_generations.load_page": "attempts are few, and listed",
    "tuning_generations.list_all": "attempts are few, and verified",
    "tuning_generations.find_last_usable": "attempts are few",
    "tuning_generations.list_borrowed": "generations that others borrowed are few",
    "tuning_generations.delete_all": "all that was learned is forgotten",
    "tuning_generations.withdraw": "verdicts that taught a generation are some thousands",
    "tuning_generations.find_exposed": "verdicts that taught a generation are some thousands",
    "tuning_generations.list_wrong_verdicts": "verdicts that taught a generation are some thousands",
    "tuning_generations.count_verdicts": "verdicts that taught a generation are some thousands",
}
# Of these one scan is inside a loop of few rows.
REPEATED = {
    "passages_by_key._search_nearest_to_each": "for each of the verdicts that are applied together",
    "question_samples.load_question_sample": "for each of a sample of judged questions",
    "question_samples.load_asked_sample": "for each of a sample of asked questions",
    "copied_facts.copy_facts": "merges of entities are few",
    "job_claims._take": "jobs that run are few",
    "copied_keys.settle_restored": "evolutions are few",
    "collection_copies.census": "for the one row of the collection",
    "collection_copies.copy_passages": "lists of readers and documents of a batch are few",
}
# While a table holds a few pages, changing rows of it is cheapest by reading it; a worker analyses it as it grows.
SMALL_TABLES = {
    "audit_rows.withdraw", "graph_writer._set_links", "learned_weights.contest", "learned_weights.recount",
    "copied_keys.settle_restored", "copied_log.settle_restored",
    "question_supports.replace_supports",
}  # fmt: skip
# Pages in the order of ids: where a table seems to hold little, all that follows is read and sorted.
PAGES = {
    "copied_log.events", "feedback_events.page", "stored_outcomes.events", "stored_outcomes.question_ids",
    "revocations.list_next",
}  # fmt: skip


@pytest.fixture(scope="module")
def filled(addresses: Servers, settings: Settings) -> Iterator[Servers]:
    """A database with the large collection, never analysed."""
    with open_migrated(addresses) as servers:
        with _connect(servers.database_url) as connection:
            large.fill(connection, dimension=384)
        yield servers


def _connect(url: str) -> "psycopg.Connection[tuple[object, ...]]":
    plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
    return psycopg.connect(plain, autocommit=True)


def _watch_workload(servers: Servers, settings: Settings, application: Application) -> Watch:
    # Keys are kept after a few questions, so that they are searched in either way.
    kept = patch.multiple(caches, LEAST_PASSAGES=1, QUESTIONS_BEFORE_READ=KEPT_AFTER)
    with application_on(servers, settings, application) as apart, watch_plans() as watch, capture_logs(), kept:
        workload.run(apart, "fresh")
    assert "passages_by_key.load_all_keys" in watch.runs
    assert len(watch.runs) > FUNCTIONS
    return watch


@pytest.mark.parametrize("kind", leave_to_campaign(knowledge.KINDS, ordinary=("large", "none")))
@pytest.mark.wing("experiments", "facts", "published", "sessions", "tuning", "why")
@skip_on_citus("plans")
def test_a_new_collection_is_looked_up(
    kind: str, filled: Servers, settings: Settings, application: Application
) -> None:
    with new_database(filled.database_url, copied=True) as url:
        with _connect(url) as connection:
            knowledge.misinform(connection, kind)
        watch = _watch_workload(Servers(url, filled.redis_url), settings, application)
    expected = WHOLE_COLLECTIONS.keys() | (set() if kind in {"large", "small"} else PAGES)
    assert [reading for reading in watch.readings if reading.statement not in expected] == []
    assert {reading.statement for reading in watch.readings if reading.again} <= REPEATED.keys()


# Of the collection of thousands the first rows, as a collection of their own.
_NEW = """
INSERT INTO collection (id, name, encoder_model, encoder_fingerprint, encoder_dimension, passage_count, indexed)
OVERRIDING SYSTEM VALUE VALUES (2, 'new', '', '', 384, 2000, ARRAY['entity', 'passage', 'question']);
INSERT INTO passage (collection_id, id, external_id, title, text, language, metadata, content_hash, embedding)
SELECT 2, id, external_id, title, text, language, metadata, content_hash, embedding
FROM passage WHERE collection_id = 1 AND id <= 2000;
INSERT INTO entity (collection_id, id, name, surface, spelling, embedding)
SELECT 2, id, name, surface, spelling, embedding FROM entity WHERE collection_id = 1 AND id <= 2000;
INSERT INTO question (collection_id, id, text_hash, text, embedding)
SELECT 2, id, text_hash, text, embedding FROM question WHERE collection_id = 1 AND id <= 2000;
"""


@skip_on_citus("plans")
def test_a_new_collection_is_searched_through_its_vector_indexes(
    filled: Servers, settings: Settings, application: Application
) -> None:
    taken: dict[tuple[str, bool], list[str]] = {}
    with new_database(filled.database_url, copied=True) as url, _connect(url) as connection:
        knowledge.misinform(connection, "large")
        connection.execute(_NEW)
        with application_on(Servers(url, filled.redis_url), settings, application) as apart:
            with apart.database.administer() as administrator:
                for table in vector_indexes.BUILDS:
                    vector_indexes.build(administrator, table, 2, 384, 64)
            for kind in ("large", *(kind for kind in knowledge.KINDS if kind != "large")):
                if kind != "large":  # after which the planner would know of the new one
                    knowledge.misinform(connection, kind)
                for broadly in (False, True):
                    plans = _list_search_plans(apart, broadly=broadly)
                    taken[kind, broadly] = [name for plan in plans for name in re.findall(r"(\w+)_hnsw_2", plan)]
    expected = ["passage", "passage", "entity", "question"]
    assert taken == {(kind, broadly): expected for kind in knowledge.KINDS for broadly in (False, True)}


def _list_search_plans(application: Application, *, broadly: bool) -> list[str]:
    """The plan of each search in the new collection; ``broadly``: as where its indexes find too little else."""
    limits = GraphLimits(hub_limit=10, candidate_limit=10)
    sent: list[tuple[str, Mapping[str, Any]]] = []

    with application.database.read() as reader:
        vector = unit(np.ones(application.models.embedder.dimension))
        target = collections.find(reader, "new")
        if broadly:
            measured = IndexRecall(recall=0.9, breadth=400, configured=100, rows=2000, measured_at="")
            target = replace(target, index_recall=dict.fromkeys(vector_indexes.BUILDS, measured))
        focus = Focus(target, vector, limits=limits, use_memory=True, policy=DEFAULT.policy)
        with observe_sql(lambda _connection, *what: sent.append(what)):
            passages_by_key.find_nearest_passages(reader, focus, 50)
            passages_by_key.find_nearest_to_each(
                reader, focus.collection, [passages_by_key.KeySearch(focus.vector, 50)], limits
            )
            entity_lookup.find_nearest_entity(reader, focus.collection, focus.vector, limits)
            question_supports.recall(reader, focus, 50)
    with application.database.read() as reader:
        return [
            "\n".join(row[0] for row in reader.rows(f"EXPLAIN {statement}", given)) for statement, given in sent
        ]


@pytest.mark.wing("experiments", "facts", "published", "sessions", "tuning", "why")
@skip_on_citus("plans")
def test_plans_made_while_there_is_nothing_serve_when_there_is(
    addresses: Servers, settings: Settings, application: Application
) -> None:
    with open_migrated(addresses) as servers:
        with _connect(servers.database_url) as connection:
            knowledge.stop_autovacuum(connection)
        watch = _watch_workload(servers, settings, application)
    expected = WHOLE_COLLECTIONS.keys() | SMALL_TABLES | PAGES
    unexpected = [reading for reading in watch.readings if reading.statement not in expected]
    assert unexpected == []
    assert {reading.statement for reading in watch.readings if reading.again} <= REPEATED.keys() | SMALL_TABLES


@skip_on_citus("plans")
def test_plans_are_made_for_any_collection(application: Application) -> None:
    for pool in (application.database.read, application.database.write, application.database.write_long):
        with pool() as connection:
            assert connection.scalar("SHOW plan_cache_mode") == "force_generic_plan"
            assert connection.scalar("SHOW enable_seqscan") == "off"


def test_the_planner_takes_any_collection_for_as_large_as_its_table(application: Application) -> None:
    with application.database.read() as reader:
        rows = reader.rows(
            """
            SELECT t.relname, stats.n_distinct, a.attoptions FROM pg_attribute a
            JOIN pg_class t ON t.oid = a.attrelid AND t.relkind IN ('r', 'p') AND NOT t.relispartition
                AND t.relnamespace = 'public'::regnamespace
            LEFT JOIN pg_stats stats ON stats.tablename = t.relname AND stats.attname = 'collection_id'
            WHERE a.attname = 'collection_id'
            """
        )
        version = reader.scalar("SELECT current_setting('server_version_num')::int")
    assert {row.relname for row in rows} == TENANTS
    for row in rows:  # beside what newer servers note there for themselves
        assert [said for said in row.attoptions if not said.startswith("pg_attver=")] == ["n_distinct=1"]
    if version >= 180000:
        # A table in partitions has no rows of its own, and no statistics.
        assert {row.n_distinct for row in rows if row.relname != "episode"} == {1}
