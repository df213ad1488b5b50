"""What do copies in a corpus cost, and what does collapsing them give back?

    python benchmarks/duplicates.py DATASET_DIR [DATASET_DIR ...] [--questions N] [--pairs N] [--top-k 10]

Each DATASET_DIR is a BEIR folder. Its corpus is ingested twice: as it is, and with a copy of every passage. The
copies differ in turn in nothing, in whitespace, in punctuation, and by a source line at their end. All questions
with labels are asked without memory of the plain corpus with and without collapsing, and of the doubled one with
and without it. Either copy of a relevant passage counts, and both together count once.

``--pairs`` prints so many of the pairs that were collapsed in the plain corpus, to be read by eye: each of them
whose texts differ in a fact is a false collapse. The collections stay in the data directory, so a second run asks
only.
"""

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
from ir_measures import R, nDCG

from chunking import CachingEncoder
from common import application, dataset_file, fill, labels, passages, read_jsonl, table
from engram.composition.container import Application
from engram.services.question.query import Query

COPY = "#copy"
"""End of the id of a copy."""
WAYS = (("plain", False), ("plain", True), ("doubled", False), ("doubled", True))
"""Which corpus is asked, and whether duplicates are collapsed."""


@dataclass
class Figures:
    """What one way of asking came to."""

    recall: float = 0.0
    ndcg: float = 0.0
    distinct: float = 0.0
    collapsed: int = 0
    milliseconds: list[float] = field(default_factory=list)
    pairs: dict[tuple[str, str], None] = field(default_factory=dict)


def copy_passage(number: int, passage: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of a passage; ``number`` decides in what it differs."""
    text: str = passage["text"]
    match number % 4:
        case 1:
            text = "\n".join(text.split())
        case 2:
            text = text.replace(". ", " . ").replace(" - ", " – ").replace('"', "'")
        case 3:
            text = f"{text.rstrip()}\n\nRetrieved from https://mirror.example.org"
    return {**passage, "id": passage["id"] + COPY, "text": text}


def measure_collection(
    app: Application,
    name: str,
    questions: Sequence[Mapping[str, Any]],
    gold: Mapping[str, Mapping[str, int]],
    top_k: int,
    *,
    collapse: bool,
) -> Figures:
    """Ask all questions of a collection."""
    figures, run, distinct = Figures(), {}, []
    for question in questions:
        text, scope = question["text"], app.auth.access.scope(name)
        query = Query(text=text, scope=scope, top_k=top_k, memory="off", collapse_duplicates=collapse)
        began = time.perf_counter()
        answer = app.answers.question.answer(query)
        figures.milliseconds.append((time.perf_counter() - began) * 1000)
        for hit in answer.passages:
            for duplicate in hit.duplicates:
                figures.collapsed += 1
                figures.pairs[hit.passage_id, duplicate.passage_id] = None
        ranked = [hit.passage_id.removesuffix(COPY) for hit in answer.passages]
        distinct.append(len(set(ranked)))
        run[question["_id"]] = {passage: -float(at) for at, passage in reversed(list(enumerate(ranked)))}
    scores = ir_measures.calc_aggregate([R @ 5, nDCG @ 10], gold, places(run))
    figures.recall, figures.ndcg = scores[R @ 5], scores[nDCG @ 10]
    figures.distinct = float(np.mean(distinct))
    return figures


def places(run: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """The rankings with a copy's place left empty: it takes room and finds nothing."""
    padded: dict[str, dict[str, float]] = {}
    for question, ranked in run.items():
        held = {-int(score): passage for passage, score in ranked.items()}
        last = max(held, default=-1)
        padded[question] = {held.get(at, f"copy at {at}"): -float(at) for at in range(last + 1)}
    return padded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, nargs="+")
    parser.add_argument("--questions", type=int)
    parser.add_argument("--pairs", type=int, default=0)
    parser.add_argument("--top-k", type=int, default=10)
    given = parser.parse_args()
    rows: list[Sequence[object]] = []
    with application(embedder=CachingEncoder) as (app, _):
        for folder in given.datasets:
            gold = labels(folder)
            asked = [row for row in read_jsonl(dataset_file(folder, "queries")) if row["_id"] in gold]
            asked = asked[: given.questions]
            gold = {row["_id"]: gold[row["_id"]] for row in asked}
            plain = passages(folder)
            copies = [copy_passage(number, passage) for number, passage in enumerate(plain)]
            names = {kind: f"duplicates-{folder.resolve().name}-{kind}" for kind in ("plain", "doubled")}
            fill(app, names["plain"], plain)
            fill(app, names["doubled"], [*plain, *copies])
            for kind, collapse in WAYS:
                figures = measure_collection(app, names[kind], asked, gold, given.top_k, collapse=collapse)
                row = [folder.resolve().name, len(asked), kind, "on" if collapse else "off"]
                row += [f"{figures.recall:.3f}", f"{figures.ndcg:.3f}", f"{figures.distinct:.1f}"]
                row += [figures.collapsed, f"{statistics.median(figures.milliseconds):.1f}"]
                rows.append(row)
                print(*row, flush=True)
                if kind == "plain" and collapse and given.pairs:
                    chosen = list(figures.pairs)[: given.pairs]
                    print(f"{len(figures.pairs)} pairs collapsed in the plain corpus")
                    for pair in chosen:
                        print(pair)
    table("data set, questions, corpus, collapsing, recall@5, nDCG@10, distinct of ten, collapsed, p50 ms", rows)


if __name__ == "__main__":
    main()
