"""How many bytes does an answered query take on disk, and how many a verdict on it?

    python benchmarks/log_size.py DATASET_DIR [--passages N] [--queries N]

The first passages of DATASET_DIR (a BEIR folder) fill a collection that is removed again. Its questions are asked,
and then each answer is judged once: two sentences of the first passage helped, which rejects all others that were
selected. A table's bytes are what its pages, indexes and out-of-line values grew by, over the number of queries or
verdicts. An update leaves its former row behind until a vacuum; this is part of it.

DATABASE_URL and REDIS_URL, or the embedded servers of ENGRAM_DATA_DIR, are used; nothing else may write beside.
"""

import argparse
from itertools import islice
from pathlib import Path

import common
from engram.composition.container import Application
from engram.services.verdict.verdict import NamedSentence, Verdict

BATCH = 50


def ask_questions(app: Application, collection: str, questions: list[str]) -> list[Verdict]:
    """The questions, answered, each with what is to be said of its answer."""
    scope = app.auth.access.scope(collection)
    answers = [common.ask(app, collection, text) for text in questions]
    return [
        Verdict(
            query_id=answer.query_id,
            scope=scope,
            supporting=[
                NamedSentence(sentence.sentence_id) for sentence in islice(answer.passages[0].sentences, 2)
            ],
            judge="judge",
        )
        for answer in answers
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, default=1_000)
    parser.add_argument("--queries", type=int, default=500)
    arguments = parser.parse_args()
    questions = common.questions(arguments.dataset, arguments.queries)
    with common.application() as (app, _), common.scratch_collection(app) as collection:
        common.fill(app, collection, common.passages(arguments.dataset, arguments.passages))
        empty = common.read_table_bytes(app)
        verdicts = ask_questions(app, collection, questions)
        answered = common.read_table_bytes(app)
        common.judge(app, verdicts, BATCH)
        common.print_growth("bytes a query", empty, answered, len(verdicts))
        common.print_growth("bytes a verdict", answered, common.read_table_bytes(app), len(verdicts))


if __name__ == "__main__":
    main()
