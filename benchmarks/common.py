"""What the benchmarks share: reading a data set, filling a collection, asking, judging, percentiles and tables."""

import gc
import gzip
import hashlib
import json
import math
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import structlog
from numpy.typing import NDArray

from engram.cli import OBJECTS
from engram.composition.container import Application, Servers, servers
from engram.config.settings import Settings
from engram.context import tenancy
from engram.providers.embedder import Embedder
from engram.providers.language import Language
from engram.services.question.answer import Answer
from engram.services.question.query import Query
from engram.services.verdict.verdict import Verdict
from engram.storage.schema_revision import migrate
from engram.storage.tables import metadata

LINES_PER_WRITE = 500


def read_jsonl(path: Path, limit: int | None = None) -> list[dict[str, Any]]:
    """The first ``limit`` rows of a JSONL file, plain or .gz."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in islice(file, limit)]


def dataset_file(folder: Path, name: str) -> Path:
    """``name``.jsonl.gz or ``name``.jsonl, whichever the folder has."""
    packed = folder / f"{name}.jsonl.gz"
    return packed if packed.exists() else folder / f"{name}.jsonl"


def passages(folder: Path, limit: int | None = None) -> list[dict[str, Any]]:
    """Passages of a BEIR folder as the ingest service takes them."""
    rows = read_jsonl(dataset_file(folder, "corpus"), limit)
    return [
        {
            "id": row["_id"],
            "title": row.get("title") or None,
            "text": row["text"],
            "metadata": {},
            "sentences": None,
        }
        for row in rows
    ]


def labels(folder: Path) -> dict[str, dict[str, int]]:
    """Question -> its relevant passages, each with 1, both in the order of a BEIR folder's qrels.tsv."""
    found: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, passage, score = line.split("\t")
        if float(score) > 0:
            found.setdefault(question, {})[passage] = 1
    return found


def questions(folder: Path, limit: int | None = None) -> list[str]:
    """Questions of a BEIR folder."""
    return [row["text"] for row in read_jsonl(dataset_file(folder, "queries"), limit)]


class WrappedEncoder:
    """An encoder that is another one, but for what a subclass changes."""

    def __init__(self, embedder: Any) -> None:
        self.embedder = embedder

    def __getattr__(self, name: str) -> Any:
        return getattr(self.embedder, name)


class DrawnVectors(WrappedEncoder):
    """An encoder whose vector of a text is drawn, always the same."""

    def embed(self, texts: Sequence[str], **_: object) -> NDArray[np.float32]:
        """Unit vectors, (texts, dimension)."""
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts]
        drawn = [np.random.default_rng(seed).normal(size=self.dimension) for seed in seeds]
        vectors = [one / np.linalg.norm(one) for one in drawn]
        return np.array(vectors, dtype=np.float32).reshape(-1, self.dimension)

    embed_questions = embed


@contextmanager
def application(
    embedder: Callable[[Embedder], Embedder] | None = None,
    language: Callable[[Language], Language] | None = None,
    also: Callable[[Embedder], Embedder] | None = None,
) -> Iterator[tuple[Application, Servers]]:
    """The configured application with everything loaded, and where its servers are.

    An embedded database is migrated; one of your own should be already.

    Args:
        embedder: makes the encoder to use instead of the configured one, from that.
        language: makes the language to use instead of the configured one, from that.
        also: makes a second encoder from the first, for collections to be moved to.
    """
    settings = Settings(log_level="ERROR")
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(40))
    gc.set_threshold(OBJECTS)  # as in each process of a service
    with servers(settings) as addresses:
        if settings.database_url is None:
            migrate(addresses.database_url)
        app = Application(settings, addresses, consumer=f"benchmark-{uuid.uuid4()}")
        if embedder is not None:
            app.models.embedder = embedder(app.models.embedder)
        if language is not None:
            app.models.language = language(app.models.language)
        if also is not None:
            app.models.embedder_also = also(app.models.embedder)
        try:
            app.startup.warm_up()
            with tenancy.allow_all_tenants():
                yield app, addresses
        finally:
            app.close()


def stage(app: Application, collection: str, bodies: Sequence[Mapping[str, Any]]) -> uuid.UUID:
    """Hand passages to an ingest job that nobody has begun; its id."""
    reception = app.corpus.ingest.receive(app.auth.access.prepare_opening(collection))
    for lines in chunks(list(enumerate(bodies, start=1)), LINES_PER_WRITE):
        reception.add(lines, [])
    return reception.finish()


