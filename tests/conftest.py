"""Shared fixtures: the real embedded Postgres and Redis, one application on them, a collection per test."""

import gc
import os
import re
import ssl
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from itertools import compress
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from structlog.testing import capture_logs

from engram.composition.container import Application, Servers
from engram.composition.wings import choose_wings, list_installed_wings, load_tables
from engram.config.settings import Settings
from engram.context import tenancy
from engram.providers.embedder import Embedder
from engram.providers.language import Language
from engram.providers.language.language_detection import load_identifier
from engram.runtime.api_process import create_app
from engram.services.auth.scope import Scope
from engram.storage.schema_revision import migrate
from engram.wings.local.servers.local_servers import EmbeddedServers
from engram.wings.tuning.services import learning_process
from tests.support import encoder, forks, keys, threads
from tests.support.citus import CITUS, open_distributed
from tests.support.command import Cli
from tests.support.constants import EAGER, set_constants
from tests.support.databases import hide_later_functions, open_migrated
from tests.support.environment import PRECISION, WINGS  # reads the environment before it is cleared
from tests.support.forked_tests import PROCESS, run_forked
from tests.support.jobs import run_to_end
from tests.support.lent_connections import guard_pools
from tests.support.live_server import LiveServer
from tests.support.modelled import ModelApplications
from tests.support.strict_client import TestClient

DATA = os.environ.get("ENGRAM_EVALUATION_DATA")

for _name in list(os.environ):  # the settings of the machine's own Engram must not reach the tests
    if _name in {"DATABASE_URL", "READ_DATABASE_URL", "REDIS_URL"} or (
        _name.startswith("ENGRAM_") and not _name.startswith("ENGRAM_EVALUATION_")  # which other processes read too
    ):
        del os.environ[_name]
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # it would tell its makers of each pipeline
load_tables()  # tests read the schema's metadata, some of them as they are imported


# To look for garbage as often as by default takes a fourth of the imports, and a twentieth of the tests.
gc.set_threshold(20_000, 50, 1_000)

# No test asserts a time. A quarter of what Hypothesis would try; `--hypothesis-profile default` tries all.
hypothesis.settings.register_profile("quarter", parent=hypothesis.settings(deadline=None), max_examples=25)
hypothesis.settings.load_profile("quarter")

UNREACHABLE_SERVERS = Servers("postgresql://127.0.0.1:1/none", "redis://127.0.0.1:1/0")
Heavy = tuple[Embedder, Language]
PAGES_MB = 128
"""What a Postgres of tests keeps in memory: to start, to empty a table and to end take longer the more it is."""
FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
FIRST = (
    "tests/test_documented_commands.py",
    "tests/api/test_contract.py",
    "tests/evaluation/test_real_data.py",
    "tests/evaluation/test_adapt_protocol.py",
    "tests/evaluation/test_protocols.py",
    "tests/test_cli_evaluation.py",
    "tests/storage/test_plans.py",
    "tests/providers/test_embedder.py",
    "tests/services/verdict/test_sufficiency_level.py",
    "tests/evaluation/",
    "tests/faults/",
    "tests/indexes/",
    "tests/services/revocation/",
)
"""Files that take long, or folders of such files, in the order in which they are begun."""
TESTS = Path(__file__).parent
CORE = ("api", "composition", "context", "core", "providers", "services", "storage")
"""Folders of the core's tests; those that need a wing or walk over routes are marked."""
MARKED = re.compile(r"\bmark\.(?:wing|routes)\b")


def count_processes() -> int:
    """Twice as many processes as there are cores, as tests wait half of the time; eight at most."""
    return min(2 * (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1), 8)


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--of core`` and ``--of wings`` take a part of the tests each, and of the routes that walks go over."""
    parser.addoption("--forked", action="store_true", help="run the tests in several processes")
    parser.addoption("--of", choices=("all", "core", "wings"), default="all", help="whose tests to run")
    parser.addoption("--write-statements", action="store_true", help="keep the text of statements that are sent")


def pytest_configure(config: pytest.Config) -> None:
    """Tell modules that walk over routes, as they are imported, whose routes these are."""
    os.environ["TESTED_PART"] = config.getoption("--of")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Neither part imports a file that has no test of it: that would take as long as hundreds of tests."""
    part, inside = config.getoption("--of"), collection_path.relative_to(TESTS.parent).parts[1:]
    if part == "core":
        return True if len(inside) == 1 and inside[0] not in CORE else None
    if part == "all" or inside[:1] == () or inside[0] not in CORE or not inside[-1].startswith("test_"):
        return None
    return None if MARKED.search(collection_path.read_text(encoding="utf-8")) else True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Several processes take one file after the other: what takes long comes first, so that none is left alone."""

    def turn(item: pytest.Item) -> int:
        return next((at for at, path in enumerate(FIRST) if item.nodeid.startswith(path)), len(FIRST))

    part = config.getoption("--of")
    chosen = [part == "all" or part in _list_owners(item) for item in items]
    config.hook.pytest_deselected(
        items=[item for item, is_chosen in zip(items, chosen, strict=True) if not is_chosen]
    )
    items[:] = compress(items, chosen)
    on = {wing.name for wing in choose_wings(WINGS, list_installed_wings())}
    for item in items:
        needed = _list_needed_wings(item)
        if needed - on:
            item.add_marker(pytest.mark.skip(f"ENGRAM_WINGS leaves out {', '.join(sorted(needed - on))}"))
    if config.getoption("--forked"):
        items.sort(key=turn)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """With ``--forked``, run tests in processes that share what is imported, and the server of forks."""
    if not session.config.getoption("--forked") or session.config.option.collectonly or session.testsfailed:
        return None
    if session.config.getoption("--of") != "core":  # whose tests start no program
        forks.open_server()
    with capture_logs():  # what the first application of a process imports and reads takes seconds
        first = Application(Settings(_env_file=None, wings=WINGS), UNREACHABLE_SERVERS)
        create_app(first)
        first.models.language.analyse_question("Where was Marie Curie born?")
        load_identifier()
    run_forked(session, count_processes())
    return True


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Where one part has no test in the folders asked for, the other may have some."""
    if exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and session.config.getoption("--of") != "all":
        session.exitstatus = pytest.ExitCode.OK


