"""What do search, ingest, indexing and deletion cost, and what is found, as a collection grows to millions?

    python benchmarks/scale.py DATASET_DIR --passages 29000 290000 870000 [--designs] [--delete SHARE] [--reembed]
        [--draw FILE.png]

870,000 passages of 2wiki_hipporag have 3 million sentences. DATASET_DIR is a BEIR folder whose corpus was ingested
(`engram ingest -c NAME corpus.jsonl.gz`). From it larger collections, NAME-scale-N, are made in the database: real
passages, and copies of them. No encoder runs: a copy's vectors are its own ones and another passage's, another
one's in each copy, weighted so that the cosine of copy and original is one that the original corpus has between a
passage and its nearest other passage, drawn for each copy. What few sentences name, and words that few passages
have, are others in each copy (Heaps: a larger corpus has more of them); what more than ``COMMON`` have, all copies
share, so hubs and common words grow with the corpus. Names keep their vectors. Vector indexes are those that
maintenance builds. Asked are those questions of the data set whose names are all names of entities.

All collections are asked each question in turn, in another order each time. Times are processor time, of this
process and of the server's (`/proc/PID/schedstat`), since others may use the machine. Recall is that of the
service's dense search against an exact one in NumPy, of the first ten.
"""

import argparse
import os
import random
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.services.auth.scope import LOCAL
from engram.services.maintenance.index_maintenance import EXACT_SEARCH_LIMIT
from engram.services.question.plan import QueryPlan, QueryPlanner
from engram.services.question.query import Query, Strategy
from engram.storage.column_parameters import decode_column, decode_vectors, floats
from engram.storage.corpus import collections, reader_sets
from engram.storage.database import Reader
from engram.storage.half_vectors import halve
from engram.storage.maintenance import vector_indexes
from engram.storage.question.nearest_neighbours import build_index_condition, build_index_key
from engram.storage.question.query_focus import Focus
from query_cost import Backends, read_processor_milliseconds

COMMON = 20
"""Passages that hold a word, or sentences that name an entity, from which on all copies share it."""
OFFSET = 10_000_000
"""Between the ids of two copies, and more than a real corpus has."""
READERS = (("group:0.1%", "group:100%", "group:5%"), ("group:100%", "group:5%"), ("group:100%",))
"""Of one passage in a thousand, of one in twenty, and of all others; whoever is of a group sees so many of all."""


@dataclass(frozen=True, slots=True)
class Way:
    """Who asks with which filter, and the draws in [0, 1000) of the passages to be found."""

    filter: Mapping[str, int] | None
    readers: tuple[str, ...] | None
    draws: range


