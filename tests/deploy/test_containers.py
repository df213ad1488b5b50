"""The Dockerfile built and docker-compose.yml carried out, as far as chroots go: ask and judge through it.

Nothing else runs it: ``pytest -m containers tests/deploy/test_containers.py``, as root, on a machine with buildah,
debootstrap and a way to Debian's and Python's packages. CONTAINERS_DIR keeps images for the next run.
"""

import json
import os
import secrets
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from engram.wings.local.sample import COLLECTION
from engram.wings.local.sample.tour import question
from tests.support.containers import (
    BASE,
    BASE_PACKAGES,
    SERVER_PACKAGES,
    SERVERS,
    Buildah,
    Compose,
    Service,
    list_missing_tools,
)
from tests.support.openai_server import OpenAiServer, keyword_handler
from tests.support.processes import free_port

pytestmark = [pytest.mark.containers, pytest.mark.timeout(3600)]
PROGRAMS = "/usr/lib/postgresql/17/bin"


def is_taken(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Buildah:
    """With the images built."""
    if lacking := list_missing_tools():
        pytest.skip(f"this machine lacks {', '.join(lacking)}")
    if taken := [port for port in (5432, 6379) if is_taken(port)]:
        pytest.skip(f"somebody listens on {taken}")
    kept = os.environ.get("CONTAINERS_DIR")
    folder = Path(kept) if kept else tmp_path_factory.mktemp("containers")
    made = Buildah(folder)
    made.debian(BASE, "bookworm", BASE_PACKAGES)
    made.debian(SERVERS, "trixie", SERVER_PACKAGES)
    made.build_own_image()
    return made


@pytest.fixture(scope="module")
def llm() -> Iterator[OpenAiServer]:
    """What the judge asks."""
    with OpenAiServer(keyword_handler) as server:
        yield server


@pytest.fixture(scope="module")
def compose(buildah: Buildah, llm: OpenAiServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compose]:
    """Everything that the file has, the judge included, in the order in which it says."""
    folder = tmp_path_factory.mktemp("compose")
    password = secrets.token_hex(24)
    variables = {
        "POSTGRES_PASSWORD": password,
        "ENGRAM_LLM_BASE_URL": llm.base_url,
        "ENGRAM_JUDGE_EXAM": "false",  # it goes by words
    }
    up = Compose(buildah, folder, variables)
    for name in ("migrate", "api", "worker", "judge"):  # all share this machine's ports
        port = 8000 if name == "api" else free_port()
        up.services[name]["environment"] = up.services[name]["environment"] | {
            "ENGRAM_METRICS_PORT": str(free_port()),
            "ENGRAM_PORT": str(free_port() if is_taken(port) else port),
        }
    try:
        _servers(up, folder, password)
        for name in ("migrate", "api", "worker", "judge"):
            up.up(name)
        up.healthy(up.running["api"])
        yield up
    finally:
        up.down()


def _servers(up: Compose, folder: Path, password: str) -> None:
    """Postgres as its official image starts it, with Debian's packages, and Redis by the file's own command."""
    data, said = folder / "postgres", up.services["postgres"]["environment"]
    data.mkdir(mode=0o777)
    data.chmod(0o777)
    assert said["POSTGRES_PASSWORD"] == password
    script = f"""
        set -e
        printf %s "$POSTGRES_PASSWORD" > /tmp/password
        {PROGRAMS}/initdb -D /data/cluster -U "$POSTGRES_USER" -A scram-sha-256 \\
            --pwfile /tmp/password -E UTF8 > /dev/null
        echo 'host all all 127.0.0.1/32 scram-sha-256' >> /data/cluster/pg_hba.conf
        {PROGRAMS}/postgres --single -D /data/cluster postgres <<< 'CREATE DATABASE "'"$POSTGRES_DB"'"' > /dev/null
        exec {PROGRAMS}/postgres -D /data/cluster -k /tmp -c listen_addresses=127.0.0.1
    """
    up.up("postgres", instead=["bash", "-c", script], user="postgres", volumes=[f"{data}:/data"])
    command = up.services["redis"]["command"]
    up.up("redis", instead=["bash", "-c", 'cd /tmp && exec "$0" "$@"', *command], user="redis")


def _url(service: Service, setting: str = "ENGRAM_PORT") -> str:
    return f"http://127.0.0.1:{service.said['environment'][setting]}"


@pytest.fixture(scope="module")
def key(compose: Compose) -> str:
    """An access key made in the API's container."""
    made = compose.run_in(
        "api", "engram", "access", "create-key", "tester", "--scope", "admin", "--trusted", "--json"
    )
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["key"])


@pytest.fixture(scope="module")
def api(compose: Compose, key: str) -> Iterator[httpx.Client]:
    """A client of the API in its container, with the sample corpus."""
    address = _url(compose.running["api"])
    assert httpx.get(f"{address}/collections", trust_env=False).status_code == 401
    loaded = compose.run_in("api", "env", f"ENGRAM_ACCESS_KEY={key}", "engram", "sample")
    assert loaded.returncode == 0, (loaded.stdout, loaded.stderr)
    headers = {"authorization": f"Bearer {key}"}
    with httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=60.0) as client:
        wait_until(lambda: client.get("/readyz").status_code == 200)
        yield client