def _list_needed_wings(item: pytest.Item) -> set[str]:
    return {name for mark in item.iter_markers("wing") for name in mark.args}


def _list_owners(item: pytest.Item) -> set[str]:
    if item.get_closest_marker("routes"):
        return {"core", "wings"}
    of_core = item.nodeid.split("/")[1] in CORE and not _list_needed_wings(item)
    return {"core" if of_core else "wings"}


def pytest_collection_finish() -> None:
    """What there is now stays: whoever looks for garbage need not look at it."""
    gc.freeze()


@pytest.fixture(autouse=True, scope="session")
def every_tenant() -> Iterator[None]:
    """Tests use services without a request, for all tenants; what serves requests sets its own tenancy."""
    with tenancy.allow_all_tenants():
        yield


@pytest.fixture(autouse=True, scope="session")
def pool_faults() -> Iterator[list[str]]:
    """What was wrong with connections that were given back to their pools."""
    with guard_pools() as faults:
        yield faults


@pytest.fixture(autouse=True)
def clean_pools(pool_faults: list[str]) -> Iterator[None]:
    """A request holds one pooled connection at most, and leaves nothing on it: each test of a route proves it."""
    pool_faults.clear()
    yield
    assert not pool_faults


@pytest.fixture(autouse=True)
def evolved_keys() -> Iterator[None]:
    """Evolved keys of a test go with it."""
    yield
    keys.forget_evolved()


@pytest.fixture(autouse=True, scope="session")
def one_trust() -> Iterator[None]:
    """Each client reads the certificates that it trusts, though none here speaks TLS: they are read once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", cache(ssl.create_default_context))
        yield


@pytest.fixture(autouse=True, scope="session")
def no_niceness() -> Iterator[None]:
    """What learns an encoder is not put off until all tests are done."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(learning_process, "NICENESS", 0)
        yield


@pytest.fixture(autouse=True, scope="session")
def eager_workers() -> Iterator[None]:
    """Workers in this process look more often for what is due, and so end soon."""
    with pytest.MonkeyPatch.context() as patch:
        set_constants(patch, EAGER)
        yield


@pytest.fixture(scope="session")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Defaults, on a data directory of this process."""
    data = tmp_path_factory.mktemp("engram")
    return Settings(
        _env_file=None,
        data_dir=data,
        log_level="WARNING",
        allowed_hosts="testserver,x",
        local_memory_mb=PAGES_MB,
        embedding_precision=PRECISION,
        wings=WINGS,
    )


@pytest.fixture(scope="session")
def heavy(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Heavy:
    """What takes long to load and holds no connection."""
    loading = Application(settings, UNREACHABLE_SERVERS)
    folder = tmp_path_factory.getbasetemp()
    if PROCESS in os.environ:
        folder = folder.parent  # which all processes have
    vectors = os.environ.setdefault(encoder.VECTORS, str(folder / "vectors.sqlite"))
    return encoder.MemoisingEncoder(loading.models.embedder, Path(vectors)), loading.models.language


@pytest.fixture(scope="session")
def addresses(settings: Settings) -> Iterator[Servers]:
    """Running servers with the schema in place; a Postgres that nobody kills waits for no disk."""
    with ExitStack() as stack:
        local = EmbeddedServers(FORGETFUL)
        postgres = local.open_postgres(settings, make=True) if CITUS is None else open_distributed(CITUS)
        running = Servers(stack.enter_context(postgres), stack.enter_context(local.open_redis(settings)))
        hide_later_functions(running.database_url)
        migrate(running.database_url)
        yield running


@pytest.fixture(scope="module")
def own(addresses: Servers) -> Iterator[Servers]:
    """The servers with a database of the module's own: nobody else does its jobs and verdicts, or fills it."""
    with open_migrated(addresses) as servers:
        yield servers