EVERYTHING = "everything"
WAYS = {
    EVERYTHING: Way(None, None, range(1000)),
    "filter that leaves 50%": Way({"half": 0}, None, range(0, 1000, 2)),
    "filter that leaves 5%": Way({"twentieth": 7}, None, range(7, 1000, 20)),
    "filter that leaves 0.1%": Way({"thousandth": 500}, None, range(500, 501)),
    "reader of 100%": Way(None, ("group:100%",), range(1000)),
    "reader of 5%": Way(None, ("group:5%",), range(50)),
    "reader of 0.1%": Way(None, ("group:0.1%",), range(1)),
}
WARM = 10
"""Questions asked before."""
MEMORY_MB = 4_096
"""That a vector index is built in."""
TOP_K = 10
LIKENESSES = 100
"""Cosines of real neighbours that those of copies are drawn from."""
MOST_LIKE = 0.97
"""Of a copy and its original: nearer ones would be duplicates."""
BREADTHS = (100, 200, 400, 800)
"""Rows that a search through an index keeps (`hnsw.ef_search`)."""
QUARTILES = (0.25, 0.5, 0.75)
SAMPLED = 300
"""Passages whose neighbours are looked at."""
Found = Mapping[int, float]
"""Passage id -> cosine, of the nearest."""

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
    CREATE TEMPORARY TABLE weight ON COMMIT DROP AS
        SELECT place - 1 AS place, array_fill(likeness::real, size)::vector AS own,
               array_fill(sqrt(1 - likeness * likeness)::real, size)::vector AS others
        FROM unnest(%(likenesses)s::float8[]) WITH ORDINALITY AS drawn(likeness, place),
             (SELECT ARRAY[encoder_dimension] AS size FROM collection WHERE id = %(source)s) AS target
    """,
    """
    CREATE TEMPORARY TABLE copied ON COMMIT DROP AS
        SELECT id, other, draw, weight, (CASE WHEN draw < 1 THEN %(few)s WHEN draw < 50 THEN %(some)s
                                         ELSE %(all)s END)::bigint AS reader_set_id
        FROM (SELECT id, (row_number() OVER (ORDER BY id) + 997 * %(copy)s) %% count(*) OVER () AS other,
                     mod(hashint8extended(id, %(copy)s) & 1048575, 1000) AS draw,
                     mod(hashint8extended(id, -%(copy)s) & 1048575, %(places)s) AS weight
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
               p.embedding::vector * weight.own + other.embedding * weight.others) END
    FROM copied JOIN passage p ON p.collection_id = %(source)s AND p.id = copied.id
    JOIN other ON other.place = copied.other JOIN weight ON weight.place = copied.weight
    """,
    """
    INSERT INTO entity (collection_id, id, name, surface, spelling, embedding)
    SELECT %(target)s, e.id + %(offset)s, e.name || '#' || %(copy)s::bigint, e.surface,
           e.spelling || %(copy)s::bigint, e.embedding
    FROM entity e WHERE e.collection_id = %(source)s AND %(copy)s > 0
      AND e.id NOT IN (SELECT id FROM common_entity)
    UNION ALL
    SELECT %(target)s, e.id, e.name, e.surface, e.spelling, e.embedding
    FROM entity e WHERE e.collection_id = %(source)s AND %(copy)s = 0
    """,
    """
    INSERT INTO sentence (collection_id, id, passage_id, position, text, reader_set_id, embedding)
    SELECT %(target)s, s.id + %(offset)s, s.passage_id + %(offset)s, s.position, s.text, copied.reader_set_id,
           CASE WHEN %(copy)s = 0 THEN s.embedding::vector ELSE l2_normalize(
               s.embedding::vector * weight.own + other.embedding * weight.others) END
    FROM copied JOIN sentence s ON s.collection_id = %(source)s AND s.passage_id = copied.id
    JOIN other ON other.place = copied.other JOIN weight ON weight.place = copied.weight
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
        entity_count = (SELECT count(*) FROM entity WHERE collection_id = %(target)s),
        lexical_length = lexical_length + (SELECT sum(length) FROM lexical_passage l
            JOIN copied ON copied.id = l.passage_id WHERE l.collection_id = %(source)s),
        languages = (SELECT languages FROM collection WHERE id = %(source)s)
    WHERE id = %(target)s
    """,
)


@contextmanager
def measure(what: str, *processes: int) -> Iterator[None]:
    """Print seconds that a block takes: by the clock, and of processor time of the processes that outlive it."""
    began, before = time.perf_counter(), {one: read_processor_milliseconds(one) for one in processes}
    yield
    left = [one for one in processes if Path(f"/proc/{one}").exists()]
    spent = sum(read_processor_milliseconds(one) - before[one] for one in left) / 1000
    print(f"{what}: {time.perf_counter() - began:.0f} s, processor time {spent:.0f} s", flush=True)


def grow_collection(app: Application, source: str, passages: int) -> str:
    """The name of a collection of so many passages, made of the source where it is not there yet."""
    name = f"{source}-scale-{passages}"
    origin = app.auth.access.scope(source).collection
    with app.database.write() as writer:
        made = collections.open_for_writing(writer, name, origin.encoder).collection
        sets = reader_sets.make(writer, made.id, READERS)
    copy = -(-made.passage_count // origin.passage_count)
    likenesses = draw_likenesses(app, source)
    while (left := passages - copy * origin.passage_count) > 0:
        with app.database.write_long() as writer, measure(f"{name}, copy {copy}", _pid(writer)):
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
                        "likenesses": floats(likenesses.tolist()),
                        "places": len(likenesses),
                    },
                )
        copy += 1
    if "passage" not in made.indexed and passages > EXACT_SEARCH_LIMIT:
        with app.database.administer() as admin, measure(f"{name}, vector index", _pid(admin)):
            vector_indexes.build(admin, "passage", made.id, made.encoder_dimension, MEMORY_MB)
        with app.database.write() as writer:
            collections.record_indexed(writer, made.id, ["passage"])
    return name


def _pid(connection: Reader) -> int:
    return int(connection.scalar("SELECT pg_backend_pid()"))


def draw_likenesses(app: Application, source: str) -> NDArray[np.float64]:
    """Cosines of a passage and its nearest other one, at even ranks of those of the corpus, (LIKENESSES,)."""
    held = np.concatenate([vectors for _, _, vectors in _read_vectors(app, source)])
    alike = held @ held.T
    np.fill_diagonal(alike, -1)
    drawn: NDArray[np.float64] = np.quantile(alike.max(axis=1), np.linspace(0, 1, LIKENESSES))
    return np.asarray(np.minimum(drawn, MOST_LIKE))


def _read_vectors(
    app: Application, name: str
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float32]]]:
    """Copy by copy, ids (n,), draws (n,) and vectors (n, d) of the passages."""
    collection = app.auth.access.scope(name).collection
    start = left = 0
    while left < collection.passage_count:
        with app.database.read() as reader:
            row = reader.row(
                """
                SELECT array_send(array_agg(id)) AS ids, string_agg(vector_send(embedding::vector), ''::bytea) AS v,
                       array_send(array_agg(coalesce((metadata->>'thousandth')::bigint, 0))) AS draws
                FROM passage WHERE collection_id = %(c)s AND id >= %(start)s AND id < %(end)s
                """,
                {"c": collection.id, "start": start, "end": start + OFFSET},
            )
        ids = decode_column(row.ids, np.int64)
        yield ids, decode_column(row.draws, np.int64), decode_vectors(row.v)
        start, left = start + OFFSET, left + len(ids)


def find_exactly(
    app: Application, name: str, sought: Mapping[str, NDArray[np.float32]], count: int
) -> dict[str, list[Found]]:
    """For each of some ``WAYS`` and each of its vectors, (n, d), the ``count`` nearest passages, best first."""
    best: dict[str, list[dict[int, float]]] = {way: [{} for _ in vectors] for way, vectors in sought.items()}
    for ids, draws, held in _read_vectors(app, name):
        for way, found in best.items():
            seen = np.flatnonzero(np.isin(draws, WAYS[way].draws))
            for one, row in zip(found, sought[way] @ held[seen].T, strict=True):
                nearest = np.argpartition(-row, count)[:count] if row.size > count else np.arange(row.size)
                one.update(zip(ids[seen[nearest]].tolist(), row[nearest].tolist(), strict=True))
    return {
        way: [dict(sorted(one.items(), key=lambda at: -at[1])[:count]) for one in found]
        for way, found in best.items()
    }


def describe_neighbours(app: Application, names: Sequence[str], questions: NDArray[np.float32]) -> None:
    """Print how near the first and the tenth other passage is, of passages of the corpus and of questions."""
    rows: list[list[object]] = []
    for name in names:
        _, _, vectors = next(_read_vectors(app, name))
        drawn = vectors[np.random.default_rng(0).choice(len(vectors), SAMPLED, replace=False)]
        for what, sought, first in (("passage", drawn, 1), ("question", questions, 0)):
            found = find_exactly(app, name, {EVERYTHING: sought}, TOP_K + 1)[EVERYTHING]
            ranked = np.array([list(one.values())[first : first + TOP_K] for one in found])
            quartiles = (np.quantile(ranked[:, place], QUARTILES) for place in (0, -1))
            rows.append([name, what, *np.concatenate([*quartiles])])
    columns = [f"{rank}, {share:.0%}" for rank in ("1st", "10th") for share in QUARTILES]
    common.table(["collection", "sought", *columns], rows)


def ask(app: Application, name: str, question: str, way: Way, strategy: Strategy = "graph") -> set[str]:
    """Passages that are shown in this way."""
    options: dict[str, Any] = {"strategy": strategy, "collapse_duplicates": None if strategy == "graph" else False}
    with tenancy.restrict_to(LOCAL.tenant, None if way.readers is None else tenancy.ReaderNames(way.readers)):
        answer = common.ask(app, name, question, top_k=TOP_K, filter=way.filter, **options)
    return {hit.passage_id for hit in answer.passages}


def measure_ways(
    app: Application, names: Sequence[str], asked: Sequence[str]
) -> dict[tuple[str, str], NDArray[np.float64]]:
    """Ask each question of each collection in each way, in turns; ms of clock, process and Postgres, (3, n)."""
    arms = [(name, way) for name in names for way in WAYS]
    order, pids = random.Random(0), list[int]()
    spent: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for at, question in enumerate((*asked[:WARM], *asked)):
        order.shuffle(arms)
        if at == WARM:
            pids = Backends(app).list_idle()
        for name, way in arms:
            before = time.perf_counter(), time.process_time(), sum(map(read_processor_milliseconds, pids))
            ask(app, name, question, WAYS[way])
            clock, process = time.perf_counter() - before[0], time.process_time() - before[1]
            if pids:
                server = sum(map(read_processor_milliseconds, pids)) - before[2]
                spent[name, way].append((clock * 1000, process * 1000, server))
    return {arm: np.array(times).T for arm, times in spent.items()}


def measure_recall(app: Application, name: str, asked: Sequence[str]) -> dict[str, float]:
    """Share of the exact ten that the service's dense search shows, by way."""
    shown: dict[str, list[set[str]]] = defaultdict(list)
    sought: dict[str, list[NDArray[np.float32]]] = defaultdict(list)
    build_focus = QueryPlanner._build_focus  # noqa: SLF001

    def keep_vector(*given: Any) -> Focus:
        vectors.append((focus := build_focus(*given)).vector)
        return focus

    vectors: list[NDArray[np.float32]] = []  # of a question as it is read, without errors that this caller sees
    with patch.object(QueryPlanner, "_build_focus", autospec=True, side_effect=keep_vector):
        for way, asking in WAYS.items():
            for question in asked:
                shown[way].append(ask(app, name, question, asking, "dense"))
                sought[way].append(vectors[-1])
    exact = find_exactly(app, name, {way: np.stack(sought[way]) for way in WAYS}, TOP_K)
    wanted = sorted({one for found in exact.values() for best in found for one in best})
    with app.database.read() as reader:
        rows = reader.rows(
            "SELECT id, external_id FROM passage WHERE collection_id = %(c)s AND id = ANY(%(ids)s::bigint[])",
            {"c": app.auth.access.scope(name).collection.id, "ids": wanted},
        )
    named = {row.id: row.external_id for row in rows}
    shares: dict[str, list[float]] = defaultdict(list)
    for way in WAYS:
        for best, found in zip(exact[way], shown[way], strict=True):
            shares[way].append(len({named[one] for one in best} & found) / len(best))
    return {way: float(np.mean(found)) for way, found in shares.items()}


