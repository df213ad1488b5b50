"""What does a query cost Postgres in a collection of 6,000, 40,000, 100,000, 290,000 passages?

    python benchmarks/scale.py DATASET_DIR --passages 40000 100000 290000 [--draw FILE.png] [--questions N]
    python benchmarks/scale.py DATASET_DIR --passages 50000 --number 20 [--questions N]

290,000 passages of 2wiki_hipporag have 1,009,000 sentences. With ``--number`` so many collections of each size
are made, and each question is asked of another. DATASET_DIR is a BEIR folder whose corpus was ingested (`engram
ingest -c NAME corpus.jsonl.gz`). From it larger collections, NAME-scale-N, are made in the database, always the
same: real passages, and copies of them with other vectors. No encoder runs: a copy's vector is 0.8 of its own
and 0.6 of another passage's, another one's in each copy, brought back to length 1. What few sentences name, and
words that few passages have, are others in each copy (Heaps: a larger corpus has more of them); what more than
``COMMON`` have, all copies share, so hubs and common words grow with the corpus. Passages get the vector index
that collections of this size have.

Asked are those questions of the data set whose names are all names of entities, since the entities, some
600,000, get no index here; their answers lie among the real passages. Processor time is that of the server's
process (`/proc/PID/schedstat`), see query_cost.py. Recall is that of the service's dense search against an
exact one, of the first ten.
"""

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from unittest.mock import patch

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.services.auth.scope import LOCAL
from engram.services.maintenance.index_maintenance import EXACT_SEARCH_LIMIT
from engram.services.question.plan import QueryPlanner
from engram.services.question.query import Memory, Query, Strategy
from engram.storage.corpus import collections, reader_sets
from engram.storage.maintenance import vector_indexes
from query_cost import Backends, read_processor_milliseconds, statements
from visible_recall import search_exactly

COMMON = 20
"""Passages that hold a word, or sentences that name an entity, from which on all copies share it."""
OFFSET = 10_000_000
"""Between the ids of two copies, and more than a real corpus has."""
READERS = (("group:0.1%", "group:100%", "group:5%"), ("group:100%", "group:5%"), ("group:100%",))
"""Of one passage in a thousand, of one in twenty, and of all others; whoever is of a group sees so many of all."""
WAYS: Mapping[str, tuple[Mapping[str, int] | None, tuple[str, ...] | None]] = {
    "everything": (None, None),
    "filter that leaves 50%": ({"half": 0}, None),
    "filter that leaves 5%": ({"twentieth": 7}, None),
    "filter that leaves 0.1%": ({"thousandth": 500}, None),
    "reader of 100%": (None, ("group:100%",)),
    "reader of 5%": (None, ("group:5%",)),
    "reader of 0.1%": (None, ("group:0.1%",)),
}
"""Filter and readers of a query."""
WARM = 10
"""Questions asked before."""
MEMORY_MB = 2_048
"""That a vector index is built in."""

