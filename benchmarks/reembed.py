"""Time the re-embedding of a collection, and the queries that run beside it.

    export ENGRAM_SECONDARY_EMBEDDING_MODEL=MODEL_FOLDER
    python benchmarks/reembed.py DATASET_DIR [--passages N] [--verdicts N]

The first passages of DATASET_DIR (a BEIR folder) fill a collection that is removed again, with vector indexes; then
verdicts teach it. Its questions are asked, one after the other, before the job, while it makes vectors, and while
it exchanges them; the job runs in a thread of the same process. Then the log is replayed.
"""

import argparse
import threading
import time
from collections.abc import Mapping
from itertools import cycle
from pathlib import Path
from typing import Any

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.services.question.query import Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.database import observe_sql

QUIET_QUESTIONS = 50


def teach(app: Application, collection: str, questions: list[str]) -> None:
    """One verdict on the answer of each question."""
    scope = app.auth.access.scope(collection)
    events = []
    for number, text in enumerate(questions):
        answer = app.answers.question.answer(Query(text=text, scope=scope))
        named = [NamedSentence(sentence.sentence_id) for sentence in answer.passages[0].sentences[:2]]
        verdict = Verdict(query_id=answer.query_id, scope=scope, supporting=named, partial=True)
        events.append(app.learning.verdicts.accept(verdict, f"benchmark-{number}").event.id)
    for some in common.chunks(events, 50):
        app.learning.learner.apply(scope.collection.id, some)


def time_question(app: Application, collection: str, text: str) -> float:
    """Milliseconds that a question takes, with the look-up of its collection."""
    began = time.perf_counter()
    app.answers.question.answer(Query(text=text, scope=app.auth.access.scope(collection)))
    return (time.perf_counter() - began) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--passages", type=int, default=1_000)
    parser.add_argument("--verdicts", type=int, default=100)
    arguments = parser.parse_args()
    questions = common.questions(arguments.dataset, max(arguments.verdicts, QUIET_QUESTIONS))
    with common.application() as (app, _), common.scratch_collection(app) as collection:
        common.stage(app, collection, common.passages(arguments.dataset, arguments.passages))
        app.jobs.runner.run_ready()
        teach(app, collection, questions[: arguments.verdicts])
        common.index_all(app)
        quiet = [time_question(app, collection, text) for text in questions[:QUIET_QUESTIONS]]

        spans: dict[str, list[float]] = {"beside": [], "cut-over": [], "after": []}
        moment, over = ["beside"], threading.Event()
        seconds: dict[str, float] = {}

        def note_cut_over(_connection: object, statement: str, parameters: Mapping[str, Any]) -> None:
            """The exchange holds the lock of index maintenance from its beginning to its end."""
            if parameters.get("name") != "maintenance":
                return
            if "pg_advisory_unlock" in statement:
                moment[0] = "after"
                seconds["cut-over"] += time.perf_counter()
            else:
                moment[0] = "cut-over"
                seconds["cut-over"] = -time.perf_counter()

        app.corpus.reembed.request(app.auth.access.scope(collection))
        began = time.perf_counter()

        def run() -> None:
            with observe_sql(note_cut_over):
                app.jobs.runner.run_ready()
            seconds["job"] = time.perf_counter() - began
            over.set()

        thread = threading.Thread(target=tenancy.carry(run))
        thread.start()
        for text in cycle(questions):
            if over.is_set():
                break
            at = moment[0]
            spans[at].append(time_question(app, collection, text))
        thread.join()
        clean = app.revocation.verification.verify(app.auth.access.scope(collection)).clean
        found = app.auth.access.scope(collection).collection
        print(
            f"{found.passage_count} passages, {found.sentence_count} sentences, {found.entity_count} names, "
            f"{arguments.verdicts} verdicts: of {found.encoder_model}, verify {'clean' if clean else 'NOT CLEAN'}; "
            f"{seconds['job']:.0f} s in all, {seconds['cut-over']:.1f} s of them the cut-over\n"
        )
        rows = [("before", quiet), *((name, times) for name, times in spans.items() if times)]
        common.table(
            ("queries", "asked", "p50 ms", "p95 ms", "longest"),
            [(name, len(times), *common.percentiles(times), max(times)) for name, times in rows],
        )


if __name__ == "__main__":
    main()
