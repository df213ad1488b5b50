"""A cut of a data set on which a protocol is quick: the questions with expansions, and not too many passages.

    python benchmarks/cut.py DATASET_DIR OUT [--expanded 60] [--others 500]
    engram evaluate OUT --protocol expand --retrievers dense,lexical
    python benchmarks/cut.py DATASET_DIR OUT --untitled

With ``--untitled`` nothing is cut off but the titles of all passages. Else it has the passages that are
relevant to the first ``--expanded`` questions with expansions, the first ``--others`` of the others, every
question that is answered by none but these, and those expansions. What is searched in a small corpus is easier
to find: figures of a cut compare with each other alone.
"""

import argparse
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import common


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("dataset", type=Path)
    arguments.add_argument("out", type=Path)
    arguments.add_argument("--expanded", type=int, default=60)
    arguments.add_argument("--others", type=int, default=500)
    arguments.add_argument("--untitled", action="store_true", help="The whole data set without titles.")
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.untitled:
        remove_titles(given.dataset, given.out)
        return
    labels = [line.split("\t") for line in (given.dataset / "qrels.tsv").read_text().splitlines()]
    relevant = {question: set(passages) for question, passages in common.labels(given.dataset).items()}
    lines = {name: common.read_jsonl(common.dataset_file(given.dataset, name)) for name in ("corpus", "queries")}
    expansions = common.read_jsonl(common.dataset_file(given.dataset, "expansions"))
    widened = [one for one in expansions if one["query_id"] in relevant][: given.expanded]
    wanted = set[str]().union(*(relevant[one["query_id"]] for one in widened))
    others = [row["_id"] for row in lines["corpus"] if row["_id"] not in wanted][: given.others]
    held = wanted.union(others)
    passages = [row for row in lines["corpus"] if row["_id"] in held]
    questions = [row for row in lines["queries"] if relevant.get(row["_id"], {""}) <= held]
    for row in questions:
        context = row.get("metadata", {}).get("context_ids", [])
        if context:
            row["metadata"]["context_ids"] = [passage for passage in context if passage in held]
    asked = {row["_id"] for row in questions}
    write(given.out / "corpus.jsonl.gz", passages)
    write(given.out / "queries.jsonl.gz", questions)
    write(given.out / "expansions.jsonl.gz", widened)
    rows = [labels[0], *(row for row in labels[1:] if row[0] in asked and row[1] in held)]
    (given.out / "qrels.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    print(
        f"{given.out}: {len(passages):,} passages, {len(questions):,} questions, {len(widened):,} of them expanded"
    )


def remove_titles(dataset: Path, out: Path) -> None:
    """The data set with no title on any passage."""
    passages = common.read_jsonl(common.dataset_file(dataset, "corpus"))
    write(out / "corpus.jsonl.gz", ({**row, "title": ""} for row in passages))
    write(out / "queries.jsonl.gz", common.read_jsonl(common.dataset_file(dataset, "queries")))
    (out / "qrels.tsv").write_text((dataset / "qrels.tsv").read_text())
    print(f"{out}: {len(passages):,} passages without titles")


def write(path: Path, rows: Iterable[dict[str, Any]]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
