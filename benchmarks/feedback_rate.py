"""How many verdicts are accepted, and how many memories moved, per second?

    python benchmarks/feedback_rate.py DATASET_DIR [--passages N] [--questions N] [--posts N] [--threads N ...]

The first passages of DATASET_DIR (a BEIR folder) fill a collection that is removed again, its questions become
episodes, and each post supports the sentences of one of them. For each number of threads, in the same run:

- accept: `VerdictService.accept` without waiting, one durable commit a post; floor: commits of one small row.
- apply: `VerdictLearner.apply` in batches of the worker's size; a memory update is one judged (sentence, channel)
  state with its audit row. Floor: rows/s of an ordered UPDATE of as many vectors in batches, and nothing else.
  HOT: the share of updates of `sentence_memory` that no index heard of.

Then the same in processor time, which depends little on who else uses the machine: of this process and of Postgres,
by one thread, for all posts. The second floor writes an audit row with each update, in a table like `memory_audit`,
since a change that nobody can trace back is not the service's. Tables are analysed before, as workers see to.

DATABASE_URL and REDIS_URL, or the embedded servers of ENGRAM_DATA_DIR, are used; no worker may run beside.
"""

import argparse
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg import register_vector

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.runtime import worker
from engram.services.verdict.verdict import NamedSentence, Verdict
from query_cost import Backends

UPDATES_PER_BATCH = 500


class Scratch:
    """A table of vectors beside the schema, for the floors."""

    def __init__(self, url: str, dimension: int, rows: int) -> None:
        self._url = url.replace("+psycopg", "")
        self._name = f"benchmark_{uuid.uuid4().hex}"
        self._local = threading.local()
        self._connections: list[psycopg.Connection[Any]] = []
        self._batches = 0
        self.rows = rows
        connection = self.connection()
        connection.execute(
            f"CREATE TABLE {self._name} (id bigint PRIMARY KEY, vector vector({dimension}) NOT NULL) "
            "WITH (fillfactor = 70)"
        )
        connection.execute(f"ALTER TABLE {self._name} ALTER vector SET STORAGE PLAIN")
        connection.execute(f"CREATE TABLE {self._name}_log (id bigserial PRIMARY KEY, note text)")
        connection.execute(f"CREATE TABLE {self._name}_audit (LIKE memory_audit INCLUDING ALL)")
        self._vectors = np.random.default_rng(0).standard_normal((rows, dimension)).astype(np.float32)
        connection.execute(
            f"INSERT INTO {self._name} SELECT * FROM unnest(%b::bigint[], %b::vector[])",
            (list(range(rows)), [Vector(vector) for vector in self._vectors]),
        )

    def connection(self) -> "psycopg.Connection[Any]":
        """This thread's own."""
        if not hasattr(self._local, "connection"):
            self._local.connection = psycopg.connect(self._url, autocommit=True)
            register_vector(self._local.connection)
            self._connections.append(self._local.connection)
        found: psycopg.Connection[Any] = self._local.connection
        return found

    def commit(self, _: object) -> None:
        """One row, one commit."""
        self.connection().execute(f"INSERT INTO {self._name}_log (note) VALUES ('verdict')")

    def update(self, ids: Sequence[int]) -> None:
        """One ordered UPDATE of these vectors."""
        self.connection().execute(
            f"UPDATE {self._name} t SET vector = new.vector "
            "FROM unnest(%b::bigint[], %b::vector[]) AS new(id, vector) WHERE t.id = new.id",
            (list(ids), [Vector(self._vectors[-at]) for at in ids]),
        )

    def write_audit_rows(self, ids: Sequence[int]) -> None:
        """The same and an audit row for each, in one transaction."""
        self._batches += 1
        numbers = [0.5] * len(ids)
        with self.connection().transaction():
            self.update(ids)
            self.connection().execute(
                f"INSERT INTO {self._name}_audit (collection_id, event_id, sentence_id, channel, target, "
                "observation_noise, gain, residual, perplexity_before, perplexity_after, process_noise) "
                "SELECT 1, %b, row.id, 'task', 1, row.noise, row.gain, row.residual, row.before, row.after, "
                "row.process "
                "FROM unnest(%b::bigint[], %b::float8[], %b::float8[], %b::float8[], %b::float8[], %b::float8[], "
                "%b::float8[]) AS row(id, noise, gain, residual, before, after, process)",
                (self._batches, list(ids), *[numbers] * 6),
            )

    def choose_batches(self, count: int) -> list[list[int]]:
        """Ids of so many rows in batches, each in order."""
        numbers = common.chunks([at % self.rows for at in range(count)], UPDATES_PER_BATCH)
        return [sorted(set(batch)) for batch in numbers]

    def drop(self) -> None:
        """Remove the tables."""
        self.connection().execute(f"DROP TABLE {self._name}, {self._name}_log, {self._name}_audit")
        for connection in self._connections:
            connection.close()


def seconds(threads: int, work: Callable[[Any], object], items: Sequence[Any]) -> float:
    """How long ``threads`` take to do the work on all items."""
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda _: time.sleep(0.01), range(threads)))  # the threads exist before the clock starts
        began = time.perf_counter()
        list(pool.map(tenancy.carry(work), items))
        return time.perf_counter() - began


