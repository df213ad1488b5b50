"""How well Engram's own BM25 finds passages in different languages: recall@5 and nDCG@10 of strategy 'lexical'.

    python benchmarks/languages.py $ENGRAM_EVALUATION_DATA/xquad_de $ENGRAM_EVALUATION_DATA/xquad_zh

The languages are recognised, not given. With several data sets, ``--mixed`` puts all of them into one collection.
"""

import argparse
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from pathlib import Path

import numpy as np

from common import application, dataset_file, passages, read_jsonl, scratch_collection, stage, table
from engram.composition.container import Application
from engram.services.retrieval.query import Query

Asked = Sequence[tuple[str, Set[str]]]
"""Questions, each with the ids of its relevant passages."""
DEPTH = 10


def main() -> None:
    """Measure the data sets that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="folders of data sets, in the layout of BEIR")
    parser.add_argument("--mixed", action="store_true", help="all passages in one collection")
    arguments = parser.parse_args()
    folders: list[Path] = arguments.folders
    groups = [folders] if arguments.mixed else [[folder] for folder in folders]
    rows: list[Sequence[object]] = []
    with application() as (app, _):
        for group in groups:
            rows += measure(app, group)
    table(["set", "languages of passages", "languages of questions", "recall@5", "nDCG@10"], rows)


def measure(app: Application, folders: Sequence[Path]) -> list[Sequence[object]]:
    """Ingest the data sets into one collection and ask the questions of each."""
    with scratch_collection(app) as name:
        for folder in folders:
            bodies = [body | {"id": f"{folder.name} {body['id']}"} for body in passages(folder)]
            stage(app, name, bodies)
        while app.jobs.runner.run_ready():
            pass
        with app.database.read() as reader:
            held = reader.rows(
                """
                SELECT split_part(external_id, ' ', 1) AS folder, language, count(*) AS passages FROM passage
                WHERE collection_id = %(collection)s GROUP BY 1, 2 ORDER BY 1, 3 DESC
                """,
                {"collection": app.auth.access.scope(name).collection.id},
            )
        rows: list[Sequence[object]] = []
        for folder in folders:
            languages = {row.language: row.passages for row in held if row.folder == folder.name}
            asked = read_questions(folder)
            recalls, gains, spoken = ask(app, name, asked)
            rows.append(
                (folder.name, show(languages), show(spoken), f"{np.mean(recalls):.3f}", f"{np.mean(gains):.3f}")
            )
        return rows


def read_questions(folder: Path) -> Asked:
    """Questions that have a relevant passage."""
    relevant: dict[str, set[str]] = defaultdict(set)
    for line in (folder / "qrels.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        question, passage, score = line.split("\t")
        if int(score) > 0:
            relevant[question].add(f"{folder.name} {passage}")
    rows = read_jsonl(dataset_file(folder, "queries"))
    return [(row["text"], relevant[row["_id"]]) for row in rows if row["_id"] in relevant]


def ask(app: Application, name: str, asked: Asked) -> tuple[list[float], list[float], Counter[str]]:
    """Recall@5 and nDCG@10 of each question, and how many questions were recognised as which language."""
    scope = app.auth.access.scope(name)
    discounts = 1.0 / np.log2(np.arange(DEPTH) + 2)
    recalls: list[float] = []
    gains: list[float] = []
    languages: Counter[str] = Counter()
    for text, relevant in asked:
        query = Query(
            text=text, scope=scope, top_k=DEPTH, memory="off", strategy="lexical", include=frozenset({"trace"})
        )
        answer = app.answers.question.answer(query)
        found = [hit.passage_id in relevant for hit in answer.passages]
        recalls.append(sum(found[:5]) / len(relevant))
        gains.append(float(discounts[: len(found)] @ found) / float(discounts[: len(relevant)].sum()))
        languages[(answer.trace.language if answer.trace else None) or "not told"] += 1
    return recalls, gains, languages


def show(counts: Mapping[str, int]) -> str:
    """Languages with their counts, the most frequent first."""
    return ", ".join(f"{language} {count}" for language, count in sorted(counts.items(), key=lambda one: -one[1]))


if __name__ == "__main__":
    main()
