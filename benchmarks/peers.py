"""Engram beside what you would use instead: quality, time and disk, with one encoder on one corpus in one run.

    python -m venv build/peers
    ls -d $PWD/.venv/lib/*/site-packages > "$(echo build/peers/lib/*/site-packages)/engram.pth"
    build/peers/bin/pip install lancedb qdrant-client chromadb txtai langchain-postgres langchain-community \
        langchain-classic rank-bm25
    build/peers/bin/python benchmarks/peers.py DATASET_DIR --out evaluation/measurements/peers.md

The second line lets the environment of the peers use Engram and its encoder. Each peer is used as its documentation
says, with its defaults, and gets the title and text of a passage. All embed with the encoder that Engram has by
default; ingest and queries include it. Engram answers over HTTP, plain pgvector and LangChain ask a Postgres of
this machine, and the others work in this process.
"""

import argparse
import json
import math
import os
import platform
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psycopg
import Stemmer
from bm25s import tokenize

from common import dataset_file, passages, read_jsonl
from engram.providers.embedder import Embedder, load_embedder
from running import Service

DIMENSIONS, DEPTH, RECALLED = 384, 10, 5
VERDICTS = 100
COLLECTION = "peers"
HEADER = "| | recall@5 | nDCG@10 | query, p50 | ingest | disk | recall@5 after verdicts: judged / others |\n"


@dataclass(frozen=True)
class Task:
    """A corpus with its questions: passage id -> text, question id -> text, question id -> ids of its passages."""

    corpus: Mapping[str, str]
    questions: Mapping[str, str]
    relevant: Mapping[str, frozenset[str]]