# Parameters: the source, the copy's collection, which copy it is (0: as it is), and passages of the source to copy.
_COPY = (
    "SET LOCAL enable_seqscan = on",
    "SET LOCAL plan_cache_mode = force_custom_plan",
    "SET LOCAL enable_nestloop = off",
    "SET LOCAL session_replication_role = replica",  # no check of what refers to what, row by row
    "SET LOCAL work_mem = '256MB'",
    """
    CREATE TEMPORARY TABLE common_entity ON COMMIT DROP AS
        SELECT entity_id AS id FROM entity_sentence WHERE collection_id = %(source)s
        GROUP BY 1 HAVING count(*) > %(common)s
    """,
    """
    CREATE TEMPORARY TABLE common_term ON COMMIT DROP AS
        SELECT id FROM lexical_term WHERE collection_id = %(source)s AND passage_count > %(common)s
    """,
    "CREATE UNIQUE INDEX ON common_entity (id)",
    """
    CREATE TEMPORARY TABLE copied ON COMMIT DROP AS
        SELECT id, other, draw, CASE WHEN draw < 1 THEN %(few)s WHEN draw < 50 THEN %(some)s ELSE %(all)s END
                                    ::bigint AS reader_set_id
        FROM (SELECT id, (row_number() OVER (ORDER BY id) + 997 * %(copy)s) %% count(*) OVER () AS other,
                     mod(hashint8extended(id, %(copy)s) & 1048575, 1000) AS draw
              FROM passage WHERE collection_id = %(source)s ORDER BY id LIMIT %(most)s) AS taken
    """,
    "CREATE UNIQUE INDEX ON copied (id)",
    """
    CREATE TEMPORARY TABLE other ON COMMIT DROP AS
        SELECT row_number() OVER (ORDER BY id) - 1 AS place, embedding::vector FROM passage
        WHERE collection_id = %(source)s
    """,
    "ANALYZE copied, common_entity, common_term, other",
    """
    INSERT INTO passage (collection_id, id, external_id, title, text, language, metadata, reader_set_id,
                         content_hash, embedding)
    SELECT %(target)s, p.id + %(offset)s, p.external_id || '#' || %(copy)s::bigint, p.title, p.text, p.language,
           p.metadata || jsonb_build_object('half', copied.draw %% 2, 'twentieth', copied.draw %% 20,
                                            'thousandth', copied.draw),
           copied.reader_set_id,
           p.content_hash, CASE WHEN %(copy)s = 0 THEN p.embedding::vector ELSE l2_normalize(
               p.embedding::vector * %(own)s::vector + other.embedding * %(others)s::vector) END
    FROM copied JOIN passage p ON p.collection_id = %(source)s AND p.id = copied.id
    JOIN other ON other.place = copied.other
    """,
    """
    INSERT INTO entity (collection_id, id, name, surface, spelling, embedding)
    SELECT %(target)s, e.id + %(offset)s, e.name || '#' || %(copy)s::bigint, e.surface,
           e.spelling || %(copy)s::bigint, l2_normalize(
               e.embedding::vector * %(own)s::vector + other.embedding * %(others)s::vector)
    FROM entity e JOIN other ON other.place = (e.id + %(copy)s) %% (SELECT count(*) FROM other)
    WHERE e.collection_id = %(source)s AND %(copy)s > 0
      AND e.id NOT IN (SELECT id FROM common_entity)
    UNION ALL
    SELECT %(target)s, e.id, e.name, e.surface, e.spelling, e.embedding
    FROM entity e WHERE e.collection_id = %(source)s AND %(copy)s = 0
    """,
    """
    INSERT INTO sentence (collection_id, id, passage_id, position, text, reader_set_id, embedding)
    SELECT %(target)s, s.id + %(offset)s, s.passage_id + %(offset)s, s.position, s.text, copied.reader_set_id,
           CASE WHEN %(copy)s = 0 THEN s.embedding::vector ELSE l2_normalize(
               s.embedding::vector * %(own)s::vector + other.embedding * %(others)s::vector) END
    FROM copied JOIN sentence s ON s.collection_id = %(source)s AND s.passage_id = copied.id
    JOIN other ON other.place = copied.other
    """,
    """
    INSERT INTO entity_sentence (collection_id, entity_id, sentence_id, passage_id, reader_set_id)
    SELECT %(target)s, l.entity_id + CASE WHEN l.entity_id IN (SELECT id FROM common_entity) THEN 0
                                          ELSE %(offset)s END,
           l.sentence_id + %(offset)s, l.passage_id + %(offset)s, copied.reader_set_id
    FROM copied JOIN entity_sentence l ON l.collection_id = %(source)s AND l.passage_id = copied.id
    """,
    """
    INSERT INTO lexical_term (collection_id, id, term, passage_count)
    SELECT %(target)s, t.id + CASE WHEN t.passage_count > %(common)s THEN 0 ELSE %(offset)s END,
           t.term || CASE WHEN %(copy)s = 0 OR t.passage_count > %(common)s THEN ''
                          ELSE '#' || %(copy)s::bigint END, held.held
    FROM lexical_term t JOIN (
        SELECT posting.term_id, count(*) AS held FROM copied
        JOIN lexical_posting posting ON posting.collection_id = %(source)s AND posting.passage_id = copied.id
        GROUP BY 1
    ) AS held ON held.term_id = t.id
    WHERE t.collection_id = %(source)s
    ON CONFLICT (collection_id, id) DO UPDATE
        SET passage_count = lexical_term.passage_count + excluded.passage_count
    """,
    """
    INSERT INTO lexical_posting (collection_id, term_id, passage_id, frequency, length, reader_set_id)
    SELECT %(target)s, l.term_id + CASE WHEN t.passage_count > %(common)s THEN 0 ELSE %(offset)s END,
           l.passage_id + %(offset)s, l.frequency, l.length, copied.reader_set_id
    FROM copied JOIN lexical_posting l ON l.collection_id = %(source)s AND l.passage_id = copied.id
    JOIN lexical_term t ON t.collection_id = %(source)s AND t.id = l.term_id
    """,
    """
    INSERT INTO lexical_passage (collection_id, passage_id, analyser, length, term_ids)
    SELECT %(target)s, l.passage_id + %(offset)s, l.analyser, l.length, ARRAY(
        SELECT term + CASE WHEN term IN (SELECT id FROM common_term) THEN 0 ELSE %(offset)s END
        FROM unnest(l.term_ids) AS term)
    FROM copied JOIN lexical_passage l ON l.collection_id = %(source)s AND l.passage_id = copied.id
    """,
    """
    UPDATE collection SET passage_count = passage_count + (SELECT count(*) FROM copied),
        sentence_count = sentence_count + (SELECT count(*) FROM sentence s JOIN copied ON copied.id = s.passage_id
                                           WHERE s.collection_id = %(source)s),
        lexical_length = lexical_length + (SELECT sum(length) FROM lexical_passage l
            JOIN copied ON copied.id = l.passage_id WHERE l.collection_id = %(source)s),
        languages = (SELECT languages FROM collection WHERE id = %(source)s)
    WHERE id = %(target)s
    """,
)