def compare_designs(app: Application, name: str, sought: NDArray[np.float32]) -> None:
    """Search by halves, and by signs whose finds are ranked again: print recall and Postgres' milliseconds."""
    collection = app.auth.access.scope(name).collection
    size, condition = collection.encoder_dimension, build_index_condition(collection.id)
    key, vector = build_index_key("passage", "embedding", size), halve("%(q)s")
    signs, index = f"(binary_quantize{key}::bit({size}))", f"scale_signs_{collection.id}"
    nearest = f"SELECT id, embedding FROM passage WHERE {condition} ORDER BY"
    by_signs = f"{nearest} {signs} <~> (SELECT binary_quantize(%(q)s::vector)::bit({size})) LIMIT"
    ranked = f"SELECT id FROM near ORDER BY embedding <#> {vector} LIMIT {TOP_K}"
    exact = find_exactly(app, name, {EVERYTHING: sought}, TOP_K)[EVERYTHING]
    rows: list[list[object]] = []
    with app.database.administer() as admin:
        pid = _pid(admin)
        admin.scalar("SELECT set_config('maintenance_work_mem', %(size)s, false)", {"size": f"{MEMORY_MB}MB"})
        with measure(f"{name}, index of signs", pid):
            admin.execute(
                f"CREATE INDEX IF NOT EXISTS {index} ON passage USING hnsw ({signs} bit_hamming_ops) "
                f"WITH (ef_construction = 200) WHERE {condition}"
            )
        for breadth in BREADTHS:
            admin.scalar("SELECT set_config('hnsw.ef_search', %(breadth)s, false)", {"breadth": str(breadth)})
            for design, statement in (
                ("halves", f"{nearest} {key} <#> {vector} LIMIT {TOP_K}"),
                ("signs, ranked again", f"WITH near AS MATERIALIZED ({by_signs} {breadth}) {ranked}"),
            ):
                for one in sought:  # so that what they read is in Postgres' memory
                    admin.rows(statement, {"q": one})
                before = read_processor_milliseconds(pid)
                found = [{row.id for row in admin.rows(statement, {"q": one})} for one in sought]
                spent = (read_processor_milliseconds(pid) - before) / len(sought)
                shares = [len(got & best.keys()) / len(best) for got, best in zip(found, exact, strict=True)]
                rows.append([name, design, breadth, float(np.mean(shares)), spent])
        for one_index in (index, f"passage_hnsw_{collection.id}"):
            held = admin.scalar("SELECT pg_relation_size(%(i)s::text::regclass)", {"i": one_index})
            print(f"{one_index}: {held / 2**20:.0f} MB")
        vector_indexes.drop(admin, index)
    common.table("collection, design, breadth, recall@10, Postgres ms", rows)


