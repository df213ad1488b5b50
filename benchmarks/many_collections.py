"""What does a query cost in one of a thousand small collections, and in a large one beside them?

    python benchmarks/many_collections.py DATASET_DIR [--collections N] [--passages N | --source NAME]
        [--large NAME ...]

The first passages of DATASET_DIR (a BEIR folder) fill a collection, or NAME is one that is there. It is asked
alone; then it is copied inside the database, rows as they are, with the vector indexes that maintenance builds, and
every question is asked of another copy, so that none finds the rows of its collection at hand. Large ones are
collections that were ingested before (`engram ingest -c NAME corpus.jsonl.gz`) or made by `scale.py`, asked without
the small ones and beside them; of several the first is asked alone as well, and else each question of another.
Recall is that of the service's dense search against an exact one, of the first ten. Costs are processor time, of
this process and of the server's backends; the times of the clock are beside them. Of one small collection and of
all, what serves all of them is measured too, and the rows that a question has Postgres read; and memory once each
was asked. The small collections are removed again.
"""

import argparse
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np

import common
from engram.composition.container import Application
from engram.wings.upkeep.parts import upkeep_of
from query_cost import Backends

TABLES = (
    "passage",
    "time_expression",
    "sentence",
    "entity",
    "entity_sentence",
    "lexical_term",
    "lexical_posting",
    "lexical_passage",
)
"""What an ingest writes, each after what it refers to."""
COLUMNS = """
    SELECT string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) FROM information_schema.columns
    WHERE table_name = %(table)s AND table_schema = current_schema() AND column_name <> 'collection_id'
"""
OF_COLLECTION = (
    "encoder_model, encoder_fingerprint, encoder_dimension, passage_count, sentence_count, entity_count, "
    "lexical_length, key_building, languages"
)
AT_ONCE = 50
TOP_K = 10


def copy_collection(app: Application, source: str, names: Sequence[str]) -> None:
    """Make collections of these names, each with the rows of the source."""
    origin = app.auth.access.scope(source).collection.id
    for some in common.chunks(names, AT_ONCE):
        with app.database.write_long() as writer:
            writer.execute("SET LOCAL session_replication_role = replica")  # no check of what refers to what
            rows = writer.rows(
                f"""
                INSERT INTO collection (name, {OF_COLLECTION})
                SELECT made.name, {OF_COLLECTION} FROM collection, unnest(%(names)s::text[]) AS made(name)
                WHERE id = %(source)s RETURNING id
                """,
                {"names": list(some), "source": origin},
            )
            for table in TABLES:
                columns = writer.scalar(COLUMNS, {"table": table})
                writer.execute(
                    f"""
                    INSERT INTO {table} (collection_id, {columns})
                    SELECT target, {columns} FROM unnest(%(targets)s::bigint[]) AS target
                    CROSS JOIN (SELECT {columns} FROM {table} WHERE collection_id = %(source)s) AS held
                    """,
                    {"targets": [row.id for row in rows], "source": origin},
                )
        print(f"{some[-1]} made", flush=True)


def cost(backends: Backends, questions: Sequence[str], way: Callable[[int, str], object]) -> list[float]:
    """Milliseconds of this process and of Postgres a question, of both, and the median by the clock."""
    for at, question in enumerate(questions[:10]):
        way(at + 1, question)
    took: list[float] = []
    before = time.process_time() * 1000, backends.milliseconds()
    for at, question in enumerate(questions):
        began = time.perf_counter()
        way(at, question)
        took.append((time.perf_counter() - began) * 1000)
    process, postgres = time.process_time() * 1000 - before[0], backends.milliseconds() - before[1]
    each = [process / len(questions), postgres / len(questions)]
    return [*each, sum(each), float(np.median(took))]


UPKEEP: Mapping[str, Callable[[Application], object]] = {
    "start of a process": lambda app: app.startup.warm_up(),
    "`engram doctor`": lambda app: list(upkeep_of(app).doctor.examine()),
    "metrics": lambda app: app.maintenance.state.metrics(),
    "a page of 100 collections": lambda app: app.corpus.ingest.collections(None, 100),
    "statistics": lambda app: app.maintenance.statistics.run(),
}
ROWS = """
    SELECT (SELECT sum(seq_scan) FROM pg_stat_user_tables) AS scans,
           (SELECT sum(seq_tup_read) FROM pg_stat_user_tables) AS scanned,
           (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes) AS found
"""
FLUSH_SECONDS = 11
"""After which a server process that does nothing has told what it read."""