def fill(app: Application, collection: str, bodies: Sequence[Mapping[str, Any]]) -> None:
    """Ingest passages into a collection that has no others.

    Raises:
        SystemExit: not all of them arrived.
    """
    stage(app, collection, bodies)
    while app.jobs.runner.run_ready():
        pass
    held = app.auth.access.scope(collection).collection.passage_count
    if held != len(bodies):
        raise SystemExit(f"{collection}: {len(bodies)} passages were sent, {held} arrived.")


def ask(app: Application, collection: str, text: str, **options: Any) -> Answer:
    """What a collection answers; ``options`` are those of ``Query``."""
    return app.answers.question.answer(Query(text=text, scope=app.auth.access.scope(collection), **options))


def judge(app: Application, verdicts: Sequence[Verdict], batch: int) -> None:
    """Accept verdicts on one collection, and apply so many of them at a time.

    Raises:
        SystemExit: a worker applied some of them.
    """
    for some in chunks(verdicts, batch):
        events = [app.learning.verdicts.accept(verdict, uuid.uuid4().hex).event.id for verdict in some]
        if app.learning.learner.apply(some[0].scope.collection.id, events) != len(events):
            raise SystemExit("A worker applies verdicts beside.")


@contextmanager
def scratch_collection(app: Application) -> Iterator[str]:
    """The name of a collection that is made now and removed at the end of the block."""
    name = f"benchmark-{uuid.uuid4().hex}"
    with app.database.write() as writer:
        app.auth.access.prepare_opening(name).open(writer, app.models.encoder, app.models.encoder.choose(None))
    try:
        yield name
    finally:
        app.corpus.ingest.delete_collection(app.auth.access.scope(name))


def recall(app: Application, collections: Sequence[str], questions: Sequence[str], depth: int = 10) -> float:
    """Of the ``depth`` passages that are nearest, found exactly, the share that a dense query shows.

    Each question is asked of the next of the collections.
    """
    shares: list[float] = []
    for at, question in enumerate(questions):
        scope = app.auth.access.scope(collections[at % len(collections)])
        exact = {external_id for external_id, _ in app.retrieval.dense.search(scope, question, depth)}
        way = {"top_k": depth, "memory": "off", "strategy": "dense", "collapse_duplicates": False}
        shown = ask(app, collections[at % len(collections)], question, **way)
        shares.append(len(exact & {hit.passage_id for hit in shown.passages}) / len(exact))
    return float(np.mean(shares))


def open_client(url: str, key: str) -> httpx.Client:
    """A client with an access key."""
    headers = {"authorization": f"Bearer {key}"}
    return httpx.Client(base_url=url, headers=headers, trust_env=False, timeout=60.0)


def compute_recall_and_ndcg(ranking: Sequence[str], relevant: Collection[str]) -> tuple[float, float]:
    """recall@5, and nDCG@10 with gain 1 for each relevant passage."""
    gained = sum(1 / math.log2(rank + 2) for rank, name in enumerate(ranking[:10]) if name in relevant)
    best = sum(1 / math.log2(rank + 2) for rank in range(min(10, len(relevant))))
    return sum(name in relevant for name in ranking[:5]) / len(relevant), gained / best


def chunks(items: Sequence[Any], size: int) -> list[Sequence[Any]]:
    """Pieces of ``size`` items, the last one shorter."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def read_table_bytes(app: Application) -> dict[str, int]:
    """Table -> bytes, indexes and out-of-line values included."""
    with app.database.read() as reader:
        rows = reader.rows(
            "SELECT name, pg_total_relation_size(name::regclass) AS bytes FROM unnest(%(names)s::text[]) AS name",
            {"names": list(metadata.tables)},
        )
    return {row.name: row.bytes for row in rows}


def print_growth(heading: str, before: Mapping[str, int], after: Mapping[str, int], count: int) -> None:
    """Print by how many bytes each table grew, over a count of what was written."""
    grown = {name: (after[name] - before[name]) / count for name in after if after[name] > before[name]}
    rows = sorted(grown.items(), key=lambda row: -row[1])
    table((heading, ""), [*rows, ("in all", sum(grown.values()))])


def percentiles(samples: Sequence[float]) -> tuple[float, float]:
    """p50 and p95."""
    low, high = np.percentile(samples, [50, 95])
    return float(low), float(high)


def table(header: str | Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Print a Markdown table; names in a header that is one text have ", " between them."""
    names = header.split(", ") if isinstance(header, str) else header
    print("| " + " | ".join(names) + " |")
    print("|" + "---|" * len(names))
    for row in rows:
        print("| " + " | ".join(f"{cell:.2f}" if isinstance(cell, float) else str(cell) for cell in row) + " |")
