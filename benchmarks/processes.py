"""Queries and verdicts with one and with several processes of each role, as ``engram up`` runs them.

    python benchmarks/processes.py DATASET_DIR --passages 300 --clients 8 --questions 160

Processor time is that of the processes themselves, so that it depends little on who else uses the machine.
"""

import argparse
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from itertools import islice
from pathlib import Path
from typing import Any

import httpx

PORT = 28_700


def lines(folder: Path, name: str, count: int) -> list[dict[str, Any]]:
    """The first rows of a file of the data set."""
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in islice(file, count)]


def read_processor_seconds(pid: int) -> float:
    """Processor seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid: int, role: str) -> list[int]:
    """Processes of the role."""
    pids = [int(one) for task in Path(f"/proc/{pid}/task").glob("*/children") for one in task.read_text().split()]
    return [one for one in pids if f"\0{role}" in Path(f"/proc/{one}/cmdline").read_text()]


def is_ready(url: str, count: int) -> bool:
    """Whether all API processes tell of themselves, and one is ready."""
    try:
        for number in range(count):
            httpx.get(f"http://127.0.0.1:{PORT + 1 + number}/metrics", trust_env=False)
        return httpx.get(f"{url}/readyz", trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def run(count: int, arguments: argparse.Namespace) -> None:
    """Measure with so many processes of each role."""
    corpus = lines(arguments.dataset, "corpus", arguments.passages)
    passages = [{"id": row["_id"], "title": row["title"], "text": row["text"]} for row in corpus]
    questions = [row["text"] for row in lines(arguments.dataset, "queries", arguments.questions)]
    url = f"http://127.0.0.1:{PORT}"
    with tempfile.TemporaryDirectory() as folder:
        env = os.environ | {"ENGRAM_DATA_DIR": folder, "ENGRAM_LOG_LEVEL": "ERROR"}
        env |= {"ENGRAM_PORT": str(PORT), "ENGRAM_METRICS_PORT": str(PORT + 1)}
        command = [sys.executable, "-m", "engram.cli", "up", "--api", str(count), "--workers", str(count)]
        with subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL) as up:
            try:
                while not is_ready(url, count):
                    time.sleep(0.2)
                with httpx.Client(base_url=url, trust_env=False, timeout=300) as http:
                    job = http.post("/passages", json={"collection": "b", "passages": passages}).json()["job_id"]
                    while http.get(f"/jobs/{job}").json()["status"] not in ("succeeded", "failed"):
                        time.sleep(0.5)
                roles = {role: children(up.pid, role) for role in ("serve", "worker")}
                before = {pid: read_processor_seconds(pid) for pids in roles.values() for pid in pids}
                began = time.perf_counter()
                ask_questions(url, questions, arguments.clients)
                took = time.perf_counter() - began
                used = {
                    role: [read_processor_seconds(pid) - before[pid] for pid in pids]
                    for role, pids in roles.items()
                }
                shares = [count_answers(number) for number in range(count)]
                report(count, len(questions), took, used, shares)
            finally:
                up.terminate()


def ask_questions(url: str, questions: list[str], clients: int) -> None:
    """Every question once, with a verdict on its first passage, by several clients."""
    waiting = iter(enumerate(questions))
    lock = threading.Lock()

    def client() -> None:
        with httpx.Client(base_url=url, trust_env=False, timeout=120) as http:
            while True:
                with lock:
                    number, question = next(waiting, (None, None))
                if number is None:
                    return
                answer = http.post("/query", json={"collection": "b", "query": question}).raise_for_status().json()
                first = [answer["passages"][0]["passage_id"]]
                body = {"collection": "b", "query_id": answer["query_id"], "supporting_passages": first}
                http.post("/feedback", json=body, headers={"idempotency-key": str(number)}).raise_for_status()

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def count_answers(number: int) -> int:
    """Queries that an API process answered."""
    page = httpx.get(f"http://127.0.0.1:{PORT + 1 + number}/metrics", trust_env=False).text
    return int(sum(map(float, re.findall(r"^engram_queries_total\{.*\} (\S+)$", page, re.MULTILINE))))


def report(count: int, questions: int, took: float, used: dict[str, list[float]], shares: list[int]) -> None:
    """One line."""
    serve, work = sum(used["serve"]), sum(used["worker"])
    print(
        f"{count} + {count}: {questions / took:.1f} questions/s, API {1000 * serve / questions:.1f} ms a question "
        f"({', '.join(f'{one:.1f} s' for one in used['serve'])}), workers {1000 * work / questions:.1f} ms, "
        f"answered by each {shares}"
    )


def main() -> None:
    """Parse and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, default=300)
    parser.add_argument("--questions", type=int, default=160)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    arguments = parser.parse_args()
    for count in arguments.processes:
        run(count, arguments)


if __name__ == "__main__":
    main()
