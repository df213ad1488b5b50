"""What does an encoder in eight bits cost in cosine and recall, and what does it save?

    python benchmarks/encoder_precision.py DATASET_DIR [--precision dynamic-int8] [--questions 200]
        [--passages 3000] [--cache-directory DIR]

DATASET_DIR holds corpus.jsonl.gz ({"_id", "title", "text"}), queries.jsonl.gz ({"_id", "text"}) and qrels.tsv
(header, then query-id, corpus-id, score). All gold passages of the questions are in the pool, and others by chance.

- ms: processor time of one text with one thread, the least of several interleaved rounds, and float32's over it
- cosine: of vectors with those of float32, mean and least, of passages, first sentences and questions
- recall@5: of gold passages by exact cosine: by the passage's vector, and by that plus its best sentence's

Figures: evaluation/measurements/speed.md.
"""

import argparse
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common import labels, read_jsonl
from engram.providers.embedder import Embedder, choose_question_embed, load_embedder
from engram.providers.embedder.model_folder import DEFAULT_MODEL
from engram.providers.language.sentence_splitter import split_sentences

Vectors = NDArray[np.float32]
ROUNDS = 4
TIMED_TEXTS = 48
BEST_PASSAGES = 5


def least_times(embedders: Mapping[str, Embedder], texts: Sequence[str], *, singly: bool) -> dict[str, float]:
    """Processor ms of one text by precision, the least of interleaved rounds."""
    least = dict.fromkeys(embedders, float("inf"))
    calls = [[text] for text in texts] if singly else [list(texts)]
    for _ in range(ROUNDS):
        for name, embedder in embedders.items():
            began = time.process_time()
            for call in calls:
                embedder.embed(call)
            least[name] = min(least[name], (time.process_time() - began) * 1000 / len(texts))
    return least


def recall(scores: Vectors, gold: Sequence[Sequence[int]]) -> float:
    """Mean share of each question's gold among its first five, of scores (questions, passages)."""
    first = np.argsort(-scores, axis=1, kind="stable")[:, :BEST_PASSAGES]
    return float(np.mean([len(set(row) & set(right)) / len(right) for row, right in zip(first, gold, strict=True)]))


def best_sentences(questions: Vectors, sentences: Vectors, owners: NDArray[np.int64], passages: int) -> Vectors:
    """Largest cosine of each passage's sentences with each question, (questions, passages); 0 without sentences."""
    best = np.full((passages, len(questions)), -1, dtype=np.float32)
    np.maximum.at(best, owners, sentences @ questions.T)
    best[best == -1] = 0
    return best.T


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--precision", choices=("int8", "dynamic-int8"), default="dynamic-int8")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--passages", type=int, default=3000)
    parser.add_argument("--cache-directory", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()

    chance = random.Random(7)
    corpus = {passage["_id"]: passage for passage in read_jsonl(arguments.dataset / "corpus.jsonl.gz")}
    relevant = labels(arguments.dataset)
    asked = [query for query in read_jsonl(arguments.dataset / "queries.jsonl.gz") if query["_id"] in relevant]
    asked = chance.sample(asked, min(arguments.questions, len(asked)))
    pool = list(dict.fromkeys(passage for query in asked for passage in relevant[query["_id"]]))
    others = sorted(corpus.keys() - set(pool))
    pool += chance.sample(others, min(max(arguments.passages - len(pool), 0), len(others)))
    places = {name: place for place, name in enumerate(pool)}

    questions = [query["text"] for query in asked]
    titles = {name: corpus[name].get("title") for name in pool}
    passages = [
        f"{title}. {corpus[name]['text']}" if title else corpus[name]["text"] for name, title in titles.items()
    ]
    split = [
        corpus[name].get("metadata", {}).get("sentences") or split_sentences(corpus[name]["text"]) for name in pool
    ]
    sentences = [sentence for one in split for sentence in one]
    owners = np.repeat(np.arange(len(pool)), [len(one) for one in split])

    embedders = {
        precision: load_embedder(DEFAULT_MODEL, "onnx", arguments.cache_directory, 1, 64, precision)
        for precision in ("float32", arguments.precision)
    }
    samples = {"passage": passages, "sentence": [one[0] for one in split if one], "question": questions}
    for kind, texts in samples.items():
        times = least_times(embedders, texts[:TIMED_TEXTS], singly=kind == "question")
        ratio = times["float32"] / times[arguments.precision]
        print(f"{kind}: {times['float32']:.2f} ms, {times[arguments.precision]:.2f} ms, {ratio:.2f} times as fast")

    vectors = {
        precision: [embedder.embed(texts) for texts in (passages, sentences, questions)]
        for precision, embedder in embedders.items()
    }
    for kind, one, other in zip(samples, *vectors.values(), strict=True):
        cosines = (one * other).sum(axis=1)
        print(f"{kind}: {len(cosines)} texts, cosine mean {cosines.mean():.5f}, least {cosines.min():.5f}")
    gold = [[places[name] for name in relevant[query["_id"]]] for query in asked]
    for precision, (of_passages, of_sentences, _) in vectors.items():
        of_questions = choose_question_embed(embedders[precision])(questions)  # as a collection's are made
        by_passage = of_questions @ of_passages.T
        by_both = by_passage + best_sentences(of_questions, of_sentences, owners, len(pool))
        print(
            f"{precision}: recall@{BEST_PASSAGES} {recall(by_passage, gold):.4f} by passage, "
            f"{recall(by_both, gold):.4f} by passage and sentence ({len(asked)} questions, {len(pool)} passages)"
        )


if __name__ == "__main__":
    main()
