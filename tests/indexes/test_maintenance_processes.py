"""Index maintenance as the command and the worker run it, in processes of their own."""

import json
import re
from pathlib import Path

import pytest

from engram.composition.container import Application, Servers
from engram.composition.servers import HNSW_EF_SEARCH
from engram.config.settings import Settings
from engram.storage.corpus import collections
from engram.storage.maintenance import vector_indexes
from tests.support.command import UNREACHABLE_URL, Cli
from tests.support.constants import DEAD_ROWS, DEAD_SHARE, EXACT_SEARCH_LIMIT
from tests.support.databases import index_all
from tests.support.processes import Process, eventually


@pytest.fixture
def cli(tmp_path: Path, settings: Settings) -> Cli:
    return Cli(tmp_path, UNREACHABLE_URL, settings.data_dir)


@pytest.fixture
def env(env: dict[str, str], own: Servers) -> dict[str, str]:
    """As everywhere, but every collection is large and every dead row one too many."""
    return env | {
        "DATABASE_URL": own.database_url,
        EXACT_SEARCH_LIMIT: "0",
        DEAD_ROWS: "1",
        DEAD_SHARE: "0.000001",
    }


def dead_passages(application: Application) -> int:
    with application.database.administer() as administrator:
        return vector_indexes.count(administrator, "passage").dead


def leftovers(application: Application) -> list[str]:
    with application.database.read() as reader:
        return vector_indexes.leftovers(reader)


def find_passage_index(application: Application, name: str) -> str:
    """The vector index of a collection's passages."""
    with application.database.read() as reader:
        return f"passage_hnsw_{collections.find(reader, name).id}"


def identity(application: Application, index: str) -> int:
    """Another one once the index was built anew."""
    with application.database.read() as reader:
        found: int = reader.scalar("SELECT %(index)s::text::regclass::oid::bigint", {"index": index})
    return found


def outdate(application: Application, name: str) -> None:
    """Leave a dead entry for every passage of a collection."""
    with application.database.write() as writer:
        changed = writer.execute(
            """
            UPDATE passage SET embedding = l2_normalize(embedding + (
                SELECT array_agg(0.001) FROM generate_series(1, 384))::vector
            ) WHERE collection_id = (SELECT id FROM collection WHERE name = %(name)s)
            """,
            {"name": name},
        )
    assert changed


def test_the_command_heals_and_reports(cli: Cli, application: Application, curie: str, env: dict[str, str]) -> None:
    index_all(application)
    outdate(application, curie)
    healed = json.loads(cli("maintain", "--json", **env).stdout)["indexes"]
    report = {row["index"]: row for row in healed}[find_passage_index(application, curie)]
    assert report["healed"]
    assert report["dead"] >= 5
    assert dead_passages(application) == 0
    assert (report["recall"], report["breadth"]) == (1.0, HNSW_EF_SEARCH)

    left = cli("maintain", **env).stdout.splitlines()
    headings = "index live dead share MiB before MiB after seconds recall breadth"
    assert left[0].split() == headings.split()
    assert [line.split()[0] for line in left[1:]] == [row["index"] for row in healed]
    assert all(line.endswith("left alone") for line in left[1:])
    (measured,) = [line for line in left if line.startswith(f"{find_passage_index(application, curie)} ")]
    assert measured.split()[-4:-2] == ["1.000", "100"]

    forced = cli("maintain", "--force", **env).stdout.splitlines()
    assert len(forced) == len(left)
    assert all(line.endswith("built anew") for line in forced[1:])


def test_the_command_says_in_one_line_why_it_cannot(
    cli: Cli, application: Application, curie: str, env: dict[str, str]
) -> None:
    with application.database.hold_lock("maintenance"):
        assert "another process" in cli.fails("maintain", **env)
    assert "Postgres" in cli.fails("maintain", **(env | {"DATABASE_URL": "postgresql://nobody@127.0.0.1:1/x"}))
    with application.database.write() as writer:
        writer.execute("CREATE ROLE stranger LOGIN PASSWORD 'x'")
        writer.execute("GRANT pg_read_all_data, pg_write_all_data TO stranger")
    try:
        stranger = re.sub(r"//engram(:[^@]*)?@", "//stranger:x@", env["DATABASE_URL"])
        assert "owner only, the role engram" in cli.fails("maintain", **(env | {"DATABASE_URL": stranger}))
    finally:
        with application.database.write() as writer:
            writer.execute("REVOKE pg_read_all_data, pg_write_all_data FROM stranger")
            writer.execute("DROP ROLE stranger")
    said = cli.fails("maintain", **(env | {"ENGRAM_MAINTENANCE_MEMORY_MB": "0"}))
    assert said.startswith("engram: setting ENGRAM_MAINTENANCE_MEMORY_MB: ")


def test_a_worker_heals(application: Application, curie: str, env: dict[str, str], tmp_path: Path) -> None:
    index_all(application)
    outdate(application, curie)
    index = find_passage_index(application, curie)
    before = identity(application, index)
    with Process("worker", tmp_path, env):
        eventually(lambda: identity(application, index) != before and not leftovers(application))


def test_terminated_worker_abandons_an_index_build(
    application: Application, curie: str, env: dict[str, str], tmp_path: Path
) -> None:
    index_all(application)
    outdate(application, curie)
    assert leftovers(application) == []
    with application.database.write() as writer, Process("worker", tmp_path, env) as worker:
        writer.execute("UPDATE passage SET title = title WHERE false")
        # Names' index may be built anew before, which nobody holds up; those of passages are.
        eventually(lambda: len(held := leftovers(application)) == 1 and held[0].startswith("passage_hnsw_"))
        held = leftovers(application)
        worker.terminate()
        code = worker.wait_for_end()
        left = leftovers(application)

    assert code == 0
    assert left == held
    reports = application.maintenance.indexes.run()
    assert reports is not None
    assert leftovers(application) == []