def delete(app: Application, name: str, share: float) -> None:
    """Delete this share of the passages, one after the other, then vacuum as autovacuum does: no vector index."""
    scope = app.auth.access.scope(name)
    with app.database.read() as reader:
        rows = reader.rows(
            """
            SELECT external_id FROM passage WHERE collection_id = %(c)s AND metadata @> '{"half": 1}'
            ORDER BY hashint8(id) LIMIT %(count)s
            """,
            {"c": scope.collection.id, "count": round(share * scope.collection.passage_count)},
        )
    with measure(f"{name}, {len(rows)} passages deleted", os.getpid(), *Backends(app).list_idle()):
        for row in rows:
            app.corpus.ingest.delete_passage(scope, row.external_id)
    for table in ("passage", "sentence", "entity", "entity_sentence", "lexical_posting", "lexical_passage"):
        with app.database.administer() as admin, measure(f"{name}, vacuum of {table}", _pid(admin)):
            admin.execute(f"VACUUM {table}")


class DrawnEncoder(common.DrawnVectors):
    """Another encoder, whose vectors cost next to nothing."""

    model = fingerprint = "drawn"


def reembed(app: Application, name: str) -> None:
    """Give the collection drawn vectors, then those that it had, then vector indexes."""
    scope = app.auth.access.scope(name)
    for model in (DrawnEncoder.model, scope.collection.encoder.model):
        with measure(f"{name}, re-embedded by {model}", os.getpid(), *Backends(app).list_idle()):
            app.corpus.reembed.request(scope, model)
            app.jobs.runner.run_ready()
    app.maintenance.indexes.run()


