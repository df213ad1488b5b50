"""What do questions gain from an encoder that verdicts tuned, and what do held-out verdicts say of it beforehand?

    python benchmarks/tuning.py DATASET_DIR:VERDICTS[:WRONG[:HOSTILE]] ... [--model NAME] [--cache DIR] [--seed 0]

Each DATASET_DIR is a BEIR folder. Questions are shuffled; at most 400, a third of all, are for the test, and the
next VERDICTS ones are judged by ten judges. WRONG is the share of verdicts that support a random passage instead.
HOSTILE further questions are judged by one more judge, who always supports one of 50 passages. An adapter is
learned and tried in one process; probes are the test questions. Rankings are by cosine alone.

- held out: mean gain in nDCG@10 of held-out judged questions, with its standard error; z of others
- recalled held out: gain in the share of questions whose evidence their nearest judged questions vote for
- others, sharing: recall@5 / nDCG@10 of test questions that share no passage, or share one, with a judged question
- s, MB: processor time of learning and trying, and most memory of the process so far

``--cache`` keeps vectors of passages. Figures: evaluation/measurements/tuning.md.
"""

import argparse
import random
import resource
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from common import dataset_file, labels, read_jsonl, table
from engram.providers.embedder import Embedder, load_embedder
from engram.providers.embedder.model_folder import DEFAULT_MODEL
from engram.providers.embedder.prefixes import PrefixedEmbedder, find_known_prefixes
from engram.providers.embedder.question_tuning import choose_question_tuning
from engram.wings.tuning.core.acceptance import rank_first, rank_quality, try_tuning
from engram.wings.tuning.core.bert_gradients import BertWeights
from engram.wings.tuning.core.learn_adapter import DEFAULT_OPTIONS, TuningSamples

TEST_QUESTIONS = 400
DEPTH = 5


def read_questions(folder: Path, rows: dict[str, int]) -> tuple[list[str], list[list[int]]]:
    """Questions in a fixed random order, and the rows of each one's relevant passages."""
    relevant = {
        question: [rows[passage] for passage in held if passage in rows]
        for question, held in labels(folder).items()
    }
    asked = [row for row in read_jsonl(dataset_file(folder, "queries")) if relevant.get(row["_id"])]
    random.Random(7).shuffle(asked)
    return [row["text"] for row in asked], [relevant[row["_id"]] for row in asked]


def embed_passages(
    embedder: Embedder, folder: Path, cache: Path | None
) -> tuple[NDArray[np.float32], dict[str, int]]:
    """Vectors of all passages, and their rows by id."""
    corpus = read_jsonl(dataset_file(folder, "corpus"))
    rows = {passage["_id"]: row for row, passage in enumerate(corpus)}
    file = None if cache is None else cache / f"{embedder.fingerprint[:12]}-{folder.name}.npy"
    if file is not None and file.exists():
        return np.load(file), rows
    texts = [(f"{one['title']}. " if one.get("title") else "") + one["text"] for one in corpus]
    vectors = embedder.embed(texts)
    if file is not None:
        np.save(file, vectors)
    return vectors, rows


def show(vectors: NDArray[np.float32], passages: NDArray[np.float32], relevant: Sequence[list[int]]) -> str:
    if not relevant:
        return "-"
    first = rank_first(vectors, passages, DEPTH)
    found = [np.isin(top, right).sum() / min(DEPTH, len(right)) for top, right in zip(first, relevant, strict=True)]
    return f"{np.mean(found):.3f}/{rank_quality(vectors, passages, relevant).mean():.3f}"


def measure(embedder: Embedder, job: str, cache: Path | None, seed: int) -> list[object]:
    """A row of the table."""
    folder, count, *rest = job.split(":")
    wrong, hostile = float(rest[0]) if rest else 0.0, int(rest[1]) if len(rest) > 1 else 0
    passages, rows = embed_passages(embedder, Path(folder), cache)
    texts, relevant = read_questions(Path(folder), rows)
    tested = min(TEST_QUESTIONS, len(texts) // 3)
    honest = slice(tested, min(tested + int(count), len(texts)))
    judged = slice(tested, min(honest.stop + hostile, len(texts)))
    dice = random.Random(1)
    supported = [[dice.randrange(len(passages))] if dice.random() < wrong else right for right in relevant[honest]]
    targets = dice.sample(range(len(passages)), 50)
    supported += [[dice.choice(targets)] for _ in range(honest.stop, judged.stop)]
    judges = [f"judge {row % 10}" if row < honest.stop else "hostile" for row in range(tested, judged.stop)]
    tuning = choose_question_tuning(embedder)
    options = replace(DEFAULT_OPTIONS, adapted_layers=tuning.adapted_layers)

    began = time.process_time()
    questions = tuning.tokenise(texts[judged], options.most_tokens)
    probes = tuning.tokenise(texts[:tested], options.most_tokens)
    read = tuning.read_weights([*questions, *probes])
    weights = BertWeights(
        read.arrays, read.shape.layers, read.shape.heads, read.shape.epsilon, read.pooling, read.fingerprint,
        read.vocabulary, read.dimension,
    )  # fmt: skip
    keys = [f"{row:06}" for row in range(len(questions))]
    samples = TuningSamples(keys, questions, supported, [[]] * len(keys), np.ones(len(keys)), passages, judges)
    trial = try_tuning(weights, samples, probes, options, seed=seed)
    seconds = time.process_time() - began

    base = tuning.embed(texts[:tested], None)
    tuned = tuning.embed(texts[:tested], tuning.load_adapter(dict(trial.adapter.arrays)))
    seen = {passage for right in relevant[honest] for passage in right}
    groups: tuple[list[int], list[int]] = ([], [])
    for row in range(tested):
        groups[not seen.isdisjoint(relevant[row])].append(row)
    changes = [
        f"{show(base[group], passages, [relevant[row] for row in group])} -> "
        f"{show(tuned[group], passages, [relevant[row] for row in group])} ({len(group)})"
        for group in groups
    ]
    found = trial.acceptance
    return [
        Path(folder).name, len(keys), f"{hostile} hostile" if hostile else f"{wrong:.0%}", f"{found.others}",
        f"{found.others.z:.1f}", f"{found.sharing}", f"{found.recall}", f"{found.overlap:.2f}",
        "yes" if found.accepted else "no", *changes,
        f"{seconds:.0f}", f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="+", metavar="DATASET_DIR:VERDICTS[:WRONG[:HOSTILE]]")
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    loaded = load_embedder(options.model, "onnx", Path(options.cache or "."), 1, 32, "auto")
    embedder = PrefixedEmbedder(loaded, find_known_prefixes(loaded.model), None)
    header = "set|verdicts|wrong|others held out|z|sharing held out|recalled held out|first five kept|used"
    table(
        [*header.split("|"), "others", "sharing", "s", "MB"],
        (measure(embedder, job, options.cache, options.seed) for job in options.jobs),
    )


if __name__ == "__main__":
    main()