STAGES = {
    "passage_candidates": "candidates",
    "walk_opening": "names and nearest passages",
    "graph_hops": "hops",
    "complementarity_links": "complementarity",
}
"""Module that sends a statement -> what it is drawn as; the rest is drawn as such."""


def grow_collection(app: Application, source: str, passages: int, number: int = 0) -> str:
    """The name of a collection of so many passages, made of the source where it is not there yet."""
    name = f"{source}-scale-{passages}" + (f"-{number}" if number else "")
    origin = app.auth.access.scope(source).collection
    with app.database.write() as writer:
        made = collections.open_for_writing(writer, name, origin.encoder).collection
        sets = reader_sets.make(writer, made.id, READERS)
    own, others = ([weight] * app.models.embedder.dimension for weight in (0.8, 0.6))
    copy = -(-made.passage_count // origin.passage_count)
    while (left := passages - copy * origin.passage_count) > 0:
        with app.database.write_long() as writer:
            for statement in _COPY:
                writer.execute(
                    statement,
                    {
                        "source": origin.id,
                        "target": made.id,
                        "copy": copy,
                        "offset": copy * OFFSET,
                        "most": left,
                        "common": COMMON,
                        **dict(zip(("few", "some", "all"), (sets[one] for one in READERS), strict=True)),
                        "own": str(own),
                        "others": str(others),
                    },
                )
        copy += 1
        print(f"{name}: {min(copy * origin.passage_count, passages)} passages", flush=True)
    if "passage" not in made.indexed and passages > EXACT_SEARCH_LIMIT:
        began = time.perf_counter()
        with app.database.administer() as admin:
            vector_indexes.build(admin, "passage", made.id, made.encoder_dimension, MEMORY_MB)
        with app.database.write() as writer:
            collections.record_indexed(writer, made.id, ["passage"])
        print(f"{name}: index built in {time.perf_counter() - began:.0f} s", flush=True)
    return name


def ask(
    app: Application, name: str, question: str, way: str, strategy: Strategy = "graph", memory: Memory = "read"
) -> set[str]:
    """Passages that ``WAYS[way]`` shows."""
    filters, readers = WAYS[way]
    collapse = None if strategy == "graph" else False
    options: dict[str, object] = {"strategy": strategy, "memory": memory, "collapse_duplicates": collapse}
    with tenancy.restrict_to(LOCAL.tenant, None if readers is None else tenancy.ReaderNames(readers)):
        answer = common.ask(app, name, question, top_k=10, filter=filters, **options)
    return {hit.passage_id for hit in answer.passages}


def measure_ways(app: Application, names: Sequence[str], asked: Sequence[str], compared: int) -> list[list[object]]:
    """Ask each question of each collection in each way, in turns; a row of each collection and way.

    Args:
        compared: questions that are also searched densely, as the service does and exactly.
    """
    arms = [(name, way) for name in names for way in WAYS]
    order, pids = random.Random(0), list[int]()
    spent: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for at, question in enumerate((*asked[:WARM], *asked)):
        order.shuffle(arms)
        if at == WARM:
            pids = Backends(app).list_idle()
        for arm in arms:
            before = sum(map(read_processor_milliseconds, pids)), time.process_time() * 1000, time.perf_counter()
            ask(app, arm[0], question, arm[1])
            took = (time.perf_counter() - before[2]) * 1000, time.process_time() * 1000 - before[1]
            if pids:
                spent[arm].append((*took, sum(map(read_processor_milliseconds, pids)) - before[0]))
    rows: list[list[object]] = []
    for name, way in sorted(arms, key=lambda arm: (names.index(arm[0]), list(WAYS).index(arm[1]))):
        found = []
        for question in asked[:compared]:
            with patch.object(QueryPlanner, "_narrow", search_exactly):
                best = ask(app, name, question, way, "dense", "off")
            found.append(len(best & ask(app, name, question, way, "dense", "off")) / len(best))
        took, process, postgres = np.array(spent[name, way]).T
        rows.append([name, way, float(np.mean(found)), *common.percentiles(took), process.mean(), postgres.mean()])
        print(*rows[-1], flush=True)
    return rows


def _is_named(app: Application, source: str, question: str) -> bool:
    found = app.retrieval.retrieve.find(
        app.retrieval.retrieve.plan(Query(text=question, scope=app.auth.access.scope(source)))
    )
    return all(entity.similarity == 1.0 for entity in found.entities)


def draw(file: Path, costs: Mapping[int, Mapping[str, float]]) -> None:
    """Draw Postgres' milliseconds a query, stage on stage, by the number of sentences."""
    figure = Figure(figsize=(7.6, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    sizes = sorted(costs)
    kinds = [*STAGES.values(), "rest"]
    stages = {kind: [0.0] * len(sizes) for kind in kinds}
    for at, size in enumerate(sizes):
        for function, spent in costs[size].items():
            stages[STAGES.get(function.split(".")[0], "rest")][at] += spent
    axes.stackplot(sizes, *stages.values(), labels=kinds, alpha=0.8)
    axes.set(xscale="log", xlabel="sentences in the collection", ylabel="Postgres, ms a query", ylim=(0, None))
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes], minor=False)
    figure.legend(loc="outside right upper", reverse=True)
    figure.savefig(file, dpi=120, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description="Postgres' processor time of a query, by the size of the corpus.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--collection", help="Default: the folder's name.")
    parser.add_argument("--passages", type=int, nargs="+", default=[40_000, 100_000])
    parser.add_argument("--number", type=int, default=1, help="Collections of each size.")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--ways", type=int, help="Ask by filters and as readers; so many questions exactly too.")
    parser.add_argument("--draw", type=Path, help="Draw the costs by size into this PNG.")
    arguments = parser.parse_args()
    source = arguments.collection or arguments.dataset.resolve().name
    asked = common.questions(arguments.dataset)

    with common.application() as (app, _):
        asked = [question for question in asked[: 2 * arguments.questions] if _is_named(app, source, question)]
        asked = asked[: arguments.questions]
        sizes = [[source]]
        sizes += [
            [grow_collection(app, source, n, at) for at in range(arguments.number)] for n in arguments.passages
        ]
        app.maintenance.statistics.run()
        if arguments.ways is not None:
            held = measure_ways(app, [names[0] for names in sizes[1:]], asked, arguments.ways)
            common.table("collection, way, recall@10, p50 ms, p95 ms, process ms, Postgres ms", held)
        costs: dict[int, Mapping[str, float]] = {}
        rows: list[list[object]] = []
        for names in sizes:
            size = app.auth.access.scope(names[0]).collection
            print(f"\n{names[0]}: {size.passage_count} passages, {size.sentence_count} sentences", flush=True)

            def service(question: str, names: list[str] = names) -> object:
                return common.ask(app, names[asked.index(question) % len(names)], question, top_k=10)

            for question in asked:  # so that what they read is in Postgres' memory
                service(question)
            costs[size.sentence_count] = statements(service, asked)
            spent = sum(costs[size.sentence_count].values())
            found = common.recall(app, names, asked)
            rows.append([len(names), size.passage_count, size.sentence_count, spent, found])
        first = sum(next(iter(costs.values())).values())
        print()
        common.table(
            ["collections", "passages", "sentences", "Postgres ms a query", "times the first", "recall@10"],
            ([*row[:4], sum(costs[int(str(row[2]))].values()) / first, row[4]] for row in rows),
        )
    if arguments.draw:
        draw(arguments.draw, costs)


if __name__ == "__main__":
    main()