class Peer(ABC):
    """A system that finds passages."""

    def __init__(self, name: str, packages: str, folder: Path, encoder: Embedder) -> None:
        self.name = f"{name} ({', '.join(f'{one} {version(one)}' for one in packages.split())})"
        self.folder = folder / name.replace(" ", "-")
        self.folder.mkdir()
        self.encoder = encoder

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Embed texts, (n, d)."""
        return [vector.tolist() for vector in np.asarray(self.encoder.embed(list(texts)), dtype=np.float32)]

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

    def ingest(self, corpus: Mapping[str, str]) -> None:
        import lancedb

        vectors = self.embed(list(corpus.values()))
        rows = [
            {"id": name, "text": text, "vector": vector}
            for (name, text), vector in zip(corpus.items(), vectors, strict=True)
        ]
        self._table = lancedb.connect(str(self.folder)).create_table(COLLECTION, data=rows)
        self._table.create_fts_index("text")

    def search(self, question: str) -> list[str]:
        (vector,) = self.embed([question])
        found = self._table.search(query_type="hybrid").vector(vector).text(question).limit(DEPTH)
        return [row["id"] for row in found.to_list()]


class Qdrant(Peer):
    """Hybrid search in local mode: dense vectors and sparse ones of BM25, fused by reciprocal ranks.

    Sparse vectors are computed as ``fastembed`` computes those of ``Qdrant/bm25``, which it would download.
    """

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

    def ingest(self, corpus: Mapping[str, str]) -> None:
        from langchain_classic.retrievers import EnsembleRetriever
        from langchain_community.retrievers import BM25Retriever
        from langchain_core.documents import Document
        from langchain_core.embeddings import Embeddings
        from langchain_postgres import PGVector

        peer = self

        class Encoder(Embeddings):
            def embed_documents(self, texts: list[str]) -> list[list[float]]:
                return peer.embed(texts)

            def embed_query(self, text: str) -> list[float]:
                return peer.embed([text])[0]

        address = self.url.replace("postgresql://", "postgresql+psycopg://")
        documents = [Document(page_content=text, metadata={"id": name}) for name, text in corpus.items()]
        store = PGVector(embeddings=Encoder(), collection_name=COLLECTION, connection=address)
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

    def __init__(self, service: Service, folder: Path, encoder: Embedder, strategy: str) -> None:
        super().__init__("Engram" if strategy == "graph" else f"Engram {strategy}", "engram", folder, encoder)
        self._strategy = strategy
        self._service = service
        self._http = httpx.Client(base_url=service.url, timeout=3_600.0, trust_env=False)

    def ingest(self, corpus: Mapping[str, str]) -> None:
        if self._strategy != "graph":
            return  # it is there already
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
        self._http.post("/feedback", json=body, headers={"idempotency-key": question[:200]}).raise_for_status()

    def measure_disk_bytes(self) -> int:
        with psycopg.connect(self._service.postgres.url.replace("+psycopg", "")) as connection:
            found = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        assert found is not None
        return int(found[0])


TITLED: dict[str, dict[str, str]] = {}
"""Passage id -> title and text, as Engram takes them."""


def load_task(folder: Path, limit: int | None) -> Task:
    """Read a folder of the BEIR layout; ``limit``: passages at most, those that questions need first."""
    relevant: dict[str, set[str]] = {}
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines():
        parts = line.split("\t")
        if parts[-1].strip().isdigit() and int(parts[-1]) > 0:
            relevant.setdefault(parts[0], set()).add(parts[-2])
    questions = {
        row["_id"]: row["text"] for row in read_jsonl(dataset_file(folder, "queries")) if row["_id"] in relevant
    }
    needed = {name for question in questions for name in relevant[question]}
    rows = sorted(passages(folder), key=lambda row: row["id"] not in needed)[:limit]
    for row in rows:
        TITLED[row["id"]] = {"text": row["text"]} | ({"title": row["title"]} if row["title"] else {})
    corpus = {row["id"]: f"{row['title']}\n{row['text']}" if row["title"] else row["text"] for row in rows}
    return Task(corpus, questions, {question: frozenset(relevant[question]) for question in questions})


def compute_recall(found: Sequence[str], relevant: frozenset[str]) -> float:
    """Share of the relevant passages among the first five."""
    return len(relevant.intersection(found[:RECALLED])) / len(relevant)


def compute_ndcg(found: Sequence[str], relevant: frozenset[str]) -> float:
    """Discounted gain of the first ten over that of the best order, with gain 1 for each relevant passage."""
    gained = sum(1 / math.log2(rank + 2) for rank, name in enumerate(found[:DEPTH]) if name in relevant)
    return gained / sum(1 / math.log2(rank + 2) for rank in range(min(DEPTH, len(relevant))))


def ask_all(peer: Peer, task: Task, names: Sequence[str]) -> tuple[float, float, float]:
    """Ask questions; mean recall, mean nDCG, and seconds of the median query."""
    recalls, gains, seconds = [], [], []
    peer.search(task.questions[names[0]])  # what is loaded at the first query is no query's time
    for name in names:
        began = time.perf_counter()
        found = peer.search(task.questions[name])
        seconds.append(time.perf_counter() - began)
        recalls.append(compute_recall(found, task.relevant[name]))
        gains.append(compute_ndcg(found, task.relevant[name]))
    return float(np.mean(recalls)), float(np.mean(gains)), float(np.median(seconds))


def measure(peer: Peer, task: Task, names: Sequence[str]) -> str:
    """Have a peer take the corpus and answer all questions; its row of the table."""
    began = time.perf_counter()
    peer.ingest(task.corpus)
    ingest = time.perf_counter() - began
    disk = peer.measure_disk_bytes()
    recall, ndcg, seconds = ask_all(peer, task, names)
    learned = "not possible"
    if isinstance(peer, EngramPeer):
        learned = learn(peer, task, names) if peer.name.startswith("Engram (") else "the same collection"
    spent = f"{ingest:.0f} s" if not peer.name.startswith("Engram hybrid") else "the same collection"
    figures = f"{recall:.3f} | {ndcg:.3f} | {1e3 * seconds:.1f} ms | {spent} | {disk / 1e6:.0f} MB"
    return f"| {peer.name} | {figures} | {learned} |\n"


def learn(peer: EngramPeer, task: Task, names: Sequence[str]) -> str:
    """Judge the first questions; recall of these and of the others, before and after."""
    judged, others = names[:VERDICTS], names[VERDICTS:]
    groups = [group for group in (judged, others) if group]
    before = [ask_all(peer, task, group)[0] for group in groups]
    for name in judged:
        peer.judge(task.questions[name], task.relevant[name])
    after = [ask_all(peer, task, group)[0] for group in groups]
    return " / ".join(f"{one:.3f} -> {other:.3f}" for one, other in zip(before, after, strict=True))


def list_peers(service: Service, folder: Path, encoder: Embedder, chosen: Sequence[str]) -> Iterator[Peer]:
    """Make the peers, one after the other, those by name if any are named."""
    makers: dict[str, Callable[[], Peer]] = {
        "engram": lambda: EngramPeer(service, folder, encoder, "graph"),
        "engram-hybrid": lambda: EngramPeer(service, folder, encoder, "hybrid"),
        "lancedb": lambda: LanceDB("LanceDB hybrid", "lancedb", folder, encoder),
        "qdrant": lambda: Qdrant("Qdrant local hybrid", "qdrant-client", folder, encoder),
        "chroma": lambda: Chroma("Chroma", "chromadb", folder, encoder),
        "txtai": lambda: Txtai("txtai hybrid", "txtai", folder, encoder),
        "langchain": lambda: LangChain("LangChain PGVector + BM25", "langchain-postgres", folder, encoder),
        "pgvector": lambda: PgVector("pgvector", "pgvector", folder, encoder),
    }
    for name in chosen or makers:
        yield makers[name]()


def describe(task: Task, names: Sequence[str], folder: Path) -> str:
    """What was measured, and where."""
    return (
        f"{folder.name}: {len(task.corpus)} passages, {len(names)} questions one after the other, "
        f"{os.cpu_count()} processors ({platform.machine()}), Python {platform.python_version()}. The load of the "
        f"machine over a minute was {os.getloadavg()[0]:.1f} at the end. Above 1 it was shared with other work, so "
        "times are longer than on a quiet machine.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, help="Passages at most, those that questions need first.")
    parser.add_argument("--questions", type=int, help="Questions at most.")
    parser.add_argument("--peer", action="append", default=[], help="Measure this one only; repeatable.")
    parser.add_argument("--out", type=Path, help="Write the table here too.")
    arguments = parser.parse_args()
    task = load_task(arguments.dataset, arguments.passages)
    names = [name for name in task.questions if task.relevant[name] <= task.corpus.keys()][: arguments.questions]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.chmod(0o755)
        service = stack.enter_context(Service(folder / "engram-service", workers=1))
        url = service.postgres.url.replace("+psycopg", "")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE DATABASE peers")
            PgVector.url = url.replace("/engram?", "/peers?")
        encoder = load_embedder("all-MiniLM-L6-v2", "onnx", folder, 0, 32, service.settings.embedding_precision)
        rows = []
        for peer in list_peers(service, folder, encoder, arguments.peer):
            rows.append(measure(peer, task, names))
            print(rows[-1], end="", flush=True)
        text = f"{HEADER}|---|---|---|---|---|---|---|\n{''.join(rows)}\n{describe(task, names, arguments.dataset)}"
    print(text)
    if arguments.out:
        arguments.out.write_text(f"{INTRODUCTION}{text}", encoding="utf-8")


INTRODUCTION = f"""# Engram beside what you would use instead

Every system was installed from the package index and used as its documentation says, with its defaults. All use
Engram's encoder, all-MiniLM-L6-v2, and got the same passages. Ingest and queries include embedding. Engram answered
over HTTP, the others in the measuring process or in a Postgres of the machine. The last column is after one verdict
on each of the first {VERDICTS} questions. Engram's disk is its whole database, with an index of entities and a log
of queries; LangChain's BM25 is in memory. `benchmarks/peers.py` made this page and says how to install the peers.

"""


if __name__ == "__main__":
    main()
