"""Races through running processes: revocation against learning, and a restore against a service that is in use.

An API and two workers run all the while; each fault is a function that makes one repetition.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from uuid import uuid4

import httpx

from tests.faults.installation import Installation, RestorePlace, Tally, contents, different, passages
from tests.support import state
from tests.support.constants import FEEDBACK_BATCH
from tests.support.processes import PATIENCE_SECONDS, Process, eventually
from tests.support.threads import ThreadPoolExecutor

CLIENTS = 4
VERDICTS = 10
"""Verdicts of each client."""
REPEATED = 0.2
REVOKED = 0.3
JUDGES = ("careful", "careless", "new")
PASSAGES = 12
QUESTION = "Which spacecraft was the first to cross the asteroid belt?"
RESTORE_SECONDS = 2.0


@dataclass
class Races:
    """A service in use on a database of its own.

    Attributes:
        base: where the database is made.
        stack: ends the processes.
    """

    base: Installation
    draw: random.Random
    stack: ExitStack
    workers: list[Process] = field(default_factory=list)

    @cached_property
    def site(self) -> Installation:
        """The installation that the processes serve."""
        return self.base.open_neighbour(self.stack)

    @cached_property
    def client(self) -> httpx.Client:
        """A client of the API, once everything works."""
        self._stand_up_workers()
        api = self.stack.enter_context(self.site.start("serve"))
        url = api.ready().url
        for worker in self.workers:
            worker.ready()
        return self.stack.enter_context(httpx.Client(base_url=url, timeout=PATIENCE_SECONDS, trust_env=False))

    def _stand_up_workers(self) -> None:
        while len(self.workers) < 2:
            self.workers.append(self.stack.enter_context(self.site.start("worker", **{FEEDBACK_BATCH: "4"})))

    def _collection(self) -> str:
        name = f"raced-{uuid4().hex[:12]}"
        state.stage_passages(self.site.application, name, *passages(PASSAGES))
        self.site.application.jobs.runner.run_ready()
        self._drain(name)  # a worker may have taken the job
        return name

    def revoke(self, tally: Tally) -> None:
        """Post, repeat and revoke verdicts at the same time, while a worker is killed."""
        http, name, seed = self.client, self._collection(), self.draw.random()
        posted: list[dict[str, int]] = [{} for _ in range(CLIENTS)]
        revoked: list[list[int]] = [[] for _ in range(CLIENTS)]
        over = threading.Event()
        jobs: list[str] = []

        def judge(number: int) -> None:
            draw = random.Random(f"{seed} {number}")
            query = http.post("/query", json={"collection": name, "query": QUESTION}).json()
            sentences = state.list_sentence_ids(self.site.application, name)
            for at in range(VERDICTS):
                body = {
                    "collection": name,
                    "query_id": query["query_id"],
                    "supporting": draw.sample(sentences, 2),
                    "judge": draw.choice(JUDGES),
                    "wait": draw.random() < 0.2,
                }
                key = f"{number}-{at}"
                for _ in range(1 + (draw.random() < REPEATED)):
                    answer = http.post("/feedback", json=body, headers={"idempotency-key": key})
                    assert answer.status_code in (200, 202), answer.text
                    posted[number][key] = answer.json()["feedback_id"]
                if draw.random() < REVOKED:
                    event = draw.choice([*posted[number].values()])
                    answer = http.delete(f"/feedback/{event}", params={"collection": name})
                    assert answer.status_code == 200, answer.text
                    revoked[number].append(event)

        def revoke_judges() -> None:
            draw = random.Random(f"{seed} judges")
            while not over.wait(draw.uniform(0.0, 0.5)):
                body = {"collection": name, "judge": draw.choice(JUDGES)}
                answer = http.post("/feedback/revoke", json=body, headers={"idempotency-key": uuid4().hex})
                if answer.status_code == 202:
                    jobs.append(answer.json()["job_id"])
                assert answer.status_code in (202, 409), answer.text

        with ThreadPoolExecutor(CLIENTS + 1) as pool:
            judging = [pool.submit(judge, number) for number in range(CLIENTS)]
            revoking = pool.submit(revoke_judges)
            time.sleep(self.draw.uniform(0.0, 1.0))
            tally.count(hit="pending" in state.event_statuses(self.site.application, name).values())
            self.workers.pop(self.draw.randrange(len(self.workers))).kill()
            self._stand_up_workers()
            try:
                for client in judging:
                    client.result()
            finally:
                over.set()
            revoking.result()
        self._drain(name)
        keys = {key: event for client in posted for key, event in client.items()}
        rows = state.rows(self.site.application, name, "feedback_event")
        stored = {row["idempotency_key"]: row["id"] for row in rows}
        statuses = {row["id"]: row["status"] for row in rows}
        if stored != keys or len(rows) != len(keys):
            tally.note([f"{len(keys)} verdicts were acknowledged and {len(rows)} are stored"])
        if odd := set(statuses.values()) - {"applied", "revoked"}:
            tally.note([f"verdicts are {odd}"])
        if lost := [event for client in revoked for event in client if statuses[event] != "revoked"]:
            tally.note([f"{len(lost)} revocations were acknowledged and are lost"])
        failed = [row for row in state.rows(self.site.application, name, "job") if row["status"] != "succeeded"]
        tally.note([f"a {row['kind']} job is {row['status']}: {row['error']}" for row in failed])
        tally.note(self.site.findings(workers=True))

    def _drain(self, name: str) -> None:
        """Wait until no verdict and no job of the collection waits."""
        application = self.site.application
        eventually(lambda: "pending" not in state.event_statuses(application, name).values(), "end of verdicts")
        waiting = ("queued", "running")
        eventually(
            lambda: not any(row["status"] in waiting for row in state.rows(application, name, "job")), "end of jobs"
        )

    def restore(self, tally: Tally) -> None:
        """Restore into the database of a service that takes verdicts: it refuses, and nothing changes."""
        http, name, source = self.client, self._collection(), self._backup
        query = http.post("/query", json={"collection": name, "query": QUESTION}).json()
        sentence = state.list_sentence_ids(self.site.application, name)[0]
        over, acknowledged = threading.Event(), list[int]()

        def judge() -> None:
            while not over.is_set():
                body = {"collection": name, "query_id": query["query_id"], "supporting": [sentence]}
                answer = http.post("/feedback", json=body, headers={"idempotency-key": uuid4().hex})
                assert answer.status_code == 202, answer.text
                acknowledged.append(answer.json()["feedback_id"])

        with ThreadPoolExecutor(1) as pool:
            judging = pool.submit(judge)
            time.sleep(self.draw.uniform(0.0, 0.5))
            code, output = self.site.run("restore", str(source), "--replace")
            tally.count(hit=not judging.done())
            over.set()
            judging.result()
        if code != 1 or "others are connected" not in output:
            tally.note([f"the restore ended with {code}: {output}"])
        self._drain(name)
        stored = sorted(state.event_statuses(self.site.application, name))
        if stored != sorted(acknowledged):
            tally.note([f"{len(acknowledged)} verdicts were acknowledged and {len(stored)} are stored"])
        tally.note(self.site.findings(workers=True))

    @cached_property
    def _backup(self) -> Path:
        folder = self.base.folder / "raced"
        assert self.site.run("backup", str(folder))[0] == 0
        return folder

    def start(self, tally: Tally) -> None:
        """Start an API while a restore is under way: one of the two waits or gives way, and nothing is mixed."""
        place = self._place
        before, after = place.turn()
        wait = self.draw.uniform(-RESTORE_SECONDS, RESTORE_SECONDS)
        place.site.application.database.close()
        with ExitStack() as stack:
            starts: list[Callable[[], Process]] = [
                lambda: stack.enter_context(place.site.start("serve")),
                lambda: stack.enter_context(place.site.start("restore", str(after.folder), "--replace")),
            ]
            order = starts if wait > 0 else starts[::-1]
            first = order[0]()
            time.sleep(abs(wait))
            second = order[1]()
            api, restoring = (first, second) if wait > 0 else (second, first)
            tally.count(hit=restoring.running and api.running)
            code = restoring.wait_for_end()
            expected = before if code else after
            if (held := contents(place.site.application.addresses.database_url)) != expected.contents:
                tally.note([f"restored with {code}, different in {different(held, expected.contents)}"])
            if code and "others are connected" not in restoring.output:
                tally.note([f"the restore ended with {code}: {restoring.output}"])
            body = {"collection": expected.collection, "query": QUESTION}
            answer = httpx.post(f"{api.ready().url}/query", json=body, timeout=PATIENCE_SECONDS, trust_env=False)
            if answer.status_code != 200 or not answer.json()["passages"]:
                tally.note([f"the API answers {answer.status_code} after a restore that ended with {code}"])
            api.terminate()
            api.wait_for_end()
        tally.note(place.site.findings())
        place.site.application.database.close()
        code, output = place.site.run("restore", str(after.folder), "--replace", "--no-verify")
        if code:
            tally.note([f"the restore after it ended with {code}: {output}"])

    @cached_property
    def _place(self) -> RestorePlace:
        return RestorePlace.create(self.base, self.stack, "started", PASSAGES)


FAULTS: Mapping[str, Callable[[Races, Tally], None]] = {
    "revocation racing with learning, a worker killed": Races.revoke,
    "restore into a running service": Races.restore,
    "API started during a restore": Races.start,
}
"""Name of each fault -> its repetition."""
