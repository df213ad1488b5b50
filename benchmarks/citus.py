"""The same on plain Postgres and on a Citus cluster of a coordinator and two workers: what runs, and what it costs.

    python benchmarks/citus.py DATASET_DIR PROGRAMS --passages 100

DATASET_DIR is a BEIR folder, PROGRAMS the folder of a ``postgres`` that was built with Citus and pgvector. Each
step is taken on both; one that is refused is said with its error. Answers are compared by passages and scores.
Processor time is that of all processes of Postgres.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg
from fastapi.testclient import TestClient

import common
from engram.composition.container import Application, Servers, servers
from engram.config.settings import Settings
from engram.context import tenancy
from engram.runtime.api_process import create_app
from engram.storage.schema_revision import migrate
from tests.support import encoder
from tests.support.citus import open_distributed

COLLECTIONS = 3
JUDGED_QUESTIONS = 10


def read_processor_seconds(marks: list[str]) -> float:
    """Processor seconds of servers with one of the marks on their command line, and of their children."""
    parents: set[int] = set()
    stats: dict[int, list[str]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stats[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
                if any(mark in (folder / "cmdline").read_text() for mark in marks):
                    parents.add(int(folder.name))
            except OSError:
                continue
    ticks = sum(
        int(fields[11]) + int(fields[12]) + (int(fields[13]) + int(fields[14]) if pid in parents else 0)
        for pid, fields in stats.items()
        if pid in parents or int(fields[1]) in parents
    )
    return ticks / os.sysconf("SC_CLK_TCK")


class Run:
    """The steps on one database."""

    def __init__(self, app: Application, http: TestClient, dataset: Path, passages: int, marks: list[str]) -> None:
        self.app, self.http, self.marks = app, http, marks
        rows = common.passages(dataset, passages * COLLECTIONS)
        self.passages = {f"c{at}": rows[at::COLLECTIONS] for at in range(COLLECTIONS)}
        self.questions = common.questions(dataset, JUDGED_QUESTIONS)
        self.queries: dict[str, list[str]] = {}
        self.said: dict[str, str] = {}
        self.answers: dict[str, Any] = {}
        self.events: list[str] = []
        self.cost: dict[str, float] = {}

    def step(self, name: str, do: Callable[[], object]) -> None:
        """Take it, and keep what it says or what refused it."""
        begun = time.perf_counter()
        try:
            self.said[name] = f"{do()}"
        except Exception as error:  # noqa: BLE001 - whatever it is, that step does not run there
            self.said[name] = f"REFUSED {str(error).splitlines()[0][:300]}"
        print(f"  {name}: {self.said[name]} ({time.perf_counter() - begun:.1f} s)", flush=True)

    def run(self) -> None:
        """Every step."""
        self.step("ingest", self.ingest)
        self.step("queries", lambda: self.ask("first"))
        self.step("verdicts, waited for", self.judge)
        self.step("queries after them", lambda: self.ask("learned"))
        self.step("verdicts, swept", self.sweep)
        self.step("a verdict revoked", self.revoke)
        self.step("a judge revoked", self.revoke_judge)
        self.step("keys evolve", lambda: self.send("POST", "/collections/c0/evolve"))
        self.step("queries after that", lambda: self.ask("revoked"))
        self.step("verify", self.verify)
        self.step("facts", self.facts)
        self.step("session", self.session)
        self.step("cost", self.measure)
        self.step("by id", lambda: self.send("GET", f"/queries/{self.queries['first'][0]}")["collection"])
        self.step("maintenance", lambda: self.app.maintenance.indexes.run() is not None)
        self.step("retention", lambda: self.app.maintenance.retention.run() is not None)
        self.step("statistics", lambda: self.app.maintenance.statistics.run(lambda: False))
        self.step("passage removed", self.remove_passage)
        self.step("replay", self.replay)
        self.step("collection deleted", self.delete)

    def send(self, method: str, path: str, **body: Any) -> Any:
        """A request that has to be answered."""
        headers = {"idempotency-key": str(uuid4())}
        response = self.http.request(method, path, json=body or None, headers=headers)
        if response.status_code >= 300:
            raise RuntimeError(f"{response.status_code} {response.text[:280]}")
        return response.json() if response.content else None

    def ingest(self) -> str:
        counts = []
        for name, rows in self.passages.items():
            reception = self.app.corpus.ingest.receive(self.app.auth.access.prepare_opening(name))
            reception.add(list(enumerate(rows, start=1)), [])
            job = reception.finish()
            self.app.jobs.runner.run_ready()
            done = self.app.jobs.jobs.job(self.app.auth.access.scope(name), job)
            counts.append(f"{done.status} {done.created} {done.error or ''}".strip())
        return "; ".join(counts)

    def ask(self, name: str) -> str:
        found, self.queries[name] = [], []
        for collection in self.passages:
            for question in self.questions:
                answer = self.send("POST", "/query", collection=collection, query=question)
                self.queries[name].append(answer["query_id"])
                found.append([(one["passage_id"], round(one["score"], 5)) for one in answer["passages"]])
        self.answers[name] = found
        return f"{len(found)} answered, {sum(map(len, found))} passages"

    def judge(self) -> str:
        changes = 0
        for at in range(JUDGED_QUESTIONS):
            query = self.queries["first"][at]
            read = self.send("GET", f"/queries/{query}?collection=c0")
            sentence = next(s["sentence_id"] for one in read["passages"] for s in one["sentences"])
            body = {"collection": "c0", "query_id": query, "supporting": [sentence], "wait": True}
            told = self.send("POST", "/feedback", judge="ana" if at % 2 else "bob", **body)
            changes += len(told["changes"])
            self.events.append(told["feedback_id"])
        return f"{JUDGED_QUESTIONS} applied, {changes} changes"

    def sweep(self) -> str:
        for collection, at in (("c1", JUDGED_QUESTIONS), ("c2", 2 * JUDGED_QUESTIONS)):
            read = self.send("GET", f"/queries/{self.queries['first'][at]}?collection={collection}")
            sentence = next(s["sentence_id"] for one in read["passages"] for s in one["sentences"])
            body = {"collection": collection, "query_id": read["query_id"], "supporting": [sentence]}
            self.send("POST", "/feedback", **body)
        return f"{self.app.learning.learner.apply_overdue(0.0, 100)} applied"

    def revoke(self) -> str:
        told = self.send("DELETE", f"/feedback/{self.events[0]}?collection=c0")
        return str(told["status"])

    def revoke_judge(self) -> str:
        job = self.send("POST", "/feedback/revoke", collection="c0", judge="bob")["job_id"]
        self.app.jobs.runner.run_ready()
        return str(self.send("GET", f"/jobs/{job}?collection=c0")["status"])

    def verify(self) -> str:
        return "; ".join(
            f"{one.collection} {'clean' if one.clean else 'NOT CLEAN'}"
            for one in self.app.revocation.verification.verify_all(3)
        )

    def facts(self) -> str:
        fact = {"subject": "Marie Curie", "predicate": "place of birth"}
        self.send("PUT", "/predicates", collection="c0", predicate="place of birth", functional=True)
        warsaw, _ = (
            self.send("POST", "/facts", collection="c0", source=source, facts=[fact | {"object": place}])
            for source, place in (("a", "Warsaw"), ("b", "Paris"))
        )
        confirmed = [{"action": "confirm", "fact_id": warsaw["facts"][0]["fact_id"]}]
        self.send("POST", "/facts/revise", collection="c0", judge="ana", revisions=confirmed)
        text: str = self.send("POST", "/facts/search", collection="c0", query="Where was Marie Curie born?")["text"]
        return text.partition("\n")[0]

    def session(self) -> str:
        body = {"planner": "pool", "wait": True, "stop": {"threshold": 1}}
        told = self.send("POST", "/sessions", collection="c0", question=self.questions[0], **body)
        return f"{told['status']} {told['stop_reason']}"

    def measure(self) -> str:
        took = []
        for _ in range(1):  # connections and prepared statements
            self.ask("warm")
        before = read_processor_seconds(self.marks)
        for collection in self.passages:
            for question in self.questions:
                begun = time.perf_counter()
                self.send("POST", "/query", collection=collection, query=question)
                took.append(1000 * (time.perf_counter() - begun))
        self.cost = {
            "Postgres ms": 1000 * (read_processor_seconds(self.marks) - before) / len(took),
            "p50 ms": statistics.median(took),
            "p95 ms": statistics.quantiles(took, n=20)[-1],
        }
        return str({name: round(value, 1) for name, value in self.cost.items()})

    def remove_passage(self) -> str:
        self.send("DELETE", f"/passages/{self.passages['c1'][0]['id']}?collection=c1")
        return "removed"

    def replay(self) -> str:
        body = {"until": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
        told = self.send("POST", "/collections/c0/replay", **body)
        self.app.jobs.runner.run_ready()
        job = self.send("GET", f"/jobs/{told['job_id']}")
        return f"{job['status']} {job['error'] or ''}"

    def delete(self) -> str:
        self.send("DELETE", "/collections/c2")
        self.app.maintenance.removal.run(lambda: False)
        with self.app.database.read() as reader:
            left = reader.scalar("SELECT count(*) FROM passage")
        return f"{left} passages left of others"


@contextmanager
def application(
    addresses: Servers, settings: Settings, models: dict[str, Any]
) -> Iterator[tuple[Application, TestClient]]:
    """An application with these models and a client of it."""
    with closing(Application(settings, addresses, consumer="benchmark")) as app, tenancy.allow_all_tenants():
        for name, model in models.items():
            setattr(app.models, name, model)
        app.startup.warm_up()
        with TestClient(create_app(app), raise_server_exceptions=False) as http:
            yield app, http


def describe_placement(url: str) -> str:
    """On which nodes the collections' rows are."""
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            """
            SELECT c.name, s.nodeport, (SELECT count(*) FROM passage p WHERE p.collection_id = c.id) AS passages
            FROM collection c JOIN citus_shards s
              ON s.shardid = get_shard_id_for_distribution_column('passage', c.id)
            """.replace("(SELECT count(*) FROM passage p WHERE p.collection_id = c.id) AS passages", "s.shard_size")
        ).fetchall()
    return json.dumps(sorted(map(list, rows)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("programs", type=Path)
    parser.add_argument("--passages", type=int, default=100, help="of each of three collections")
    arguments = parser.parse_args()
    runs = []
    with tempfile.TemporaryDirectory(prefix="engram-citus-run-") as folder:
        settings = Settings(_env_file=None, data_dir=Path(folder), log_level="ERROR", allowed_hosts="testserver")
        with servers(settings) as plain, open_distributed(str(arguments.programs)) as coordinator:
            migrate(plain.database_url)
            kinds = {
                "plain": (plain, ["pginstall18/bin/postgres -D\0" + folder, f"{folder}/postgres/cluster"]),
                "citus": (Servers(coordinator, plain.redis_url), ["engram-citus-"]),
            }
            first = Application(settings, plain)
            # What a text's vector is does not depend on the database; the second run need not compute it again.
            remembering = encoder.MemoisingEncoder(first.models.embedder, Path(folder) / "vectors.sqlite")
            models = {"embedder": remembering, "language": first.models.language}
            for name, (addresses, marks) in kinds.items():
                print(name, flush=True)
                with application(addresses, settings, models) as (app, http):
                    run = Run(app, http, arguments.dataset, arguments.passages, marks)
                    run.run()
                    runs.append(run)
            print("placed:", describe_placement(coordinator))
    one, other = runs
    for name in one.answers:
        same = sum(a == b for a, b in zip(one.answers[name], other.answers.get(name, []), strict=False))
        print(f"answers {name}: {same} of {len(one.answers[name])} the same, ids and scores")


if __name__ == "__main__":
    main()
