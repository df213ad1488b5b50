"""Measure how similar an encoder makes questions of different things.

``ENGRAM_QUESTION_MEMORY_THRESHOLD`` has to lie above that similarity.

    export ENGRAM_EMBEDDING_MODEL=...       # the default one without
    python benchmarks/nearness.py DATASET_DIR [--gates 0.6 0.7 0.75 0.8]

Prints the share of pairs of the data set's questions whose cosine is above each gate and, where it has paraphrases,
the share of these that are that near to their question. A gate fits if it lets few of the former pass and most of
the latter.
"""

import argparse
from pathlib import Path

import numpy as np

import common
from engram.composition.models import Models
from engram.config.settings import Settings


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("dataset", type=Path)
    arguments.add_argument("--gates", type=float, nargs="+", default=[0.6, 0.7, 0.75, 0.8])
    given = arguments.parse_args()
    encoder = Models(Settings(log_level="ERROR")).embedder
    rows = common.read_jsonl(common.dataset_file(given.dataset, "queries"))
    vectors = encoder.embed([row["text"] for row in rows])
    pairs = (vectors @ vectors.T)[np.triu_indices(len(rows), 1)]
    file = common.dataset_file(given.dataset, "paraphrases")
    own = np.zeros(0)
    if file.exists():
        at = {row["_id"]: place for place, row in enumerate(rows)}
        reworded = [row for row in common.read_jsonl(file) if row["metadata"]["paraphrase_of"] in at]
        asked = vectors[[at[row["metadata"]["paraphrase_of"]] for row in reworded]]
        own = (encoder.embed([row["text"] for row in reworded]) * asked).sum(axis=1)
    print(f"{encoder.model}, {len(rows):,} questions, {len(own):,} paraphrases\n")
    share = [
        (gate, f"{(pairs > gate).mean():.2%}", f"{(own > gate).mean():.0%}" if own.size else "")
        for gate in given.gates
    ]
    common.table(("cosine above", "pairs of questions", "paraphrases and their question"), share)


if __name__ == "__main__":
    main()
