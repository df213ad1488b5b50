"""Kills at random moments: of workers at jobs, and of commands on a whole database.

Each fault is a function that makes one repetition: it sends SIGKILL to a real process after a random part of the
time that the work takes without a fault, has the work done again, and notes every difference. The random parts
follow from the seed.
"""

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID, uuid4

from engram.wings.upkeep.services import backup_service
from engram.wings.upkeep.storage import schema_drift
from tests.faults.installation import Installation, RestorePlace, Tally, alike, contents, different
from tests.support import state, undo
from tests.support.constants import EMBEDDING_BATCH, INGEST_BATCH, LEASE_SECONDS
from tests.support.processes import eventually
from tests.support.threads import make_thread

PASSAGES = 40
QUICK = {LEASE_SECONDS: "1", INGEST_BATCH: "2", EMBEDDING_BATCH: "2"}
OPEN = ("queued", "running")
SOONER, LATER = 0.7, 1.1
KEPT_TABLES = (*state.GRAPH, *state.LEXICAL)
UNSTABLE = ("created_at", "updated_at", "text_since", "keys_version", "space")
"""Columns that say when a row was written, or how often a collection changed its encoder."""


@dataclass
class Kills:
    """Faults of one installation, which repetitions share.

    Attributes:
        second: folder of the other encoder, which the application has as its second.
        stack: closes the databases that repetitions share.
        spans: seconds within which each work is killed: at first what it takes without a fault, then less after a
            kill that came too late, and more after one that did not.
    """

    site: Installation
    second: str
    draw: random.Random
    stack: ExitStack
    spans: dict[str, float] = field(default_factory=dict)

    def rekey(self, tally: Tally) -> None:
        """Make keys of titles and back; at the end the collection is as before."""
        name = self._collection("rekeyed")
        before = self._rows(name)
        for building in ("title", "full"):
            scope = self.site.application.auth.access.scope(name)
            self._job(tally, name, self.site.application.corpus.rekey.request(scope, building))
        self._compare(tally, name, before)
        if rows := state.rows(self.site.application, name, "staged_key"):
            tally.note([f"{len(rows)} staged keys are left"])

    def reembed(self, tally: Tally) -> None:
        """Go to the other encoder, back, and give up its vectors; at the end all is as before."""
        name = self._collection("reembedded")
        before = self._rows(name)
        application = self.site.application
        for _ in range(2):
            self._job(tally, name, application.corpus.reembed.request(application.auth.access.scope(name)))
        self._job(tally, name, application.corpus.reembed.request_drop(application.auth.access.scope(name)))
        self._compare(tally, name, before)
        if rows := state.rows(application, name, "staged_embedding"):
            tally.note([f"{len(rows)} spare vectors are left"])

    def _collection(self, name: str) -> str:
        if name not in state.names(self.site.application):
            self.site.fill(name, PASSAGES, seed=5)
        return name

    def _rows(self, name: str) -> dict[str, Any]:
        """Return what passages and verdicts left, with terms in place of their ids, which sequences draw."""
        application = self.site.application
        found = state.snapshot(application, name, KEPT_TABLES, UNSTABLE) | undo.list_learned(application, name)
        terms = {row.pop("id"): row["term"] for row in found["lexical_term"]}
        for row in found["lexical_posting"]:
            row["term_id"] = terms[row["term_id"]]
        for row in found["lexical_passage"]:
            row["term_ids"] = sorted(terms[term] for term in row["term_ids"])
        return found

    def _compare(self, tally: Tally, name: str, before: Mapping[str, Any]) -> None:
        after = self._rows(name)
        tally.note([f"{name}: {table} is another" for table in before if not alike(before[table], after[table])])
        tally.note(self.site.findings())

    def _job(self, tally: Tally, name: str, job: UUID) -> None:
        """Have a worker killed at a job, and another do it."""
        kind = self._job_row(name, job)["kind"]
        settings = {**QUICK, "ENGRAM_SECONDARY_EMBEDDING_MODEL": self.second}
        if kind not in self.spans:  # what it takes undisturbed
            with self.site.start("worker", **settings):
                eventually(lambda: self._job_row(name, job)["status"] != "queued", "claim of the job")
                began = time.monotonic()
                eventually(lambda: self._job_row(name, job)["status"] not in OPEN, "end of the job")
                self.spans[kind] = time.monotonic() - began
        else:
            with self.site.start("worker", **settings) as dying:
                eventually(lambda: self._job_row(name, job)["status"] != "queued", "claim of the job")
                time.sleep(self.draw.uniform(0.0, self.spans[kind]))
                dying.kill()
            self._count(tally, kind, hit=self._job_row(name, job)["status"] in OPEN)

            def is_done() -> bool:
                self.site.application.jobs.runner.run_ready()
                return self._job_row(name, job)["status"] not in OPEN

            eventually(is_done, "end of the job")
        row = self._job_row(name, job)
        if (row["status"], row["error"], row["claimant"]) != ("succeeded", None, None):
            tally.note([f"the {kind} job is {row['status']}: {row['error']}"])

    def _job_row(self, name: str, job: UUID) -> dict[str, Any]:
        (row,) = [row for row in state.rows(self.site.application, name, "job") if row["id"] == str(job)]
        return row

    def backup(self, tally: Tally) -> None:
        """Copy a database that learns; there is no backup afterwards, or a whole one, and the next one is whole."""
        name = self._collection("saved")
        target = self.site.folder / f"backup-{uuid4().hex}"
        with self._teach_meanwhile(name) as acknowledged:
            self._kill_command(tally, "backup", str(target))
            if target.exists():
                backup_service.check(target, backup_service.read(target))
                target = target.with_name(f"{target.name}-again")
            before = set(acknowledged)
            code, output = self.site.run("backup", str(target))
        if code:
            tally.note([f"the backup after the kill ended with {code}: {output}"])
            return
        if left := list(target.parent.glob(f"{target.name}{backup_service.UNFINISHED_SUFFIX}")):
            tally.note([f"{left} is left"])
        with self.site.create_neighbour() as other:
            code, output = other.run("restore", str(target))
            if code:
                tally.note([f"the backup cannot be restored: {output}"])
                return
            restored = [row["id"] for row in state.rows(other.application, name, "feedback_event")]
            if len(restored) != len(set(restored)) or not before <= set(restored):
                tally.note([f"of {len(before)} verdicts {len(before & set(restored))} are in the backup"])
            tally.note(other.findings())
        tally.note(self.site.findings())

    @contextmanager
    def _teach_meanwhile(self, name: str) -> Iterator[list[int]]:
        """Give and apply verdicts during the block; the list has those that were acknowledged."""
        application, over, acknowledged = self.site.application, threading.Event(), list[int]()
        sentences = state.list_sentence_ids(application, name)

        def teach() -> None:
            while not over.is_set():
                query = state.add_episode(application, name, undo.QUESTIONS[0][0], sentences[:3])
                receipt = state.judge(application, name, query, sentences[:1], wait=True)
                acknowledged.append(receipt.event.id)

        teaching = make_thread(teach)
        teaching.start()
        try:
            yield acknowledged
        finally:
            over.set()
            teaching.join()

    def restore(self, tally: Tally) -> None:
        """Put a backup over other content; afterwards the database holds the one or the other, and no mixture."""
        place = self._place
        before, after = place.turn()
        self._kill_command(tally, "restore", str(after.folder), "--replace", "--no-verify", site=place.site)
        eventually(lambda: not place.sessions(), "end of the killed restore's sessions")
        if (held := place.contents()) not in (before.contents, after.contents):
            tally.note([f"neither the old nor the new content: {different(held, before.contents)}"])
        code, output = place.site.run("restore", str(after.folder), "--replace")
        if code or (held := place.contents()) != after.contents:
            tally.note([f"restored with {code}, different in {different(held, after.contents)}: {output}"])
        tally.note(place.site.findings())
        place.site.application.database.close()

    @cached_property
    def _place(self) -> RestorePlace:
        return RestorePlace.create(self.site, self.stack, "saved", PASSAGES)

    def migrate(self, tally: Tally) -> None:
        """Make the schema of an empty database; nothing of it is there after the kill, or all."""
        with self.site.create_neighbour() as other:
            self._kill_command(tally, "migrate", site=other)
            whole = contents(other.application.addresses.database_url)
            lacking = schema_drift.list_missing(other.application.database) if whole else []
            code, output = other.run("migrate")
            lacking += schema_drift.list_missing(other.application.database)
            if code or lacking:
                tally.note([f"migrated with {code}, lacks {lacking}: {output}"])
            other.fill("first", 3, seed=1)
            tally.note(other.findings())

    def _kill_command(self, tally: Tally, command: str, *arguments: str, site: Installation | None = None) -> None:
        """Kill a command at a random moment, with or without the programs that it started."""
        began = time.monotonic()
        with (site or self.site).start(command, *arguments) as dying:
            if command not in self.spans:  # what it takes undisturbed
                assert dying.wait_for_end() == 0, dying.output
                self.spans[command] = time.monotonic() - began
                return
            time.sleep(self.draw.uniform(0.0, self.spans[command]))
            self._count(tally, command, hit=dying.running)
            if dying.running:
                dying.kill(with_children=self.draw.random() < 0.5)

    def _count(self, tally: Tally, work: str, *, hit: bool) -> None:
        tally.count(hit=hit)
        self.spans[work] *= LATER if hit else SOONER


FAULTS: Mapping[str, Callable[[Kills, Tally], None]] = {
    "kill -9 during rekey": Kills.rekey,
    "kill -9 during reembed": Kills.reembed,
    "kill -9 during backup": Kills.backup,
    "kill -9 during restore": Kills.restore,
    "kill -9 during migrate": Kills.migrate,
}
"""Name of each fault -> its repetition."""
