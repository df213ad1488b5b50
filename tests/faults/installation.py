"""An Engram of its own for faults: the application in this process, Engram's commands in processes of their own."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from sqlalchemy.engine import make_url

from engram.composition.container import Application, Servers
from engram.wings.local import sample
from engram.wings.published.parts import published_of
from engram.wings.upkeep.parts import upkeep_of
from tests.support import state, undo
from tests.support.databases import application_on, new_database
from tests.support.orphans import orphans
from tests.support.processes import Process

VERDICTS = 24
VOLATILE = ("audit_log", "alembic_version")
"""Tables that a command writes on its own account, or that say nothing of content."""


TOLERANCE = 1e-4


@dataclass(slots=True)
class Tally:
    """Counts of one fault.

    Attributes:
        runs: repetitions, some of which only measure how long the work takes.
        times: how often the fault came.
        hits: how often it hit work that was under way.
        findings: differences from what should be, one line each.
    """

    fault: str
    runs: int = 0
    times: int = 0
    hits: int = 0
    findings: list[str] = field(default_factory=list)

    def count(self, *, hit: bool) -> None:
        """Count the fault once more."""
        self.times += 1
        self.hits += hit

    def note(self, findings: list[str]) -> None:
        """Add the findings of the present repetition."""
        self.findings += [f"run {self.runs}: {line}" for line in findings]


@dataclass(frozen=True, slots=True)
class Installation:
    """The application in this process, and the environment that leads commands to the same servers."""

    application: Application
    env: Mapping[str, str]
    folder: Path

    def start(self, command: str, *arguments: str, **settings: str) -> Process:
        """Start a command in a process of its own; use it as a context manager."""
        return Process(command, self.folder, {**self.env, **settings}, arguments=arguments)

    def run(self, command: str, *arguments: str, **settings: str) -> tuple[int, str]:
        """Run a command to its end: the exit code and what it printed."""
        with self.start(command, *arguments, **settings) as process:
            return process.wait_for_end(), process.output

    @contextmanager
    def create_neighbour(self) -> Iterator["Installation"]:
        """An empty database on the same server."""
        application = self.application
        with new_database(application.addresses.database_url) as url:
            servers = Servers(url, application.addresses.redis_url)
            with application_on(servers, application.settings, application) as services:
                yield Installation(services, {**self.env, "DATABASE_URL": url}, self.folder)

    def open_neighbour(self, stack: ExitStack) -> "Installation":
        """Migrate an empty database on the same server; ``stack`` drops it."""
        neighbour = stack.enter_context(self.create_neighbour())
        assert neighbour.run("migrate")[0] == 0
        return neighbour

    def fill(self, name: str, count: int, seed: int) -> str:
        """Make a collection of the sample's first passages, and have verdicts teach all that they can."""
        state.stage_passages(self.application, name, *passages(count))
        self.application.jobs.runner.run_ready()
        events = undo.stream(self.application, name, VERDICTS, seed=seed)
        undo.apply(self.application, name, events, batch=6)
        published_of(self.application).evolve.evolve(self.application.auth.access.scope(name))
        return name

    def findings(self, *, workers: bool = False) -> list[str]:
        """Differences that ``engram verify`` and ``engram doctor`` report, and rows that belong to nothing.

        Args:
            workers: a worker runs, so that the doctor must not miss one.
        """
        application = self.application
        lines = [
            f"verify: {report.collection}"
            for report in application.revocation.verification.verify_all(1)
            if not report.clean
        ]
        lines += [
            f"doctor: {result.thing}: {result.found}"
            for result in upkeep_of(application).doctor.examine()
            if result.verdict == "wrong" and (workers or result.thing != "workers")
        ]
        for name in sorted(state.names(application)):
            lines += [f"{name}: {rows} {what}" for what, rows in orphans(application, name).items()]
            counts, true_counts = state.counts(application, name), state.true_counts(application, name)
            if counts != true_counts:
                lines.append(f"{name}: {counts} are counted and {true_counts} are there")
        return lines


