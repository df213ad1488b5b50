"""Engram on a Citus cluster, where one was built: ENGRAM_EVALUATION_CITUS names the folder of its programs."""

from contextlib import closing
from uuid import uuid4

import pytest

from engram.composition.container import Application, Servers
from engram.context import tenancy
from engram.context.errors import ConfigurationError
from engram.context.tenancy import ReaderNames
from engram.storage import citus_distribution
from engram.storage.database import Database
from engram.storage.schema_revision import migrate
from engram.wings.history.parts import history_of
from engram.wings.upkeep.services.collection_move import CollectionMoveService, Place
from engram.wings.upkeep.storage import schema_drift
from tests.conftest import CURIE, Ingest
from tests.support import past, undo
from tests.support.citus import CITUS
from tests.support.databases import new_database
from tests.support.strict_client import TestClient

READERS = ("group:a", "group:b")

pytestmark = pytest.mark.skipif(CITUS is None, reason="ENGRAM_EVALUATION_CITUS is not set")


def test_collections_live_on_single_nodes_and_learn_there(
    http: TestClient, application: Application, ingest: Ingest
) -> None:
    names = [f"test-{uuid4().hex}" for _ in range(6)]
    for name in names:
        assert ingest(*CURIE, into=name)["status"] == "succeeded"
    with application.database.read() as reader:
        assert reader.distributed
        assert citus_distribution.is_distributed(reader)
        nodes = reader.rows(
            """
            SELECT c.name, shard.nodeport FROM collection c JOIN citus_shards shard
              ON shard.shardid = get_shard_id_for_distribution_column('passage', c.id)
            WHERE c.name = ANY(%(names)s)
            """,
            {"names": names},
        )
    assert len({row.nodeport for row in nodes}) == 2
    for name in names[:2]:
        answer = http.post("/query", json={"collection": name, "query": "Where was Marie Curie born?"}).json()
        best = answer["passages"][0]
        assert best["passage_id"] == "curie"
        read = http.get(f"/queries/{answer['query_id']}", params={"collection": name}).json()
        sentence = read["passages"][0]["sentences"][0]["sentence_id"]
        verdict = {"collection": name, "query_id": answer["query_id"], "supporting": [sentence]}
        judged = http.post("/feedback", json=verdict | {"wait": True}, headers={"idempotency-key": "1"})
        assert judged.status_code == 200, judged.text
        assert judged.json()["status"] == "applied"
    assert all(
        report.clean for report in application.revocation.verification.verify_all(1) if report.collection in names
    )


def test_distributed_schema_is_complete_and_missing_parts_are_reported(application: Application) -> None:
    assert schema_drift.list_missing(application.database) == []
    key = "sentence_passage_fkey"
    with application.database.write_long() as writer:
        told = writer.scalar(
            "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conname = %(key)s", {"key": key}
        )
        writer.execute(f"ALTER TABLE sentence DROP CONSTRAINT {key}")
    try:
        assert schema_drift.list_missing(application.database) == [f"fk {key} of sentence"]
    finally:
        with application.database.write_long() as writer:
            writer.execute(f"ALTER TABLE sentence ADD CONSTRAINT {key} {told}")


def test_a_shard_that_moved_shows_a_caller_nothing_until_it_is_opened(
    application: Application, ingest: Ingest
) -> None:
    name = f"test-{uuid4().hex}"
    shown, hidden = ({**passage, "readers": [reader]} for passage, reader in zip(CURIE, READERS, strict=False))
    assert ingest(shown, hidden, into=name)["status"] == "succeeded"
    target = application.auth.access.scope(name).collection.id

    def list_seen() -> list[str]:
        who = tenancy.restrict_to("local", ReaderNames((shown["readers"][0],)))
        with who, application.database.read() as reader:
            rows = reader.rows("SELECT external_id FROM passage WHERE collection_id = %(id)s", {"id": target})
        return [row.external_id for row in rows]

    assert list_seen() == [shown["id"]]
    with application.database.administer() as administrator:
        administrator.row(
            """
            SELECT citus_move_shard_placement(shard.shardid, shard.nodename, shard.nodeport, n.nodename, n.nodeport,
                'block_writes')
            FROM citus_shards shard JOIN pg_dist_node n ON n.shouldhaveshards AND n.nodeport <> shard.nodeport
            WHERE shard.shardid = get_shard_id_for_distribution_column('passage', %(id)s)
            """,
            {"id": target},
        )
    assert list_seen() == []
    (missing,) = schema_drift.list_missing(application.database)
    assert missing.startswith("open row security on ")
    with application.database.write_long() as writer:
        citus_distribution.open_policies(writer)
    assert list_seen() == [shown["id"]]
    assert schema_drift.list_missing(application.database) == []


def test_a_past_moment_is_brought_back(application: Application, curie: str) -> None:
    undo.apply(application, curie, undo.stream(application, curie, 12, seed=3))
    scope = application.auth.access.scope(curie)
    name = f"{curie}-past"
    made = history_of(application).past.make(scope.collection, past.now(application), name)
    assert made.events == 12
    undo.assert_verified(application, name)
    undo.assert_same(past.list_learned(application, name), past.list_learned(application, curie))
    undo.assert_same(past.corpus(application, name), past.corpus(application, curie))


def test_collections_move_neither_from_a_cluster_nor_to_one(
    application: Application, addresses: Servers, curie: str
) -> None:
    with new_database(addresses.database_url) as url, closing(Database(url)) as alone:
        migrate(url)
        places = [Place(each, application.revocation.verification) for each in (application.database, alone)]
        for source, target in (places, places[::-1]):
            with pytest.raises(ConfigurationError, match="is a cluster's, which moves no collections"):
                CollectionMoveService(source, target, index_memory_mb=64).move(curie, "local")
    assert application.auth.access.scope(curie).collection.name == curie


def test_distribution_is_idempotent(application: Application) -> None:
    with application.database.write_long() as writer:
        spread = citus_distribution.distribute(writer, hnsw_ef_search=100)
    assert (spread.tables, spread.references, spread.foreign_keys) == (0, 0, 0)