def updates(connection: "psycopg.Connection[Any]") -> NDArray[np.float64]:
    """Updates of memories so far, and those that were HOT, (2,), as the server's statistics have them."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    time.sleep(11)  # within which backends that have nothing to do tell what they did
    row = connection.execute(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'sentence_memory'"
    ).fetchone()
    return np.array(row, dtype=np.float64)


def episodes(app: Application, collection: str, questions: Sequence[str]) -> list[tuple[uuid.UUID, list[int]]]:
    """Query ids with the sentences that were selected for them."""
    answers = [common.ask(app, collection, text) for text in questions]
    return [
        (answer.query_id, [sentence.sentence_id for passage in answer.passages for sentence in passage.sentences])
        for answer in answers
    ]


def verdicts(
    app: Application, collection: str, answers: list[tuple[uuid.UUID, list[int]]], posts: int
) -> list[Verdict]:
    """So many, each of which supports the first two sentences of an answer."""
    return [
        Verdict(
            query_id=query_id,
            scope=app.auth.access.scope(collection),
            supporting=[NamedSentence(sentence) for sentence in sentences[:2]],
        )
        for query_id, sentences in (answers[number % len(answers)] for number in range(posts))
    ]


def count_changes(app: Application, collection: str, events: Sequence[int]) -> int:
    """Count the states that applied verdicts moved."""
    scope = app.auth.access.scope(collection)
    return sum(len(app.learning.verdicts.read(scope, event).changes or []) for event in events)


def measure(
    app: Application,
    collection: str,
    answers: list[tuple[uuid.UUID, list[int]]],
    posts: int,
    threads: int,
    scratch: Scratch,
) -> list[object]:
    """One row of the table."""
    events: list[int] = []

    def accept(verdict: Verdict) -> None:
        events.append(app.learning.verdicts.accept(verdict, str(uuid.uuid4())).event.id)

    commits = posts / seconds(threads, scratch.commit, range(posts))
    accepted = posts / seconds(threads, accept, verdicts(app, collection, answers, posts))
    batches = common.chunks(sorted(events), worker.BATCH_SIZE)
    collection_id = app.auth.access.scope(collection).collection.id
    moved = updates(scratch.connection())
    applied = seconds(threads, lambda batch: app.learning.learner.apply(collection_id, batch), batches)
    moved = updates(scratch.connection()) - moved
    changed = count_changes(app, collection, events)
    plain = changed / seconds(threads, scratch.update, scratch.choose_batches(changed))
    rate = changed / applied
    hot = moved[1] / max(moved[0], 1.0)
    return [threads, accepted, accepted / commits, posts / applied, rate, rate / plain, hot]


def costs(
    app: Application,
    collection: str,
    answers: list[tuple[uuid.UUID, list[int]]],
    posts: int,
    scratch: Scratch,
    rounds: int,
) -> list[list[object]]:
    """Rows of the second table: way, updates, milliseconds of process and Postgres, of both, over each floor."""
    backends, collection_id = Backends(app), app.auth.access.scope(collection).collection.id
    app.maintenance.statistics.run(lambda: False)
    spent: dict[str, list[NDArray[np.float64]]] = {"verdicts": [], "plain": [], "audited": []}
    updates: list[int] = []
    for _ in range(rounds):
        events = [
            app.learning.verdicts.accept(verdict, str(uuid.uuid4())).event.id
            for verdict in verdicts(app, collection, answers, posts)
        ]
        applying = common.chunks(events, worker.BATCH_SIZE)
        spent["verdicts"].append(
            processors(backends, lambda batch: app.learning.learner.apply(collection_id, batch), applying)
        )
        changed = count_changes(app, collection, events)
        updates.append(changed)
        ids = scratch.choose_batches(changed)
        spent["plain"].append(processors(backends, scratch.update, ids))
        spent["audited"].append(processors(backends, scratch.write_audit_rows, ids))
    medians = {name: np.median(np.array(rows), axis=0) for name, rows in spent.items()}
    plain, audited = medians["plain"].sum(), medians["audited"].sum()
    return [
        [name, int(np.median(updates)), *cost, cost.sum(), plain / cost.sum(), audited / cost.sum()]
        for name, cost in medians.items()
    ]


def processors(backends: Backends, work: Callable[[Any], object], items: Sequence[Any]) -> NDArray[np.float64]:
    """Milliseconds of this process and of Postgres for the work on all items, (2,)."""
    before = np.array([time.process_time() * 1000, backends.milliseconds()])
    for item in items:
        work(item)
    spent: NDArray[np.float64] = np.array([time.process_time() * 1000, backends.milliseconds()]) - before
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description="Verdicts accepted and memories moved per second.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, default=500)
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--posts", type=int, default=1000)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=3, help="Of the costs; their median is printed.")
    arguments = parser.parse_args()

    with common.application() as (app, addresses), common.scratch_collection(app) as collection:
        common.fill(app, collection, common.passages(arguments.dataset, arguments.passages))
        asked = episodes(app, collection, common.questions(arguments.dataset, arguments.questions))
        scratch = Scratch(addresses.database_url, app.models.embedder.dimension, rows=10_000)
        try:
            rows = [measure(app, collection, asked, arguments.posts, n, scratch) for n in arguments.threads]
            spent = costs(app, collection, asked, arguments.posts, scratch, arguments.rounds)
        finally:
            scratch.drop()
        header = "threads, posts/s, over commits/s, events applied/s, memory updates/s, over plain UPDATE, HOT"
        common.table(header, rows)
        print()
        header = "processor time of, updates, process ms, Postgres ms, both ms, plain over it, audited over it"
        common.table(header, spent)


if __name__ == "__main__":
    main()
