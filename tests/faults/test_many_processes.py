"""``engram up --api 2 --workers 2``: one port, even load, and every verdict once, though processes are killed."""

import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from engram.composition.container import Application
from tests.conftest import CURIE
from tests.faults.conftest import QUESTION
from tests.support import forked_up, state, undo
from tests.support.environment import inherit_environment
from tests.support.forks import ROOT, ForkedProcess
from tests.support.orphans import orphans
from tests.support.processes import PATIENCE_SECONDS, PLAIN_CLIENT, eventually, free_port

CLIENTS = 4
VERDICTS = 6
"""Of each client, in each half."""


class Up:
    """The command in a process of its own."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.metered = free_port() + 12_000
        told = {"ENGRAM_PORT": str(self.port), "ENGRAM_METRICS_PORT": str(self.metered), "PYTHONPATH": str(ROOT)}
        self.log = folder / "up.log"
        with self.log.open("wb") as log:
            program = [forked_up.__file__, "up", "--api", "2", "--workers", "2"]
            self.process = ForkedProcess(
                program, cwd=folder, env=inherit_environment() | dict(env) | told, stdout=log, stderr=log
            )

    def children(self, role: str) -> list[int]:
        """Processes of the role that live."""
        children = Path(f"/proc/{self.process.pid}/task")
        pids = [int(pid) for task in children.glob("*/children") for pid in task.read_text().split()]
        return [pid for pid in pids if Path(f"/proc/{pid}/comm").read_text() == f"{role}\n"]

    def queries(self, number: int) -> float | None:
        """How many queries the API process of this number has answered; None if it does not tell."""
        try:
            page = PLAIN_CLIENT.get(f"http://127.0.0.1:{self.metered + number}/metrics", timeout=60).text
        except httpx.HTTPError:
            return None
        return sum(map(float, re.findall(r"^engram_queries_total\{.*\} (\S+)$", page, re.MULTILINE)))


@pytest.fixture
def up(env: Mapping[str, str], tmp_path: Path) -> Iterator[Up]:
    run = Up(tmp_path, {**env, "ENGRAM_DATA_DIR": str(tmp_path / "data")})
    yield run
    run.process.kill()
    run.process.wait()


def test_processes_share_a_port_and_the_work_and_lose_nothing_when_killed(application: Application, up: Up) -> None:
    names = [f"many-{number}-{up.port}" for number in range(3)]
    for name in names:
        reception = application.corpus.ingest.receive(application.auth.access.prepare_opening(name))
        bodies = [{"metadata": {}, "sentences": None} | dict(passage) for passage in CURIE]
        reception.add(list(enumerate(bodies, start=1)), [])
        reception.finish()
    eventually(lambda: all(up.queries(number) is not None for number in range(4)), "four processes")
    eventually(lambda: "answers at" in up.log.read_text(), "an API")
    application.jobs.runner.run_ready()
    eventually(lambda: all(has_ingested(application, name) for name in names), "passages")

    eventually(lambda: has_each_answered(up, names[0]), "an answer of either API")
    before = count_answers(up)
    given = judge_by_clients(up.url, names, "first")
    assert count_answers(up) - before == CLIENTS * VERDICTS

    killed = up.children("serve")[:1] + up.children("worker")[:1]
    assert len(killed) == 2
    shot = threading.Timer(0.3, lambda: [os.kill(pid, signal.SIGKILL) for pid in killed])
    shot.start()
    again = judge_by_clients(up.url, names, "second")
    shot.join()
    eventually(lambda: up.log.read_text().count("ended with exit code 137; starting it again") == 2, "a new start")

    for name in names:
        eventually(lambda name=name: has_learned(application, name), "learning")
        assert len(state.event_statuses(application, name)) == given[name] + again[name]
        assert orphans(application, name) == {}
        undo.assert_verified(application, name)
    eventually(lambda: len(up.children("serve")) == len(up.children("worker")) == 2, "all four")
    up.process.terminate()
    assert up.process.wait(PATIENCE_SECONDS) == 0


def has_each_answered(up: Up, name: str) -> bool:
    """Whether both have answered, asked once more: which of them takes a connection is the kernel's choice."""
    httpx.post(f"{up.url}/query", json={"collection": name, "query": QUESTION}, trust_env=False, timeout=60)
    return all(up.queries(number) for number in range(2))


def count_answers(up: Up) -> float:
    return sum(up.queries(number) or 0.0 for number in range(2))


def has_learned(application: Application, name: str) -> bool:
    return set(state.event_statuses(application, name).values()) == {"applied"}


def has_ingested(application: Application, name: str) -> bool:
    with application.database.read() as reader:
        count = reader.scalar("SELECT passage_count FROM collection WHERE name = %(n)s", {"n": name})
    return bool(count == len(CURIE))


def judge_by_clients(url: str, names: list[str], stage: str) -> dict[str, int]:
    """Questions and verdicts of several clients at once, each until it is answered; how many by collection."""
    failed: list[BaseException] = []

    def judge(client: int) -> None:
        try:
            with httpx.Client(base_url=url, trust_env=False, timeout=60) as http:
                for number in range(VERDICTS):
                    name = names[(client + number) % len(names)]
                    answer = send(http, "/query", {"collection": name, "query": QUESTION}, None)
                    sentence = {"passage_id": "curie", "text": "Marie Curie was born in Warsaw in 1867."}
                    body = {"collection": name, "query_id": answer["query_id"], "supporting": [sentence]}
                    wait = number % 2 == 0
                    told = send(http, "/feedback", body | {"wait": wait}, f"{stage}-{client}-{number}")
                    assert told["status"] == "applied" or not wait
        except BaseException as error:  # noqa: BLE001 - told by the thread that waits
            failed.append(error)

    threads = [threading.Thread(target=judge, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed, failed
    each = dict.fromkeys(names, 0)
    for client in range(CLIENTS):
        for number in range(VERDICTS):
            each[names[(client + number) % len(names)]] += 1
    return each


def send(http: httpx.Client, path: str, body: Mapping[str, object], key: str | None) -> dict[str, str]:
    """The answer, asked for again under the same key while nobody gives one."""
    headers = {} if key is None else {"idempotency-key": key}
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        with suppress(httpx.TransportError):
            answer = http.post(path, json=body, headers=headers)
            if answer.status_code in (200, 202):
                return dict(answer.json())
            assert answer.status_code == 503, json.dumps(answer.json())
        time.sleep(0.05)
    raise AssertionError(f"no answer from {path}")
