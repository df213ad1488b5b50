"""A database distributed over a coordinator and two workers of Citus, by programs that `deploy/citus` builds."""

import importlib.util
import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import ModuleType
from uuid import uuid4

import psycopg
import pytest

from engram.context import tenancy
from engram.storage import citus_distribution
from engram.storage.database import Database
from engram.storage.schema_revision import migrate
from tests.support.processes import free_port

CITUS = os.environ.get("ENGRAM_EVALUATION_CITUS")
"""The folder of Postgres' programs where Citus is installed: tests then run on a cluster of it."""
DIFFERENCES = (Path(__file__).parents[2] / "docs/scale.md").read_text(encoding="utf-8")


def skip_on_citus(difference: str) -> pytest.MarkDecorator:
    """A mark of tests that a cluster does not pass; what differs there is a row in the table of docs/scale.md."""
    assert f"\n| {difference} |" in DIFFERENCES, f"docs/scale.md does not say that {difference} differ"
    return pytest.mark.skipif(CITUS is not None, reason=f"on Citus differ: {difference}")


@contextmanager
def open_distributed(programs: str) -> Iterator[str]:
    """The address of the coordinator of a new cluster, with the schema in place and distributed."""
    with tempfile.TemporaryDirectory(prefix="engram-citus-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o777)
        ports = [free_port() for _ in range(3)]
        with _cluster().run_cluster(Path(programs), Path(folder) / "data", ports, {"fsync": "off"}) as url:
            _distribute(url)
            yield url


@contextmanager
def open_distributed_beside(url: str) -> Iterator[str]:
    """The address of a new database on the cluster of ``url``, with the schema in place and distributed."""
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT nodeport FROM pg_dist_node ORDER BY groupid").fetchall()
    ports, name = [port for (port,) in rows], f"test_{uuid4().hex}"
    made = _cluster().make_database(ports, name)
    try:
        _distribute(made)
        yield made
    finally:
        for port in ports:
            _cluster().run_statements(port, f"DROP DATABASE {name} WITH (FORCE)", database="postgres")


def _cluster() -> ModuleType:
    file = Path(__file__).parents[2] / "deploy/citus/cluster.py"
    spec = importlib.util.spec_from_file_location("citus_cluster", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _distribute(url: str) -> None:
    migrate(url)
    with tenancy.allow_all_tenants(), closing(Database(url)) as database:
        with database.write_long() as writer:
            citus_distribution.distribute(writer, hnsw_ef_search=100)
        with database.write_long() as writer:
            citus_distribution.open_policies(writer)
