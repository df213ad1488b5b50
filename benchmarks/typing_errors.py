"""Writes a data set whose questions have a typing error each: what `engram evaluate` loses by them.

python benchmarks/typing_errors.py DATASET OUT [--seed 1]
"""

import argparse
import gzip
import json
import random
import shutil
from pathlib import Path

from engram.providers.language.lexical_terms import find_spaced_words
from engram.providers.language.name_rules import load_function_words
from engram_evaluation.dataset_files import json_lines, require_file

LEAST_LETTERS = 4


def mistype(question: str, seed: int) -> str:
    """Return a question with a letter of a content word replaced, left out, added or exchanged.

    A question without a word of ``LEAST_LETTERS`` that is no English function word stays as it is.
    """
    rng = random.Random(f"{seed} {question}")
    words = [
        (start, word)
        for start, word in find_spaced_words(question)
        if len(word) >= LEAST_LETTERS and word.isalpha() and word.casefold() not in load_function_words("en")
    ]
    if not words:
        return question
    start, word = rng.choice(words)
    at, letter = (
        rng.randrange(len(word) - 1),
        rng.choice(sorted({one for one in question.casefold() if one.isalpha()})),
    )
    endings = (
        letter + word[at + 1 :],
        word[at + 1 :],
        letter + word[at:],
        word[at + 1] + word[at] + word[at + 2 :],
    )
    return question[:start] + word[:at] + rng.choice(endings) + question[start + len(word) :]


def main() -> None:
    """Copy a data set, and mistype its questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    queries = require_file(given.dataset, "queries.jsonl")
    shutil.copytree(given.dataset, given.out, ignore=shutil.ignore_patterns(queries.name))
    with gzip.open(given.out / "queries.jsonl.gz", "wt", encoding="utf-8") as lines:
        for _, query in json_lines(queries):
            lines.write(json.dumps(query | {"text": mistype(query["text"], given.seed)}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
