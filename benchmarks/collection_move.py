"""Does a collection survive its move to another database, however often that is killed?

    python benchmarks/collection_move.py DATASET_DIR ... [--collection NAME] [--passages N] [--verdicts N]
        [--kills N] [--seed N]

The corpora of the folders (in the layout of BEIR) fill a collection of the configured database, with drawn
vectors; or NAME is one that is there (`scale.py` makes some). Questions are asked, and each answer is judged by
twenty judges. Then `engram collection move` moves the collection to a new database on the same server. It is killed
at random moments of the move and run again until it ends. At last the numbers of rows, a verification and 200
answers are compared: answers through vector indexes, which are built anew by chance, and searched exactly.
"""

import argparse
import random
import subprocess
import sys
import time
import uuid
from contextlib import closing
from itertools import islice
from pathlib import Path

from sqlalchemy.engine import make_url

import common
from engram.composition.container import Application, Servers
from engram.services.auth.scope import LOCAL
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.corpus import collections
from engram.storage.database import Database
from engram.storage.schema_revision import migrate
from engram.storage.tables import metadata
from engram.wings.upkeep.storage import collection_moves

NAME = "moved"
JUDGES = 20
COMPARED = 200
KILL_SECONDS = 3, 25


def judge(app: Application, name: str, questions: list[str]) -> None:
    """Ask, and judge each answer by ``JUDGES`` judges."""
    scope = app.auth.access.scope(name)
    for text in questions:
        answer = common.ask(app, name, text)
        helped = [NamedSentence(one.sentence_id) for one in islice(answer.passages[0].sentences, 1)]
        judges = (f"judge-{number}" for number in range(JUDGES))
        made = [Verdict(query_id=answer.query_id, scope=scope, supporting=helped, judge=one) for one in judges]
        common.judge(app, made, JUDGES)


def answer(app: Application, name: str, questions: list[str]) -> list[list[tuple[str, float]]]:
    """Passages and scores of the answers."""
    answers = [common.ask(app, name, text) for text in questions]
    return [[(passage.passage_id, passage.score) for passage in one.passages] for one in answers]


def answer_exactly(app: Application, name: str, questions: list[str]) -> list[list[tuple[str, float]]]:
    """The same, and from now on, as if the collection had no vector indexes; maintenance makes it search them."""
    with app.database.write() as writer:
        collections.record_indexed(writer, app.auth.access.scope(name).collection.id, [])
    return answer(app, name, questions)


def compare(some: list[list[tuple[str, float]]], others: list[list[tuple[str, float]]]) -> str:
    """Say how many answers are equal, and which share of the passages that some show the others show as well."""
    equal = sum(one == another for one, another in zip(some, others, strict=True))
    shared = sum(len(dict(one).keys() & dict(another)) for one, another in zip(some, others, strict=True))
    return f"{equal} of {len(some)} answers equal, {shared / sum(map(len, some)):.3f} of their passages"


def count(database: Database, collection_id: int) -> dict[str, int]:
    """Table -> rows of the collection."""
    names = [table.name for table in metadata.sorted_tables if "collection_id" in table.columns]
    with database.read() as reader:
        statement = "SELECT count(*) FROM {} WHERE collection_id = %(id)s"
        return {name: reader.scalar(statement.format(name), {"id": collection_id}) for name in names}


def is_hidden(app: Application, name: str) -> bool:
    """Whether the move has begun."""
    with app.database.read() as reader:
        held = collection_moves.find(reader, name, LOCAL.tenant)
    return held is not None and held.stage is not None


def move(app: Application, name: str, url: str, moments: list[float]) -> None:
    """Run the command until it ends, first killed so many seconds after its start or after the move began."""
    command = [sys.executable, "-m", "engram.cli", "collection", "move", "-c", name, "--to", url, "--json"]
    for run, patience in enumerate((*moments, None), start=1):
        began = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
            while patience is not None and running.poll() is None and not is_hidden(app, name):
                time.sleep(0.2)
            try:
                report, _ = running.communicate(timeout=patience)
            except subprocess.TimeoutExpired:
                running.kill()
                print(f"run {run}: killed after {time.monotonic() - began:.0f} s", flush=True)
                continue
        if running.returncode:
            raise SystemExit(f"run {run}: {report}")
        print(f"run {run}: ended after {time.monotonic() - began:.0f} s: {report}", flush=True)
        return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", type=Path, nargs="+")
    parser.add_argument("--passages", type=int, help="Only the first N of each; default: all.")
    parser.add_argument("--verdicts", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--collection", help="Move this one, which is there, instead of one that is filled.")
    arguments = parser.parse_args()
    name, dice = arguments.collection or NAME, random.Random(arguments.seed)
    questions = [text for folder in arguments.datasets for text in common.questions(folder)]
    judged, compared = questions[: arguments.verdicts // JUDGES], questions[-COMPARED:]
    with common.application(embedder=None if arguments.collection else common.DrawnVectors) as (app, addresses):
        for folder in () if arguments.collection else arguments.datasets:
            bodies = common.passages(folder, arguments.passages)
            common.stage(app, name, [body | {"id": f"{folder.name}-{body['id']}"} for body in bodies])
            app.jobs.runner.run_ready()
        judge(app, name, judged)
        collection = app.auth.access.scope(name).collection
        exact = answer_exactly(app, name, compared)
        app.maintenance.indexes.run()
        indexed, rows = answer(app, name, compared), count(app.database, collection.id)
        print(f"{collection.sentence_count} sentences, {rows['feedback_event']} verdicts", flush=True)
        other = make_url(addresses.database_url).set(database=f"other_{uuid.uuid4().hex}")
        with app.database.administer() as administrator:
            administrator.execute(f"CREATE DATABASE {other.database}")
        url = other.render_as_string(hide_password=False)
        migrate(url)
        move(app, name, url, [dice.uniform(*KILL_SECONDS) for _ in range(arguments.kills)])
        with closing(Application(app.settings, Servers(url, addresses.redis_url))) as target:
            target.models.embedder, target.models.language = app.models.embedder, app.models.language
            arrived = target.auth.access.scope(name).collection
            same_rows = count(target.database, arrived.id) == rows
            clean = target.revocation.verification.verify(target.auth.access.scope(name)).clean
            same = compare(indexed, answer(target, name, compared))
            same_exact = compare(exact, answer_exactly(target, name, compared))
        print(f"rows equal: {same_rows}; verify clean: {clean}")
        print(f"through vector indexes {same}; searched exactly {same_exact}")


if __name__ == "__main__":
    main()