def measure_upkeep(app: Application) -> dict[str, float]:
    """What serves all collections -> milliseconds of this process and of Postgres."""
    backends, spent = Backends(app), dict[str, float]()
    for what, run in UPKEEP.items():
        before = time.process_time() * 1000 + backends.milliseconds()
        run(app)
        spent[what] = time.process_time() * 1000 + backends.milliseconds() - before
    return spent


def count_rows(app: Application, way: Callable[[int, str], object], questions: Sequence[str]) -> list[float]:
    """Of a question: tables read from end to end, rows read so, and rows found by indexes. Nobody else may ask."""
    seen = []
    for asked in ((), questions):
        for at, question in enumerate(asked):
            way(at, question)
        time.sleep(FLUSH_SECONDS)
        with app.database.read() as reader:
            seen.append([float(count) for count in reader.row(ROWS)])
    return [(after - before) / len(questions) for before, after in zip(*seen, strict=True)]


def read_memory_mb(*processes: int) -> float:
    """Memory that these processes have for themselves."""
    statuses = [Path(f"/proc/{process}/status").read_text() for process in processes]
    return sum(int(one.split("RssAnon:")[1].split()[0]) for one in statuses) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description="A query in one of many collections.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--collections", type=int, default=1000)
    parser.add_argument("--passages", type=int, default=100)
    parser.add_argument("--source", help="Copy this collection, which is there, instead of one that is filled.")
    parser.add_argument("--large", nargs="+", default=[], help="Collections that are there.")
    parser.add_argument("--questions", type=int, default=100)
    arguments = parser.parse_args()
    asked = common.questions(arguments.dataset, arguments.questions)

    source = arguments.source
    with (
        common.application() as (app, _),
        nullcontext(source) if source else common.scratch_collection(app) as first,
    ):
        backends = Backends(app)
        if not source:
            common.fill(app, first, common.passages(arguments.dataset, arguments.passages))
        names = [f"{first}-{number}" for number in range(arguments.collections)]
        large = arguments.large
        rows: list[list[object]] = []

        def measure(what: str, collections: Sequence[str]) -> None:
            spent = cost(backends, asked, ask_of(collections))
            rows.append([what, *spent, common.recall(app, collections, asked[:50])])
            print(*rows[-1], flush=True)

        def ask_of(collections: Sequence[str]) -> Callable[[int, str], object]:
            return lambda at, question: common.ask(app, collections[at % len(collections)], question, top_k=TOP_K)

        measure("a small one, alone", [first])
        few, rows_of_few = measure_upkeep(app), count_rows(app, ask_of([first]), asked)
        if large:
            measure("a large one, without the small ones", large[:1])
        if large[1:]:
            measure("large ones, each time another, without the small ones", large)
        try:
            copy_collection(app, first, names)
            app.maintenance.statistics.run()
            app.maintenance.indexes.run()
            step = max(1, len(names) // len(asked))
            measure("a small one, each time another", names[::step])
            if large:
                measure("large ones, each time another, beside the small ones", large)
            many, rows_of_many = measure_upkeep(app), count_rows(app, ask_of(names[::step]), asked)
            served = os.getpid(), *backends.list_idle()
            held = read_memory_mb(*served)
            for at, name in enumerate(names):
                common.ask(app, name, asked[at % len(asked)], top_k=TOP_K)
            print(f"{held:.0f} MB, once all were asked {read_memory_mb(*served):.0f} MB")
            common.table("what, ms with few, ms with many", [[what, few[what], many[what]] for what in UPKEEP])
            read = [["few", *rows_of_few], ["many", *rows_of_many]]
            common.table("collections, tables read through, rows read so, rows found by indexes", read)
        finally:
            with app.database.write() as writer:
                writer.execute(
                    "DELETE FROM episode WHERE collection_id IN "
                    "(SELECT id FROM collection WHERE name = ANY(%(names)s))",
                    {"names": names},
                )
            for name in names:
                app.corpus.ingest.delete_collection(app.auth.access.scope(name))
        common.table(["collection", "process ms", "Postgres ms", "both ms", "p50 ms", "recall@10"], rows)


if __name__ == "__main__":
    main()