@pytest.fixture(scope="session")
def application(settings: Settings, addresses: Servers, heavy: Heavy) -> Iterator[Application]:
    """The application, encoder and language loaded."""
    services = Application(settings, addresses, consumer="tests")
    services.models.embedder, services.models.language = heavy
    services.startup.warm_up()
    yield services
    services.close()


@pytest.fixture(scope="module")
def service(application: Application) -> Iterator[str]:
    """Base URL of a running API."""
    with LiveServer(create_app(application)) as server:
        yield server.url


@pytest.fixture
def modelled(settings: Settings, addresses: Servers, application: Application) -> Iterator[ModelApplications]:
    """Makes applications whose LLM is a handler."""
    made = ModelApplications(settings, addresses, application)
    with made.open:
        yield made


@pytest.fixture
def cli(tmp_path: Path, service: str, settings: Settings) -> Cli:
    """The command line, talking to ``service``."""
    return Cli(tmp_path, service, settings.data_dir)


@pytest.fixture
def env(addresses: Servers) -> dict[str, str]:
    """What a command that goes straight to the servers needs in its environment."""
    return {
        "DATABASE_URL": addresses.database_url,
        "REDIS_URL": addresses.redis_url,
        "ENGRAM_LOG_LEVEL": "ERROR",
    }


@pytest.fixture
def collection() -> str:
    """The name of a collection that no other test uses."""
    return f"test-{uuid.uuid4().hex}"


@pytest.fixture
def working(application: Application) -> Iterator[None]:
    """Somebody does the jobs."""
    stop = threading.Event()

    def run_jobs() -> None:
        while not stop.wait(0.05):
            application.jobs.runner.run_ready()

    worker = threads.make_thread(run_jobs)
    worker.start()
    yield
    stop.set()
    worker.join()


Scoped = Callable[[str], Scope]


@pytest.fixture(scope="session")
def scoped(application: Application) -> Scoped:
    """What a collection's name is resolved to."""
    return application.auth.access.scope


Ingest = Callable[..., Mapping[str, Any]]


def ingest_passages(application: Application, into: str, *passages: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ingest passages (dicts with id, title, text, ...) and return the finished job's counts."""
    reception = application.corpus.ingest.receive(application.auth.access.prepare_opening(into))
    bodies = [{"title": None, "metadata": {}, "sentences": None} | dict(passage) for passage in passages]
    reception.add(list(enumerate(bodies, start=1)), [])
    job_id = reception.finish()
    scope = application.auth.access.scope(into)
    run_to_end(application, scope, job_id)
    job = application.jobs.jobs.job(scope, job_id)
    return {name: getattr(job, name) for name in ("status", "created", "updated", "unchanged", "error")}


@pytest.fixture
def ingest(application: Application, collection: str) -> Ingest:
    """``ingest_passages`` into the test's collection, or into another one."""

    def run(*passages: Mapping[str, Any], into: str = collection) -> Mapping[str, Any]:
        return ingest_passages(application, into, *passages)

    return run


@pytest.fixture(scope="session")
def http(application: Application) -> Iterator[TestClient]:
    """A client of the real ASGI application; server errors come back as responses, as they would over TCP."""
    with TestClient(create_app(application), raise_server_exceptions=False) as client:
        yield client


CURIE: Sequence[Mapping[str, Any]] = (
    {
        "id": "curie",
        "title": "Marie Curie",
        "text": "Marie Curie was born in Warsaw in 1867. Marie Curie discovered polonium in 1898.",
    },
    {
        "id": "warsaw",
        "title": "Warsaw",
        "text": "Warsaw lies on the Vistula. Warsaw is the capital of Poland.",
    },
    {"id": "vistula", "title": "Vistula", "text": "The Vistula flows into the Baltic Sea."},
    {"id": "polonium", "title": "Polonium", "text": "Polonium is named after Poland. Polonium is radioactive."},
    {"id": "tokyo", "title": "Tokyo", "text": "Tokyo is the capital of Japan. Tokyo lies on Tokyo Bay."},
)


@pytest.fixture
def curie(ingest: Ingest, collection: str) -> str:
    """A collection with five linked passages."""
    assert ingest(*CURIE)["created"] == len(CURIE)
    return collection


@pytest.fixture(scope="session")
def evaluation_data() -> Path:
    """The evaluation data folder; its absence fails in CI and skips elsewhere."""
    if DATA and Path(DATA).is_dir():
        return Path(DATA)
    if os.environ.get("CI"):
        pytest.fail("ENGRAM_EVALUATION_DATA does not name a folder")
    pytest.skip("ENGRAM_EVALUATION_DATA does not name a folder")
