"""What does a query cost in one of a thousand small collections, and in a large one beside them?

    python benchmarks/many_collections.py DATASET_DIR [--collections N] [--passages N] [--large NAME ...]

The first passages of DATASET_DIR (a BEIR folder) fill a collection, which is asked alone; then it is copied
inside the database, rows as they are, and every question is asked of another copy, so that none finds the rows
of its collection at hand. A NAME is a collection that was ingested before (`engram ingest -c NAME
corpus.jsonl.gz`) or made by `scale.py`, asked without the small ones and beside them; of several the first is
asked alone as well, and else each question of another. Recall is that of the service's dense search against an
exact one, of the first ten. Costs are processor time, of this process and of the server's backends; the times
of the clock are beside them. With ``--rounds`` all collections are asked other questions before, as in a service
that has run for a while. The small collections are removed again.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

import common
from engram.composition.container import Application
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


def cost(
    backends: Backends, questions: Sequence[str], way: Callable[[int, str], object], rounds: int
) -> list[float]:
    """Milliseconds of this process and of Postgres a question, of both, and the median by the clock."""
    for shift in range(rounds, 0, -1):
        for at, question in enumerate(questions if rounds > 1 else questions[:10]):
            way(at + shift, question)
    took: list[float] = []
    before = time.process_time() * 1000, backends.milliseconds()
    for at, question in enumerate(questions):
        began = time.perf_counter()
        way(at, question)
        took.append((time.perf_counter() - began) * 1000)
    process, postgres = time.process_time() * 1000 - before[0], backends.milliseconds() - before[1]
    each = [process / len(questions), postgres / len(questions)]
    return [*each, sum(each), float(np.median(took))]


def main() -> None:
    parser = argparse.ArgumentParser(description="A query in one of many collections.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--collections", type=int, default=1000)
    parser.add_argument("--passages", type=int, default=100)
    parser.add_argument("--large", nargs="+", default=[], help="Collections that are there.")
    parser.add_argument("--questions", type=int, default=100)
    again = "In which all is asked before, of several collections each of another."
    parser.add_argument("--rounds", type=int, default=1, help=again)
    arguments = parser.parse_args()
    asked = common.questions(arguments.dataset, arguments.questions)

    with common.application() as (app, _), common.scratch_collection(app) as first:
        backends = Backends(app)
        common.fill(app, first, common.passages(arguments.dataset, arguments.passages))
        names = [f"{first}-{number}" for number in range(arguments.collections)]
        large = arguments.large
        rows: list[list[object]] = []

        def measure(what: str, collections: Sequence[str]) -> None:
            def ask_in_turn(at: int, question: str) -> object:
                return common.ask(app, collections[at % len(collections)], question, top_k=TOP_K)

            spent = cost(backends, asked, ask_in_turn, arguments.rounds)
            rows.append([what, *spent, common.recall(app, collections, asked[:50])])
            print(*rows[-1], flush=True)

        measure("a small one, alone", [first])
        if large:
            measure("a large one, without the small ones", large[:1])
        if large[1:]:
            measure("large ones, each time another, without the small ones", large)
        try:
            copy_collection(app, first, names)
            app.maintenance.statistics.run()
            step = max(1, len(names) // len(asked))
            measure("a small one, each time another", names[::step])
            if large:
                measure("large ones, each time another, beside the small ones", large)
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
