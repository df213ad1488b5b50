"""Does asking two collections together find as much as one collection with the passages of both?

    python benchmarks/joint_answers.py DATASET_DIR DATASET_DIR [--questions 80]

Prints recall@5 and nDCG@10 over the first questions of both data sets (BEIR folders), asked cold.
"""

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np

import common
from engram.services.question.query import Query

TOP_K = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", type=Path, nargs=2)
    parser.add_argument("--questions", type=int, default=80)
    given = parser.parse_args()
    bodies = [
        [one | {"id": f"{at} {one['id']}"} for one in common.passages(folder)]
        for at, folder in enumerate(given.datasets)
    ]
    asked: list[tuple[str, set[str]]] = []
    for at, folder in enumerate(given.datasets):
        labels = common.labels(folder)
        known = (row for row in common.read_jsonl(common.dataset_file(folder, "queries")) if row["_id"] in labels)
        for row in islice(known, given.questions):
            asked.append((row["text"], {f"{at} {one}" for one in labels[row["_id"]]}))
    with common.application() as (app, _), ExitStack() as opened:
        names = [opened.enter_context(common.scratch_collection(app)) for _ in range(3)]
        for name, some in zip(names, [*bodies, [*bodies[0], *bodies[1]]], strict=True):
            common.fill(app, name, some)

        def rank(question: str, collections: Sequence[str]) -> list[str]:
            scopes = map(app.auth.access.scope, collections)
            queries = [Query(text=question, scope=scope, top_k=TOP_K, memory="off") for scope in scopes]
            return [passage.passage_id for _, passage in app.answers.joint.serve(queries).passages]

        rows = []
        for way, collections in (("one collection", names[2:]), ("two collections", names[:2])):
            found = [common.compute_recall_and_ndcg(rank(text, collections), relevant) for text, relevant in asked]
            rows.append([way, *np.mean(found, axis=0).tolist()])
        common.table("asked, recall@5, nDCG@10", rows)


if __name__ == "__main__":
    main()
