"""A data set in which no passage has a title: what retrieval has left to go by.

python benchmarks/untitled.py DATASET_DIR OUT
engram evaluate OUT --protocol cold
"""

import argparse
import gzip
import json
import shutil
from pathlib import Path

import common


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    corpus = common.dataset_file(given.dataset, "corpus")
    shutil.copytree(given.dataset, given.out, ignore=shutil.ignore_patterns(corpus.name))
    with gzip.open(given.out / "corpus.jsonl.gz", "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row | {"title": ""}) + "\n" for row in common.read_jsonl(corpus))


if __name__ == "__main__":
    main()