def passages(count: int) -> list[dict[str, Any]]:
    """The first passages of the sample corpus."""
    rows = [json.loads(line) for line in sample.corpus().splitlines() if line.strip()]
    return [{"id": row["_id"], "title": row["title"], "text": row["text"]} for row in rows[:count]]


def contents(url: str) -> dict[str, tuple[int, str]]:
    """Rows and checksum of each table of a database, but for ``VOLATILE``."""
    with psycopg.connect(url.replace("+psycopg", "", 1)) as connection:
        tables = connection.execute(
            """
            SELECT relname::text FROM pg_class
            WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace
            """
        ).fetchall()
        found = {}
        for (table,) in tables:
            if table not in VOLATILE:
                (row,) = connection.execute(
                    f"""
                    SELECT count(*), coalesce(md5(string_agg(t::text, '|' ORDER BY t::text)), '') FROM "{table}" t
                    """
                ).fetchall()
                found[table] = row
    return found


def alike(one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]]) -> bool:
    """Compare rows, their numbers to within ``TOLERANCE``.

    What else is in an encoder's batch moves the last bits of a vector, and all that is computed from it.
    """
    numbers = [_numbers(rows) for rows in (one, other)]
    return numbers[0].keys() == numbers[1].keys() and all(
        np.allclose(number, numbers[1][row], rtol=0.0, atol=TOLERANCE) for row, number in numbers[0].items()
    )


def _numbers(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[float]]:
    """Each row without its fractions and vectors -> these, row after row."""
    found: dict[str, list[float]] = {}
    for row in sorted(rows, key=repr):
        exact, inexact = dict[str, Any](), list[float]()
        for column, value in row.items():
            if isinstance(value, str) and value.startswith("["):
                inexact += json.loads(value)
            elif isinstance(value, float):
                inexact.append(value)
            elif isinstance(value, list) and value and all(isinstance(one, float) for one in value):
                inexact += value
            else:
                exact[column] = value
        found.setdefault(json.dumps(exact, sort_keys=True), []).extend(inexact)
    return found


def different(one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    """Names under which two mappings differ."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))


@dataclass(frozen=True, slots=True)
class SavedDatabase:
    """A backup, what the database held, and its only collection."""

    folder: Path
    contents: Mapping[str, tuple[int, str]]
    collection: str


@dataclass(slots=True)
class RestorePlace:
    """A database that is restored into, and two backups that take turns."""

    site: Installation
    saved: Sequence[SavedDatabase]
    turns: int = 1

    @classmethod
    def create(cls, base: Installation, stack: ExitStack, name: str, count: int) -> "RestorePlace":
        """Make the database with ``count`` passages, and then with half of them; it holds the second."""
        site = base.open_neighbour(stack)
        saved: list[SavedDatabase] = []
        for number, passage_count in enumerate((count, count // 2)):
            if saved:
                site.application.corpus.ingest.delete_collection(
                    site.application.auth.access.scope(saved[0].collection)
                )
            site.fill(f"{name}-{number}", passage_count, seed=number)
            folder = base.folder / f"{name}-{number}"
            assert site.run("backup", str(folder))[0] == 0
            saved.append(
                SavedDatabase(folder, contents(site.application.addresses.database_url), f"{name}-{number}")
            )
        site.application.database.close()
        return cls(site, saved)

    def turn(self) -> tuple[SavedDatabase, SavedDatabase]:
        """Return what the database holds, and what it is to hold after this turn."""
        self.turns += 1
        return self.saved[(self.turns + 1) % 2], self.saved[self.turns % 2]

    def contents(self) -> Mapping[str, tuple[int, str]]:
        """Return rows and checksums."""
        return contents(self.site.application.addresses.database_url)

    def sessions(self) -> int:
        """Count the connections to it."""
        address = make_url(self.site.application.addresses.database_url)
        plain = address.set(drivername="postgresql", database="postgres").render_as_string(hide_password=False)
        with psycopg.connect(plain) as connection:
            (row,) = connection.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s", [address.database]
            ).fetchall()
        return int(row[0])
