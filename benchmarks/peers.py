"""Engram beside what you would use instead: quality, time and disk, with one encoder on one corpus in one run.

    python -m venv build/peers
    echo "import site; site.addsitedir('$(echo $PWD/.venv/lib/*/site-packages)')" \
        > "$(echo build/peers/lib/*/site-packages)/engram.pth"
    build/peers/bin/pip install lancedb qdrant-client chromadb txtai langchain-postgres langchain-community \
        langchain-classic rank-bm25
    engram fit OTHER_SETS --limit 40 --out weights.json
    ENGRAM_RANKING_PRIOR=weights.json build/peers/bin/python benchmarks/peers.py DATASET_DIR --passages 1500 \
        --questions 200 --out evaluation/measurements/peers.md

Fit ranking weights to other data sets than the measured one: the shipped ones have seen most public sets. The
second line lets the environment of the peers use Engram and its encoder. Each peer is used as its documentation
says, with its defaults, and gets the title and text of a passage. All embed with the encoder that Engram has by
default; ingest and queries include it. The peers share one embedding of the passages, whose time each is
charged. Engram answers over HTTP, plain pgvector and LangChain ask a Postgres of this machine, and the others
work in this process. Corpora are taken one system after the other. Then each question goes to all systems in
turn, so that other work on the machine slows all of them alike.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import httpx
import numpy as np
import psycopg
import Stemmer
from bm25s import tokenize

from common import compute_recall_and_ndcg, dataset_file, labels, passages, read_jsonl
from engram.providers.embedder import Embedder, load_embedder
from engram.providers.ranking_prior import RankingPriors, load_priors
from running import Service

DIMENSIONS, DEPTH = 384, 10
VERDICTS = 100
COLLECTION = "peers"
HEADER = "| | recall@5 | nDCG@10 | query, p50 | ingest | disk | recall@5 after verdicts: judged / others |\n"


@dataclass(frozen=True)
class Task:
    """A corpus with its questions: passage id -> text, question id -> text, question id -> ids of its passages."""

    corpus: Mapping[str, str]
    questions: Mapping[str, str]
    relevant: Mapping[str, frozenset[str]]


class Encoder:
    """The encoder that all share, with the vectors of the passages.

    Attributes:
        corpus_seconds: what embedding the passages took.
    """

    def __init__(self, embedder: Embedder, corpus: Sequence[str]) -> None:
        self._embedder = embedder
        self._vectors: dict[str, list[float]] = {}
        self.embed(["What is loaded at the first text is no text's time."])
        began = time.perf_counter()
        self._vectors = dict(zip(corpus, self.embed(corpus), strict=True))
        self.corpus_seconds = time.perf_counter() - began

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts that are no passages, look up those that are; (n, d)."""
        if texts and all(text in self._vectors for text in texts):
            return [self._vectors[text] for text in texts]
        return [vector.tolist() for vector in np.asarray(self._embedder.embed(list(texts)), dtype=np.float32)]


