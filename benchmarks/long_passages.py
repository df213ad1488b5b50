"""Which key should a passage longer than the encoder's window have?

    python benchmarks/long_passages.py DATASET_DIR [--sentences] [--cache-directory DIR]

DATASET_DIR holds corpus.jsonl.gz ({"_id", "title", "text"}), queries.jsonl.gz ({"_id", "text"}) and qrels.tsv
(header, then query-id, corpus-id, score). Compared, all by exact cosine search:

- truncated: the first window alone, what sentence-transformers does
- mean: the windows' mean weighted by tokens, what `Embedder.embed` returns
- max: every window is a key of its own, a passage scores as its best one
- sentences (with --sentences): the mean of the passage's sentence embeddings, at unit length

Recall@10 and nDCG@10 of the queries whose gold passage is long, all-MiniLM-L6-v2: scifact (428 queries) truncated
0.794/0.676, mean 0.816/0.690, max 0.826/0.700, sentences 0.799/0.668; 2wiki_hipporag (136) truncated 0.627/0.626,
mean 0.645/0.621, max 0.653/0.642. The mean is the default: one key per passage, most of what max gains in recall.
"""

import argparse
import gzip
import json
import re
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.providers.embedder.model_folder import DEFAULT_MODEL, open_model
from engram.providers.embedder.onnx_encoder import onnx_encoder
from engram.providers.embedder.token_windows import WindowedEmbedder, combine_windows

SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


def read_jsonl(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def read_qrels(path: Path) -> dict[str, set[str]]:
    relevant: dict[str, set[str]] = defaultdict(set)
    for line in path.read_text(encoding="utf-8").splitlines()[1:]:
        query, passage, score = line.split("\t")
        if float(score) > 0:
            relevant[query].add(passage)
    return relevant


def recall_at(ranked: Sequence[int], gold: set[int], depth: int) -> float:
    return len(gold.intersection(ranked[:depth])) / len(gold)


def ndcg_at(ranked: Sequence[int], gold: set[int], depth: int) -> float:
    """Binary gains: sum of 1 / log2(rank + 1) over the found, divided by that of a perfect ranking."""
    discounts = 1 / np.log2(np.arange(2, depth + 2))
    found = [index in gold for index in ranked[:depth]]
    return float(discounts[: len(found)] @ found / discounts[: len(gold)].sum())


def unit_means(vectors: NDArray[np.float32], owners: NDArray[np.int64], passages: int) -> NDArray[np.float32]:
    return combine_windows(vectors, np.ones(len(owners), dtype=np.int64), owners, passages)


def evaluate(name: str, scores: NDArray[np.float32], gold: list[set[int]], long: NDArray[np.bool_]) -> None:
    """Print one row: recall@5, recall@10 and nDCG@10 over all queries, then over those with long gold.

    ``scores`` is (queries, passages); ``long`` (passages,) tells which exceed the window.
    """
    ranked = np.argsort(-scores, axis=1, kind="stable")[:, :10].tolist()
    rows = np.array(
        [
            [recall_at(found, wanted, 5), recall_at(found, wanted, 10), ndcg_at(found, wanted, 10)]
            for found, wanted in zip(ranked, gold, strict=True)
        ]
    )
    with_long_gold = np.array([bool(long[list(wanted)].any()) for wanted in gold])
    groups = [rows, rows[with_long_gold], rows[~with_long_gold]]
    cells = [f"{value:.4f}" for group in groups if len(group) for value in group.mean(axis=0)]
    print(f"{name:10}", *cells)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare keys for passages longer than the encoder's window.")
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--sentences", action="store_true", help="Also embed every sentence (slow).")
    parser.add_argument("--cache-directory", type=Path, default=Path(".engram"))
    parser.add_argument("--threads", type=int, default=0)
    arguments = parser.parse_args()

    folder = open_model(DEFAULT_MODEL)
    encoder = onnx_encoder(folder, arguments.cache_directory, arguments.threads)
    embedder = WindowedEmbedder(folder, encoder, batch_size=64)
    corpus = read_jsonl(arguments.dataset / "corpus.jsonl.gz")
    relevant = read_qrels(arguments.dataset / "qrels.tsv")
    position = {passage["_id"]: index for index, passage in enumerate(corpus)}
    queries = [query for query in read_jsonl(arguments.dataset / "queries.jsonl.gz") if query["_id"] in relevant]
    gold = [{position[passage] for passage in relevant[query["_id"]]} for query in queries]

    texts = [f"{passage['title']}. {passage['text']}" for passage in corpus]
    vectors, token_counts, owners = embedder.embed_windows(texts)
    windows_of = np.bincount(owners, minlength=len(texts))
    first = np.concatenate([[0], np.cumsum(windows_of)[:-1]])
    long = windows_of > 1
    print(f"{len(corpus)} passages, {long.sum()} longer than {folder.window} tokens, {len(owners)} windows")
    print(f"{len(queries)} queries, {sum(bool(long[list(wanted)].any()) for wanted in gold)} with long gold")
    print("recall@5, recall@10, nDCG@10: all queries | some gold passage is long | none is")

    asked = embedder.embed([query["text"] for query in queries])
    window_scores = asked @ vectors.T
    evaluate("truncated", window_scores[:, first], gold, long)
    evaluate("mean", asked @ combine_windows(vectors, token_counts, owners, len(texts)).T, gold, long)
    evaluate("max", np.maximum.reduceat(window_scores, first, axis=1), gold, long)
    if arguments.sentences:
        sentences = [(index, part) for index, text in enumerate(texts) for part in SENTENCE_END.split(text)]
        sentence_vectors = embedder.embed([part for _, part in sentences])
        sentence_owners = np.array([index for index, _ in sentences], dtype=np.int64)
        evaluate("sentences", asked @ unit_means(sentence_vectors, sentence_owners, len(texts)).T, gold, long)


if __name__ == "__main__":
    main()