def wait_until(condition: object) -> None:
    deadline = time.monotonic() + 120
    assert callable(condition)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_the_tour_of_the_readme_shows_what_a_verdict_teaches(compose: Compose, api: httpx.Client) -> None:
    body = {"collection": COLLECTION, "query": question().text}
    before = api.post("/query", json=body | {"arm": {"memory": "off"}}).raise_for_status().json()
    evidence = {passage for passage, _ in question().supporting}
    assert list_leading(before) != evidence
    verdict = {
        "collection": COLLECTION,
        "query_id": before["query_id"],
        "complete": True,
        "supporting": [{"passage_id": passage, "text": text} for passage, text in question().supporting],
    }
    judged = api.post("/feedback", json=verdict, headers={"idempotency-key": "one"}).raise_for_status().json()
    event = f"/feedback/{judged['feedback_id']}?collection={COLLECTION}"
    wait_until(lambda: api.get(event).json()["status"] == "applied")
    after = api.post("/query", json=body).raise_for_status().json()
    assert list_leading(after) == evidence
    assert after["sufficiency"] > before["sufficiency"] + 0.1
    verified = compose.run_in("worker", "engram", "verify", "-c", COLLECTION)
    assert f"{COLLECTION}: follows from the log" in verified.stdout, (verified.stdout, verified.stderr)


def list_leading(answer: dict[str, Any]) -> set[str]:
    """Return the passages that lead an answer, as many as hold the evidence."""
    return {passage["passage_id"] for passage in answer["passages"][:2]}


def test_llm_judge_container_judges_open_queries(api: httpx.Client) -> None:
    api.post("/query", json={"collection": COLLECTION, "query": "What is Titan made of?"}).raise_for_status()

    def judges() -> set[str]:
        page = api.get("/feedback", params={"collection": COLLECTION}).raise_for_status().json()
        return {event["judge"] for event in page["feedback"]}

    wait_until(lambda: "llm-judge" in judges())


@pytest.mark.parametrize("name", ["postgres", "redis", "api", "worker"])
def test_health_checks_say_that_it_is_well(compose: Compose, api: httpx.Client, name: str) -> None:
    compose.healthy(compose.running[name])


@pytest.mark.parametrize("name", ["api", "worker", "judge"])
def test_processes_are_unprivileged_and_show_their_metrics(compose: Compose, api: httpx.Client, name: str) -> None:
    service = compose.running[name]
    (process,) = service.inside()
    assert set(process.uids()) == set(process.gids()) == {10001}
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert "CapEff:\t0000000000000000" in status
    page = httpx.get(f"{_url(service, 'ENGRAM_METRICS_PORT')}/metrics", trust_env=False, timeout=30.0)
    assert "engram_postgres_up 1.0" in page.text


def test_the_worker_says_that_it_lives_and_can_work(compose: Compose, api: httpx.Client) -> None:
    address = _url(compose.running["worker"], "ENGRAM_METRICS_PORT")
    for path in ("/healthz", "/readyz"):
        answer = httpx.get(f"{address}{path}", trust_env=False, timeout=30.0)
        assert (answer.status_code, answer.json()["status"]) == (200, "ok")


def test_the_image_carries_the_built_page_and_nothing_that_it_is_built_or_tested_with(
    compose: Compose, api: httpx.Client
) -> None:
    assert api.get("/").headers["content-type"].startswith("text/html")
    (packages,) = (compose.running["api"].folder / "opt/engram/lib").glob("python3*/site-packages")
    assert (packages / "engram").is_dir()
    for name in ("tests", "docs", "benchmarks", "clients", "integrations", "console", "node_modules"):
        assert not (packages / name).exists()
        assert not list((packages / "engram").rglob(name)) or name == "console"


@pytest.mark.parametrize("name", ["api", "worker", "judge"])
def test_services_run_on_a_read_only_file_system(compose: Compose, api: httpx.Client, name: str) -> None:
    service = compose.running[name]
    subprocess.run(["mount", "-o", "remount,ro", str(service.folder)], check=True)
    try:
        api.post("/query", json={"collection": COLLECTION, "query": question().text}).raise_for_status()
        if name == "worker":
            compose.healthy(service)
        assert service.process.poll() is None
    finally:
        subprocess.run(["mount", "-o", "remount,rw", str(service.folder)], check=True)


def test_the_doctor_finds_nothing_wrong_but_an_old_pgvector(compose: Compose, api: httpx.Client) -> None:
    done = compose.run_in("worker", "engram", "doctor")
    assert "WRONG" not in done.stdout, done.stdout
    assert "pgvector" in done.stdout


def test_a_backup_is_made_and_proved_inside(compose: Compose, api: httpx.Client) -> None:
    done = compose.run_in("worker", "engram", "backup", "/tmp/backup", "--check")
    assert "1 collection verified" in done.stdout, (done.stdout, done.stderr)


@pytest.mark.parametrize("name", ["judge", "api", "worker"])
def test_containers_stop_in_time(compose: Compose, api: httpx.Client, name: str) -> None:
    assert compose.stop(compose.running[name]) == 0