class Peer(ABC):
    """A system that finds passages."""

    modules: tuple[str, ...] = ()
    """Imported before the first passage, so that no time of it counts."""

    shares_collection = False
    """Whether it asks a collection that another one took in."""

    def __init__(self, name: str, packages: str, folder: Path, encoder: "Encoder") -> None:
        self.name = f"{name} ({', '.join(f'{one} {version(one)}' for one in packages.split())})"
        self.folder = folder / name.replace(" ", "-")
        self.folder.mkdir()
        self.encoder = encoder

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts, (n, d)."""
        return self.encoder.embed(texts)

    @abstractmethod
    def ingest(self, corpus: Mapping[str, str]) -> None:
        """Take all passages."""

    @abstractmethod
    def search(self, question: str) -> list[str]:
        """Return ids of ``DEPTH`` passages, best first."""

    def measure_disk_bytes(self) -> int:
        """Bytes of what it keeps."""
        return sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())


class LanceDB(Peer):
    """Hybrid search: vectors and its own full-text index, fused by reciprocal ranks."""

    modules = ("lancedb",)

    def ingest(self, corpus: Mapping[str, str]) -> None:
        import lancedb
        from lancedb.index import FTS

        vectors = self.embed(list(corpus.values()))
        rows = [
            {"id": name, "text": text, "vector": vector}
            for (name, text), vector in zip(corpus.items(), vectors, strict=True)
        ]
        self._table = lancedb.connect(str(self.folder)).create_table(COLLECTION, data=rows)
        self._table.create_index("text", config=FTS())

    def search(self, question: str) -> list[str]:
        (vector,) = self.embed([question])
        found = self._table.search(query_type="hybrid").vector(vector).text(question).limit(DEPTH)
        return [row["id"] for row in found.to_list()]


class Qdrant(Peer):
    """Hybrid search in local mode: dense vectors and sparse ones of BM25, fused by reciprocal ranks.

    Sparse vectors are computed as ``fastembed`` computes those of ``Qdrant/bm25``, which it would download.
    """

    modules = ("qdrant_client",)

    def ingest(self, corpus: Mapping[str, str]) -> None:
        from qdrant_client import QdrantClient, models

        self._client = QdrantClient(path=str(self.folder))
        self._client.create_collection(
            COLLECTION,
            vectors_config={"dense": models.VectorParams(size=DIMENSIONS, distance=models.Distance.COSINE)},
            sparse_vectors_config={"bm25": models.SparseVectorParams(modifier=models.Modifier.IDF)},
        )
        self._names, self._terms = list(corpus), dict[str, int]()
        vectors = self.embed(list(corpus.values()))
        points = [
            models.PointStruct(id=at, vector={"dense": vector, "bm25": self._weigh(text)})
            for at, (text, vector) in enumerate(zip(corpus.values(), vectors, strict=True))
        ]
        self._client.upload_points(COLLECTION, points)

    def search(self, question: str) -> list[str]:
        from qdrant_client import models

        (vector,) = self.embed([question])
        sparse = self._weigh(question)
        sparse.values = [1.0] * len(sparse.values)
        found = self._client.query_points(
            COLLECTION,
            prefetch=[
                models.Prefetch(query=sparse, using="bm25", limit=2 * DEPTH),
                models.Prefetch(query=vector, using="dense", limit=2 * DEPTH),
            ],
            query=models.FusionQuery(fusion=models.Fusion.RRF),
            limit=DEPTH,
        )
        return [self._names[int(point.id)] for point in found.points]

    def _weigh(self, text: str, k: float = 1.2, b: float = 0.75, usual_length: float = 256.0) -> Any:
        from qdrant_client import models

        (words,) = tokenize([text], stemmer=STEMMER, return_ids=False, show_progress=False)
        counts: dict[int, int] = {}
        for word in words:
            at = self._terms.setdefault(word, len(self._terms))
            counts[at] = counts.get(at, 0) + 1
        length = k * (1 - b + b * len(words) / usual_length)
        return models.SparseVector(
            indices=list(counts), values=[count * (k + 1) / (count + length) for count in counts.values()]
        )


STEMMER = Stemmer.Stemmer("english")


class Chroma(Peer):
    """Vectors alone: the local version searches no text."""

    modules = ("chromadb",)

    def ingest(self, corpus: Mapping[str, str]) -> None:
        import chromadb

        client = chromadb.PersistentClient(path=str(self.folder))
        self._collection = client.create_collection(COLLECTION, configuration={"hnsw": {"space": "cosine"}})
        names, texts = list(corpus), list(corpus.values())
        size = client.get_max_batch_size()
        for start in range(0, len(names), size):
            end = start + size
            self._collection.add(
                ids=names[start:end], documents=texts[start:end], embeddings=self.embed(texts[start:end])
            )

    def search(self, question: str) -> list[str]:
        found = self._collection.query(query_embeddings=self.embed([question]), n_results=DEPTH, include=[])
        return list(found["ids"][0])


class Txtai(Peer):
    """Hybrid search: vectors and BM25, their scores added."""

    modules = ("txtai",)

    def ingest(self, corpus: Mapping[str, str]) -> None:
        from txtai import Embeddings

        self._embeddings = Embeddings(
            {"method": "external", "transform": lambda texts: np.array(self.embed(texts)), "hybrid": True}
        )
        self._embeddings.index((name, text, None) for name, text in corpus.items())
        self._embeddings.save(str(self.folder / "index"))

    def search(self, question: str) -> list[str]:
        return [name for name, _ in self._embeddings.search(question, DEPTH)]


class PgVector(Peer):
    """A table with an HNSW index."""

    url = ""

    def __init__(self, name: str, packages: str, folder: Path, encoder: Encoder) -> None:
        super().__init__(name, packages, folder, encoder)
        statement = "SELECT default_version FROM pg_available_extensions WHERE name = 'vector'"
        with psycopg.connect(self.url) as connection:
            ((extension,),) = connection.execute(statement).fetchall()
        self.name = self.name.replace("(", f"(pgvector {extension}, ")

    def ingest(self, corpus: Mapping[str, str]) -> None:
        self._connection = psycopg.connect(self.url, autocommit=True)
        self._connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        self._connection.execute(f"CREATE TABLE plain (id text, content text, embedding vector({DIMENSIONS}))")
        vectors = self.embed(list(corpus.values()))
        with self._connection.cursor().copy("COPY plain FROM STDIN") as copy:
            for (name, text), vector in zip(corpus.items(), vectors, strict=True):
                copy.write_row((name, text, json.dumps(vector)))
        self._connection.execute("CREATE INDEX ON plain USING hnsw (embedding vector_cosine_ops)")

    def search(self, question: str) -> list[str]:
        statement = "SELECT id FROM plain ORDER BY embedding <=> %s::vector LIMIT %s"
        (vector,) = self.embed([question])
        return [name for (name,) in self._connection.execute(statement, (json.dumps(vector), DEPTH))]

    def measure_disk_bytes(self) -> int:
        found = self._connection.execute("SELECT pg_total_relation_size('plain')").fetchone()
        assert found is not None
        return int(found[0])


class LangChain(PgVector):
    """PGVector and BM25Retriever in an EnsembleRetriever. BM25 lives in memory, so disk is that of Postgres."""

    modules = ("langchain_classic.retrievers", "langchain_community.retrievers", "langchain_postgres")

    def ingest(self, corpus: Mapping[str, str]) -> None:
        from langchain_classic.retrievers import EnsembleRetriever
        from langchain_community.retrievers import BM25Retriever
        from langchain_core.documents import Document
        from langchain_core.embeddings import Embeddings
        from langchain_postgres import PGVector

        peer = self

        class PeerEmbeddings(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return peer.embed(texts)

            def embed_query(self, text: str) -> list[float]:
                return peer.embed([text])[0]

        address = self.url.replace("postgresql://", "postgresql+psycopg://")
        documents = [Document(page_content=text, metadata={"id": name}) for name, text in corpus.items()]
        store = PGVector(embeddings=PeerEmbeddings(), collection_name=COLLECTION, connection=address)
        store.add_documents(documents)
        words = BM25Retriever.from_documents(documents, k=DEPTH)
        vectors = store.as_retriever(search_kwargs={"k": DEPTH})
        self._retriever = EnsembleRetriever(retrievers=[words, vectors], weights=[0.5, 0.5])
        self._connection = psycopg.connect(self.url, autocommit=True)

    def search(self, question: str) -> list[str]:
        return [document.metadata["id"] for document in self._retriever.invoke(question)][:DEPTH]

    def measure_disk_bytes(self) -> int:
        statement = "SELECT pg_total_relation_size('langchain_pg_embedding')"
        found = self._connection.execute(statement).fetchone()
        assert found is not None
        return int(found[0])


class EngramPeer(Peer):
    """The service with its defaults, over HTTP."""

    def __init__(self, service: Service, folder: Path, encoder: Encoder, strategy: str) -> None:
        super().__init__("Engram" if strategy == "graph" else f"Engram {strategy}", "engram", folder, encoder)
        self._strategy = strategy
        self.shares_collection = strategy != "graph"
        self._service = service
        self._http = httpx.Client(base_url=service.url, timeout=3_600.0, trust_env=False)

    def ingest(self, corpus: Mapping[str, str]) -> None:
        if self.shares_collection:
            return
        lines = "".join(json.dumps({"id": name, **TITLED[name]}) + "\n" for name in corpus)
        headers = {"content-type": "application/x-ndjson"}
        sent = self._http.post("/passages", params={"collection": COLLECTION}, content=lines, headers=headers)
        address = sent.raise_for_status().json()["status_url"]
        while (job := self._http.get(address).raise_for_status().json())["status"] in ("queued", "running"):
            time.sleep(0.2)
        assert job["status"] == "succeeded", job

    def ask(self, question: str) -> dict[str, Any]:
        """Ask, and return the whole answer."""
        body = {"collection": COLLECTION, "query": question, "top_k": DEPTH, "arm": {"strategy": self._strategy}}
        answer: dict[str, Any] = self._http.post("/query", json=body).raise_for_status().json()
        return answer

    def search(self, question: str) -> list[str]:
        return [hit["passage_id"] for hit in self.ask(question)["passages"]]

    def judge(self, question: str, relevant: frozenset[str]) -> None:
        """Say which passages helped; returns when it is learned."""
        body = {
            "collection": COLLECTION,
            "query_id": self.ask(question)["query_id"],
            "supporting_passages": sorted(relevant),
            "complete": True,
            "wait": True,
        }
        key = str(uuid5(NAMESPACE_URL, question))
        self._http.post("/feedback", json=body, headers={"idempotency-key": key}).raise_for_status()

    def measure_disk_bytes(self) -> int:
        with psycopg.connect(self._service.postgres.url.replace("+psycopg", "")) as connection:
            found = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert found is not None
        return int(found[0])


TITLED: dict[str, dict[str, str]] = {}
"""Passage id -> title and text, as Engram takes them."""


def load_task(folder: Path, limit: int | None) -> Task:
    """Read a folder of the BEIR layout; ``limit``: passages at most, those that questions need first."""
    relevant = labels(folder)
    questions = {
        row["_id"]: row["text"] for row in read_jsonl(dataset_file(folder, "queries")) if row["_id"] in relevant
    }
    needed = {name for question in questions for name in relevant[question]}
    rows = sorted(passages(folder), key=lambda row: row["id"] not in needed)[:limit]
    for row in rows:
        TITLED[row["id"]] = {"text": row["text"]} | ({"title": row["title"]} if row["title"] else {})
    corpus = {row["id"]: f"{row['title']}\n{row['text']}" if row["title"] else row["text"] for row in rows}
    return Task(corpus, questions, {question: frozenset(relevant[question]) for question in questions})


@dataclass
class Answered:
    """What one system found: recall and nDCG of each question, and the seconds that it took."""

    recalls: list[float] = field(default_factory=list)
    gains: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, found: Sequence[str], relevant: frozenset[str], seconds: float) -> None:
        """Add one answer."""
        recall, gain = compute_recall_and_ndcg(found, relevant)
        self.recalls.append(recall)
        self.gains.append(gain)
        self.seconds.append(seconds)


@dataclass(frozen=True)
class Ingested:
    """What it cost to take the corpus, and the load of the machine over that minute."""

    seconds: float
    disk_bytes: int
    load: float


def ingest(peer: Peer, task: Task) -> Ingested:
    """Have a peer take the corpus."""
    for module in peer.modules:
        import_module(module)
    began = time.perf_counter()
    peer.ingest(task.corpus)
    seconds = time.perf_counter() - began + (0.0 if isinstance(peer, EngramPeer) else peer.encoder.corpus_seconds)
    taken = Ingested(seconds, peer.measure_disk_bytes(), os.getloadavg()[0])
    print(f"{peer.name}: {seconds:.0f} s, {taken.disk_bytes / 1e6:.0f} MB, load {taken.load:.1f}", file=sys.stderr)
    return taken


def ask_in_turns(peers: Sequence[Peer], task: Task, names: Sequence[str]) -> list[Answered]:
    """Ask each question of all peers, beginning with another peer each time."""
    for peer in peers:
        peer.search(task.questions[names[0]])  # what is loaded at the first query is no query's time
    answered = [Answered() for _ in peers]
    for turn, name in enumerate(names):
        for at in range(len(peers)):
            which = (turn + at) % len(peers)
            began = time.perf_counter()
            found = peers[which].search(task.questions[name])
            answered[which].add(found, task.relevant[name], time.perf_counter() - began)
    return answered


def learn(peer: EngramPeer, task: Task, names: Sequence[str]) -> str:
    """Judge the first questions; recall of these and of the others, before and after."""
    judged, others = names[:VERDICTS], names[VERDICTS:]
    groups = [group for group in (judged, others) if group]
    before = [ask_in_turns([peer], task, group)[0] for group in groups]
    for name in judged:
        peer.judge(task.questions[name], task.relevant[name])
    after = [ask_in_turns([peer], task, group)[0] for group in groups]
    return " / ".join(
        f"{np.mean(one.recalls):.3f} → {np.mean(other.recalls):.3f}"
        for one, other in zip(before, after, strict=True)
    )


def write_row(peer: Peer, taken: Ingested, answered: Answered, learned: str) -> str:
    """The row of a peer."""
    spent = "as below" if peer.shares_collection else f"{taken.seconds:.0f} s at load {taken.load:.0f}"
    disk = "as below" if peer.shares_collection else f"{taken.disk_bytes / 1e6:.0f} MB"
    milliseconds = 1e3 * float(np.median(answered.seconds))
    quality = f"{np.mean(answered.recalls):.3f} | {np.mean(answered.gains):.3f}"
    return f"| {peer.name} | {quality} | {milliseconds:.1f} ms | {spent} | {disk} | {learned} |\n"


def measure(peers: Sequence[Peer], task: Task, names: Sequence[str]) -> str:
    """The table, with how busy the machine was."""
    taken = [ingest(peer, task) for peer in sorted(peers, key=lambda peer: peer.shares_collection)]
    ingested = dict(zip(sorted(peers, key=lambda peer: peer.shares_collection), taken, strict=True))
    answers = ask_in_turns(peers, task, names)
    for peer, answered in zip(peers, answers, strict=True):
        print(write_row(peer, ingested[peer], answered, "not yet"), end="", file=sys.stderr)
    rows = ""
    for peer, answered in zip(peers, answers, strict=True):
        learned = "not possible"
        if isinstance(peer, EngramPeer):
            learned = "not measured" if peer.shares_collection else learn(peer, task, names)
        rows += write_row(peer, ingested[peer], answered, learned)
    loads = sorted(one.load for one in taken)
    return (
        f"{HEADER}|---|---|---|---|---|---|---|\n{rows}\nThe machine's load over a minute was {loads[0]:.1f} to "
        f"{loads[-1]:.1f} as the corpora were taken, and {os.getloadavg()[0]:.1f} at the end. It was shared with "
        "other work: all times are longer than on a quiet machine. Each question went to all systems in turn, so "
        "times of queries compare with each other. Times of ingest compare roughly.\n"
    )


def list_peers(service: Service, folder: Path, encoder: Encoder, chosen: Sequence[str]) -> Iterator[Peer]:
    """Make the peers, one after the other, those by name if any are named."""
    makers: dict[str, Callable[[], Peer]] = {
        "lancedb": lambda: LanceDB("LanceDB hybrid", "lancedb", folder, encoder),
        "qdrant": lambda: Qdrant("Qdrant local hybrid", "qdrant-client", folder, encoder),
        "chroma": lambda: Chroma("Chroma", "chromadb", folder, encoder),
        "txtai": lambda: Txtai("txtai hybrid", "txtai", folder, encoder),
        "langchain": lambda: LangChain("LangChain PGVector + BM25", "langchain-postgres", folder, encoder),
        "pgvector": lambda: PgVector("Postgres, HNSW", "psycopg", folder, encoder),
        "engram-hybrid": lambda: EngramPeer(service, folder, encoder, "hybrid"),
        "engram": lambda: EngramPeer(service, folder, encoder, "graph"),
    }
    for name in chosen or makers:
        yield makers[name]()


def describe(task: Task, names: Sequence[str], folder: Path, priors: RankingPriors) -> str:
    """What was measured, and where."""
    fitted = priors.encyclopedic.fitted
    is_seen = any(f"{name}-".startswith(f"{folder.name}-") for name in fitted)
    seen = " These questions are among them, so Engram's figures are too good." if is_seen else ""
    return (
        f"Engram's ranking weights were fitted to {', '.join(fitted)}.{seen}\n\n"
        f"{folder.name}: {len(task.corpus):,} of its passages, those that questions need among them; {len(names)} "
        f"questions one after the other; {os.cpu_count()} processors ({platform.machine()}), Python "
        f"{platform.python_version()}.\n\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, help="Passages at most, those that questions need first.")
    parser.add_argument("--questions", type=int, help="Questions at most.")
    parser.add_argument("--peer", action="append", default=[], help="Measure this one only; repeatable.")
    parser.add_argument("--python", default=".venv/bin/python", help="Engram's: the peers ask for other releases.")
    parser.add_argument("--out", type=Path, help="Write the table here too.")
    arguments = parser.parse_args()
    task = load_task(arguments.dataset, arguments.passages)
    names = [name for name in task.questions if task.relevant[name] <= task.corpus.keys()][: arguments.questions]
    if not names:
        parser.error("no question has all its passages among these; allow more --passages")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        service = stack.enter_context(Service(folder / "engram-service", workers=1, python=arguments.python))
        url = service.postgres.url.replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE peers")
            PgVector.url = url.replace("/engram?", "/peers?")
        embedder = load_embedder("all-MiniLM-L6-v2", "onnx", folder, 0, 32, service.settings.embedding_precision)
        encoder = Encoder(embedder, list(task.corpus.values()))
        print(f"Embedding the passages: {encoder.corpus_seconds:.0f} s", file=sys.stderr)
        peers = list(list_peers(service, folder, encoder, arguments.peer))
        priors = load_priors(service.settings.ranking_prior)
        text = describe(task, names, arguments.dataset, priors) + measure(peers, task, names)
    print(text)
    if arguments.out:
        arguments.out.write_text(f"{INTRODUCTION}{text}", encoding="utf-8")


INTRODUCTION = f"""# Engram beside what you would use instead

Every system was installed from the package index and used as its documentation says, with its defaults. All use
Engram's encoder, all-MiniLM-L6-v2, and got the same passages. Ingest and queries include embedding. Engram embeds
sentences and names, the others whole passages. Engram answered over HTTP, the others in the measuring process or in
a Postgres of the machine. The last column is after one verdict on each of the first {VERDICTS} questions. Engram's
disk is its whole database, with an index of entities and a log of queries; LangChain's BM25 is in memory.

`benchmarks/peers.py` made this page and has its commands:

```sh
engram fit hotpotqa musique timeqa_human --limit 40 --out weights.json
ENGRAM_RANKING_PRIOR=weights.json build/peers/bin/python benchmarks/peers.py DATA/2wiki --passages 1500 \\
    --questions 200 --out evaluation/measurements/peers.md
```

"""


if __name__ == "__main__":
    main()