def _is_named(app: Application, plan: QueryPlan) -> bool:
    with app.database.read() as reader:
        known = reader.scalar(
            "SELECT count(*) FROM entity WHERE collection_id = %(c)s AND name = ANY(%(names)s::text[])",
            {"c": plan.collection.id, "names": list(plan.mentions)},
        )
    return bool(known == len(plan.mentions))


def draw(
    file: Path,
    sentences: Sequence[int],
    times: Mapping[str, Sequence[float]],
    recalls: Mapping[str, Sequence[float]],
) -> None:
    """Draw times, as multiples of the smallest collection's, and recall by the number of sentences."""
    figure = Figure(figsize=(7.6, 3.2), layout="constrained")
    FigureCanvasAgg(figure)
    drawn = ((times, "processor time, times the first"), (recalls, "recall@10 of the vector search"))
    for axes, (lines, label) in zip(figure.subplots(1, 2), drawn, strict=True):
        for name, values in lines.items():
            axes.plot(sentences, values, marker="o", label=name)
        axes.set(xscale="log", xlabel="sentences in the collection", ylabel=label, ylim=(0, None))
        axes.set_xticks(sentences, [f"{size / 1e6:.1f} million" for size in sentences], minor=False)
        axes.legend(loc="best", fontsize="small")
    figure.savefig(file, dpi=120, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description="A collection that grows to millions of sentences.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, nargs="+", default=[29_000, 290_000, 870_000])
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--designs", action="store_true", help="Also compare with an index of the vectors' signs.")
    parser.add_argument("--reembed", action="store_true", help="Also exchange all vectors of the smallest, twice.")
    parser.add_argument("--delete", type=float, default=0, help="Delete this share of each's passages at the end.")
    parser.add_argument("--draw", type=Path, help="Draw times and recall by size into this PNG.")
    arguments = parser.parse_args()
    source = arguments.dataset.resolve().name

    with common.application(also=DrawnEncoder) as (app, _):
        names = [grow_collection(app, source, passages) for passages in arguments.passages]
        app.maintenance.statistics.run()
        for one in app.maintenance.indexes.run() or ():  # which searches more broadly what finds too little
            print(f"{one.index}: {one.bytes_after / 2**20:.0f} MB, recall {one.recall} at {one.breadth}")
        scope = app.auth.access.scope(source)
        questions = common.questions(arguments.dataset)
        plans = [app.retrieval.retrieve.plan(Query(text=one, scope=scope)) for one in questions]
        plans = [plan for plan in plans if _is_named(app, plan)][: arguments.questions]
        asked, sought = [plan.query.text for plan in plans], np.stack([plan.focus.vector for plan in plans])
        describe_neighbours(app, [source, *names], sought)
        recalls = {name: measure_recall(app, name, asked) for name in names}
        print(recalls, flush=True)
        spent = measure_ways(app, names, asked)
        # Processor time of process and Postgres, then the clock's: p50 and p95.
        times = {
            at: [*common.percentiles(one[1:].sum(axis=0)), *common.percentiles(one[0])] for at, one in spent.items()
        }
        rows: list[list[object]] = []
        for way in WAYS:
            for name in names:
                ratios = np.divide(times[name, way], times[names[0], way])
                rows.append([way, name, recalls[name][way], *times[name, way], *ratios])
        kinds = [f"{kind} p{rank}" for kind in ("processor", "clock") for rank in (50, 95)]
        columns = [f"{kind}{unit}" for unit in (" ms", " times") for kind in kinds]
        common.table(["way", "collection", "recall@10", *columns], rows)
        if arguments.draw:
            sizes = [app.auth.access.scope(name).collection.sentence_count for name in names]
            drawn = {
                f"{way}, p{rank}": [times[name, way][at] / times[names[0], way][at] for name in names]
                for way in (EVERYTHING, "filter that leaves 5%", "reader of 5%")
                for at, rank in enumerate((50, 95))
            }
            draw(arguments.draw, sizes, drawn, {way: [recalls[name][way] for name in names] for way in WAYS})
        for name in names:
            if arguments.designs and "passage" in app.auth.access.scope(name).collection.indexed:
                compare_designs(app, name, sought)
            if arguments.delete:
                delete(app, name, arguments.delete)
        if arguments.reembed:
            reembed(app, names[0])


if __name__ == "__main__":
    main()
