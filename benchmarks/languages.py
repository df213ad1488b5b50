"""How well Engram finds passages in different languages: recall@5 and nDCG@10 of strategies and profile 'default'.

    python benchmarks/languages.py $ENGRAM_EVALUATION_DATA/xquad_de $ENGRAM_EVALUATION_DATA/xquad_zh
    python benchmarks/languages.py $ENGRAM_EVALUATION_DATA/jaquad_ja --strategies graph --without-names

The languages are recognised, not given.
"""

import argparse
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from common import (
    application,
    ask,
    compute_recall_and_ndcg,
    dataset_file,
    fill,
    labels,
    passages,
    read_jsonl,
    scratch_collection,
    table,
)
from engram.composition.container import Application
from engram.providers.language import Language, PassageText, QuestionAnalysis, SentenceAnalysis
from engram.services.question.query import Strategy

Asked = Sequence[tuple[str, Set[str]]]
"""Questions, each with the ids of its relevant passages."""
DEPTH = 10
STRATEGIES: Sequence[Strategy] = ("dense", "lexical", "hybrid", "graph")


class Nameless:
    """A language without its names."""

    def __init__(self, language: Language) -> None:
        self.name = f"{language.name} without names"
        self._language = language

    def analyse_passages(self, passages: Sequence[PassageText]) -> list[list[SentenceAnalysis]]:
        """Sentences of each passage with their times."""
        return [
            [replace(sentence, entities=()) for sentence in sentences]
            for sentences in self._language.analyse_passages(passages)
        ]

    def analyse_question(self, text: str, language: str | None = None) -> QuestionAnalysis:
        """Time constraint of a question."""
        return replace(self._language.analyse_question(text, language), entities=(), possible=())


def main() -> None:
    """Measure the data sets that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+", help="folders of data sets, in the layout of BEIR")
    parser.add_argument("--strategies", default=",".join(STRATEGIES), help="with commas between them; default: all")
    parser.add_argument("--without-names", action="store_true", help="find no names in passages and questions")
    parser.add_argument("--limit", type=int, help="questions of each data set")
    arguments = parser.parse_args()
    folders: list[Path] = arguments.folders
    strategies = [strategy for strategy in STRATEGIES if strategy in arguments.strategies.split(",")]
    rows: list[Sequence[object]] = []
    with application(language=Nameless if arguments.without_names else None) as (app, _):
        for folder in folders:
            rows.append(measure(app, folder, strategies, arguments.limit))
    table(["set", "kind", "languages of passages", "entities", "names of a question", *strategies], rows)


def measure(app: Application, folder: Path, strategies: Sequence[Strategy], limit: int | None) -> Sequence[object]:
    """Ingest a data set and ask its questions by each strategy."""
    with scratch_collection(app) as name:
        fill(app, name, passages(folder))
        app.corpus.names.run()
        collection = app.auth.access.scope(name).collection
        asked = read_questions(folder, limit)
        names = [len(app.models.language.analyse_question(text).entities) for text, _ in asked]
        return (
            folder.name,
            collection.corpus_kind,
            show(collection.languages),
            collection.entity_count,
            float(np.mean(names)),
            *(measure_strategy(app, name, asked, strategy) for strategy in strategies),
        )


def read_questions(folder: Path, limit: int | None) -> Asked:
    """Questions that have a relevant passage, the first ``limit`` of them."""
    relevant = labels(folder)
    rows = read_jsonl(dataset_file(folder, "queries"))
    return list(
        islice(((row["text"], relevant[row["_id"]].keys()) for row in rows if row["_id"] in relevant), limit)
    )


def measure_strategy(app: Application, name: str, asked: Asked, strategy: Strategy) -> str:
    """Recall@5 and nDCG@10."""
    figures = []
    for text, relevant in asked:
        answer = ask(app, name, text, top_k=DEPTH, memory="off", strategy=strategy)
        figures.append(compute_recall_and_ndcg([hit.passage_id for hit in answer.passages], relevant))
    recall, gain = np.mean(figures, axis=0)
    return f"{recall:.3f} ({gain:.3f})"


def show(counts: Mapping[str, int]) -> str:
    """Languages with their counts, the most frequent first."""
    return ", ".join(f"{language} {count}" for language, count in sorted(counts.items(), key=lambda one: -one[1]))


if __name__ == "__main__":
    main()
