"""How long does deleting a large collection hold what, and what do queries of others wait for it?

    python benchmarks/deletion.py DATASET_DIR --passages 100000 [--at-once]

DATASET_DIR is a BEIR folder; 300 of its passages are ingested into a collection whose questions are asked all the
while, beside one of so many passages, with four sentences, five names a sentence and 40 terms a passage, which the
server makes itself (``tests/support/large.py``). That one is deleted as ``DELETE /collections/{name}`` does, or
with ``--at-once`` by one transaction. Said are the longest transaction, which is how long a lock on rows is held,
and how long queries took before and meanwhile. Give it a new ENGRAM_DATA_DIR each time.
"""

import argparse
import statistics
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import psycopg

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.services.corpus.collection_removal import RemovalService
from engram.services.question.query import Query
from engram.storage.corpus import collection_deletion
from engram.storage.database import Writer
from tests.support import large

SMALL_COLLECTION = 300


def ask(app: Application, name: str, questions: list[str], until: threading.Event, took: list[float]) -> None:
    """Ask one question after the other."""
    scope = app.auth.access.scope(name)
    while not until.is_set():
        for question in questions:
            if until.is_set():
                return
            begun = time.perf_counter()
            app.answers.question.serve(Query(text=question, scope=scope))
            took.append(time.perf_counter() - begun)


def format_percentiles(took: list[float]) -> str:
    """Percentiles in ms."""
    cuts = statistics.quantiles(took, n=20)
    middle, high, most = 1000 * cuts[9], 1000 * cuts[18], 1000 * max(took)
    return f"{len(took)} queries, p50 {middle:.0f} ms, p95 {high:.0f} ms, max {most:.0f} ms"


@contextmanager
def record_transactions(app: Application, longest: list[float]) -> Iterator[None]:
    """Note how long each transaction that writes takes."""
    write = app.database.write

    @contextmanager
    def write_timed() -> Iterator[Writer]:
        begun = time.perf_counter()
        with write() as writer:
            yield writer
        longest.append(time.perf_counter() - begun)

    app.database.write = write_timed  # type: ignore[method-assign]
    try:
        yield
    finally:
        app.database.write = write  # type: ignore[method-assign]


def delete_in_one_transaction(app: Application, collection_id: int) -> None:
    """All of it in one transaction."""
    with app.database.write() as writer:
        writer.execute("SET LOCAL statement_timeout = 0")
        assert collection_deletion.begin(writer, collection_id)
        collection_deletion.end(writer, collection_id)


def main() -> None:
    parser = argparse.ArgumentParser(description="Delete a large collection while others ask.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--at-once", action="store_true")
    arguments = parser.parse_args()
    asked = common.questions(arguments.dataset)[:50]
    with common.application() as (app, servers):
        begun = time.perf_counter()
        with psycopg.connect(servers.database_url.replace("+psycopg", "")) as connection:
            large.fill(connection, dimension=app.models.embedder.dimension, passages=arguments.passages)
        print(f"{arguments.passages} passages made in {time.perf_counter() - begun:.0f} s", flush=True)
        common.stage(app, "small", common.passages(arguments.dataset, SMALL_COLLECTION))
        app.jobs.runner.run_ready()
        target = app.auth.access.scope("large").collection
        quiet, meanwhile, transactions = list[float](), list[float](), list[float]()
        for took, work in ((quiet, partial(time.sleep, 20)), (meanwhile, None)):
            over = threading.Event()
            asking = threading.Thread(target=tenancy.carry(ask), args=(app, "small", asked, over, took))
            asking.start()
            begun = time.perf_counter()
            with record_transactions(app, transactions) if work is None else nullcontext():
                if work is not None:
                    work()
                elif arguments.at_once:
                    delete_in_one_transaction(app, target.id)
                else:
                    RemovalService(app.database).remove(target)
            spent = time.perf_counter() - begun
            over.set()
            asking.join()
        print(f"before: {format_percentiles(quiet)}")
        print(f"meanwhile: {format_percentiles(meanwhile)}")
        print(f"deleted in {spent:.1f} s; the longest transaction took {max(transactions):.2f} s")
        with app.database.read() as reader:
            left = [
                table.name
                for table in collection_deletion.tables()
                if reader.scalar(
                    f'SELECT EXISTS (SELECT FROM "{table.name}" WHERE collection_id = %(id)s)', {"id": target.id}
                )
            ]
        print(f"tables with rows of it left: {left or 'none'}")


if __name__ == "__main__":
    main()
