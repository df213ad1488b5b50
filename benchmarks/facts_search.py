"""How long a search of facts takes, in a graph of many with one entity that thousands of facts name.

    python benchmarks/facts_search.py [--facts 100000] [--hub 20000] [--searches 200]

Facts are generated: people with parents, places and employers, and a country that ``--hub`` of them are citizens
of. Half the questions lead through the hub. The floor is a statement that reads nothing, in its own transaction.
"""

import argparse
import time
import uuid
from collections.abc import Callable

import numpy as np
import psutil

from common import application
from engram.composition.container import Application
from engram.services.auth.scope import Scope
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_search import FactPattern

RELATIONS = ("father", "place of birth", "employer", "spouse", "educated at")


def generate_graph(app: Application, scope: Scope, facts: int, hub: int) -> int:
    """Fill the graph by set; how many people it has."""
    people = max(1, (facts - hub) // len(RELATIONS))
    parameters = {"c": scope.collection.id, "people": people, "hub": hub, "relations": list(RELATIONS)}
    with app.database.write() as writer:
        writer.execute("SET LOCAL statement_timeout = 0")
        writer.execute(
            """
            INSERT INTO fact_entity (collection_id, id, name, bare, tail, surface)
            SELECT %(c)s, n, name, name, name, name FROM (
                SELECT n, lower(CASE WHEN n > %(people)s THEN 'Ruritania' ELSE 'Person ' || n END) AS name
                FROM generate_series(1, %(people)s + 1) AS n
            ) AS named
            """,
            parameters,
        )
        writer.execute(
            """
            INSERT INTO fact (collection_id, subject_id, subject_said, predicate, object_id, object_said,
                              object_text, object_key, object_kind, belief, perplexity, observations)
            SELECT %(c)s, n, n, relation, o, o, '', '', 'entity', 0.67, 0.67, 1
            FROM generate_series(1, %(people)s) AS n
            CROSS JOIN unnest(%(relations)s::text[]) WITH ORDINALITY AS r(relation, at)
            CROSS JOIN LATERAL (SELECT 1 + (n * 7919 + at * 104729) %% %(people)s AS o) AS target WHERE o <> n
            ON CONFLICT DO NOTHING
            """,
            parameters,
        )
        writer.execute(
            """
            INSERT INTO fact (collection_id, subject_id, subject_said, predicate, object_id, object_said,
                              object_text, object_key, object_kind, belief, perplexity, observations)
            SELECT %(c)s, 1 + n %% %(people)s, 1 + n %% %(people)s, 'citizenship ' || n / %(people)s,
                   %(people)s + 1, %(people)s + 1, '', '', 'entity', 0.67, 0.67, 1
            FROM generate_series(0, %(hub)s - 1) AS n
            """,
            parameters,
        )
        event = writer.scalar(
            """
            INSERT INTO fact_event (collection_id, kind, judge, idempotency_key, body_hash, sequence,
                observation_noise_positive, observation_noise_negative, process_noise, daily_share, contested_share)
            VALUES (%(c)s, 'assert', 'generated', 'generated', '', 1, 2, 2, 0.001, 1, 1) RETURNING id
            """,
            parameters,
        )
        statement = writer.scalar(
            """
            INSERT INTO fact_statement (collection_id, event_id, source, text)
            VALUES (%(c)s, %(event)s, 'generated', 'It is so.') RETURNING id
            """,
            parameters | {"event": event},
        )
        writer.execute(
            """
            INSERT INTO fact_source (collection_id, fact_id, statement_id, confidence, sequence,
                observation_noise_positive, observation_noise_negative, process_noise)
            SELECT %(c)s, id, %(statement)s, 1, nextval('fact_said'), 2, 2, 0.001 FROM fact
            WHERE collection_id = %(c)s
            """,
            parameters | {"statement": statement},
        )
        for table in ("fact", "fact_entity", "fact_source", "fact_statement"):
            writer.execute(f"ANALYZE {table}")
    return people


def measure_milliseconds(action: Callable[[int], object], times: int) -> np.ndarray:
    """Milliseconds of each."""
    found = []
    for at in range(times):
        began = time.perf_counter()
        action(at)
        found.append(1000 * (time.perf_counter() - began))
    return np.array(found)


def processor(app: Application, action: Callable[[int], object], times: int) -> tuple[float, float]:
    """Milliseconds of processor time that one takes here and in Postgres: what a busy machine does not change."""
    with app.database.snapshot() as reader:  # the pool gives the connection that was used last
        server = psutil.Process(reader.scalar("SELECT pg_backend_pid()"))
    here, there = time.process_time(), sum(server.cpu_times()[:2])
    for at in range(times):
        action(at)
    ends = time.process_time(), sum(server.cpu_times()[:2])
    return 1000 * (ends[0] - here) / times, 1000 * (ends[1] - there) / times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=100_000)
    parser.add_argument("--hub", type=int, default=20_000)
    parser.add_argument("--searches", type=int, default=200)
    arguments = parser.parse_args()
    with application() as (app, _):
        name = f"benchmark-{uuid.uuid4().hex[:8]}"
        app.corpus.ingest.receive(app.auth.access.prepare_opening(name)).add([], [])
        scope = app.auth.access.scope(name)
        try:
            people = generate_graph(app, scope, arguments.facts, arguments.hub)
            with app.database.read() as reader:
                count = reader.scalar(
                    "SELECT count(*) FROM fact WHERE collection_id = %(c)s", {"c": scope.collection.id}
                )
            print(f"{count} facts, {people} people, hub of {arguments.hub}")

            def floor(_: int) -> None:
                with app.database.snapshot() as reader:
                    reader.scalar("SELECT 1")

            def build_question(edges: int) -> Callable[[int], object]:
                def ask(at: int) -> object:
                    one, other = 1 + (at * 131) % people, 1 + (at * 977 + 5) % people
                    question = (
                        f"Who is the employer of the father of Person {one}?"
                        if at % 2
                        else f"Are Person {one} and Person {other} both from Ruritania?"
                    )
                    return facts_of(app).fact_search.search(scope, FactPattern(question=question, edges=edges))

                return ask

            measure_milliseconds(floor, 50)
            base = float(np.median(measure_milliseconds(floor, arguments.searches)))
            print(f"floor p50 {base:.2f} ms")
            for edges in (1, 2, 3, 4):
                measure_milliseconds(build_question(edges), 10)
                took = measure_milliseconds(build_question(edges), arguments.searches)
                p50, p95 = np.percentile(took, [50, 95])
                here, there = processor(app, build_question(edges), arguments.searches)
                print(
                    f"L {edges}: p50 {p50:.1f} ms ({p50 / base:.0f} floors), p95 {p95:.1f} ms; "
                    f"processor {here:.1f} ms here, {there:.1f} ms in Postgres"
                )
            took = measure_milliseconds(
                lambda _: facts_of(app).fact_search.search(scope, FactPattern(entities=["Ruritania"], edges=2)),
                50,
            )
            print(f"from the hub, L 2: p50 {np.median(took):.1f} ms")
        finally:
            app.corpus.ingest.delete_collection(scope)


if __name__ == "__main__":
    main()
