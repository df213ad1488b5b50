"""How long does it take to take one judge's verdicts back, and is what is left as if they had never come?

    python benchmarks/revocation.py [-n EVENTS] [-r REVOKED] [-d DATASET_DIR] [-p PASSAGES] [-q QUESTIONS] [-s SEED]

Two collections with the same passages, by default the sample corpus, and the same questions. The first one gets a
stream of verdicts of several judges, spread at random over the same sentences and questions, some with expansions,
so that passage keys evolve; the second one gets the same stream without one of the judges. Then a job revokes that
judge in the first one, as `POST /feedback/revoke` has a worker do, and both are compared to the last bit: memories,
supports, questions, ranking weights, their audits, key credits, evolved keys and postings. Ids differ between
collections: passages go by the caller's ids, sentences by their place, units and questions by their text, events by
their Idempotency-Key. Exit code 1 if anything differs.

Meanwhile another connection asks again and again for the right to learn in that collection, which the job takes
away for a batch: the longest wait is how long a worker would have waited.

Whether expansions are validated is said by the verdicts: left to retrieval, it would depend on the keys of then.
DATABASE_URL and REDIS_URL, or the embedded servers of ENGRAM_DATA_DIR, are used; no worker may run beside.
"""

import argparse
import json
import random
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import common
from engram.composition.container import Application
from engram.context import tenancy
from engram.context.errors import UnavailableError
from engram.core.filter.logged_verdict import Expansion
from engram.services.question.query import Include, Query
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.storage.corpus import collections
from engram.wings.local import sample

JUDGES = 20
TAKEN_BACK = "careless"
EXPANDED_SHARE = 0.1
PROBE_SECONDS = 0.005
Rows = list[str]

# What is compared, with what stands for the ids: p, s, u, q and e are joined in below.
TABLES: Mapping[str, tuple[str, str]] = {
    "sentence_memory": ("s", ""),
    "question": ("", "id"),
    "question_support": ("s q", ""),
    "memory_audit": ("s e", ""),
    "learned_weights": ("", ""),
    "weight_audit": ("e", ""),
    "key_credit": ("p u e", ""),
    "expansion_memory": ("p u", ""),
    "passage_key": ("p", "generation units"),  # how often keys evolved until then differs; units have a row each
    "evolved_posting": ("p", "generation"),
}
NAMES: Mapping[str, tuple[str, str, str]] = {
    "p": ("passage", "passage_id", "j.external_id"),
    "s": (
        "sentence",
        "sentence_id",
        "(SELECT external_id FROM passage WHERE collection_id = j.collection_id AND id = j.passage_id), j.position",
    ),
    "u": ("expansion_unit", "unit_id", "j.text"),
    "q": ("question", "question_id", "encode(j.text_hash, 'hex')"),
    "e": ("feedback_event", "event_id", "j.idempotency_key"),
}
INCIDENTAL = ("collection_id", "created_at", "updated_at", "time_expression_id")


def rows(app: Application, collection: str, table: str) -> Rows:
    """All rows of a table in words that hold in every collection, in order; vectors and floats to the last bit."""
    names, without = TABLES[table]
    joined = [NAMES[name] for name in names.split()]
    named = ", ".join(
        f"(SELECT to_jsonb(ROW({shown})) FROM {of} j WHERE j.collection_id = t.collection_id AND j.id = t.{column})"
        for of, column, shown in joined
    )
    dropped = [*INCIDENTAL, *without.split(), *(column for _, column, _ in joined)]
    units = (
        """, (SELECT jsonb_agg(u.text ORDER BY known.n) FROM unnest(t.units) WITH ORDINALITY AS known(id, n)
            JOIN expansion_unit u ON u.collection_id = t.collection_id AND u.id = known.id)"""
        if table == "passage_key"
        else ""
    )
    with app.database.read() as reader:
        found = reader.rows(
            f"""
            SELECT jsonb_build_array(to_jsonb(t) - %(dropped)s::text[]{", " if named else ""}{named}{units})::text
            FROM {table} t JOIN collection c ON c.id = t.collection_id
            WHERE c.name = %(name)s ORDER BY 1
            """,
            {"dropped": dropped, "name": collection},
        )
    return [row[0] for row in found]


def corpus(folder: Path | None, limit: int | None) -> tuple[list[dict[str, Any]], list[str]]:
    """Passages and questions."""
    if folder is not None:
        return common.passages(folder, limit), common.questions(folder)
    lines = [json.loads(line) for line in sample.corpus().splitlines() if line.strip()]
    bodies = [
        {"id": row["_id"], "title": row["title"], "text": row["text"], "metadata": {}, "sentences": None}
        for row in lines
    ]
    return bodies[:limit], [question.text for question in sample.questions()]


def episodes(app: Application, collection: str, questions: Sequence[str]) -> list[Any]:
    """The answers to these questions, each with its sentences."""
    include: frozenset[Include] = frozenset({"sentences"})
    return [
        app.answers.question.answer(Query(text=text, scope=app.auth.access.scope(collection), include=include))
        for text in questions
    ]


def stream(count: int, revoked: int, questions: Sequence[str], draw: random.Random) -> list[dict[str, Any]]:
    """What each verdict says, in terms of places in the answers, the same for both collections."""
    taken = set(draw.sample(range(count), revoked))
    judged = []
    for number in range(count):
        places = draw.sample(range(1000), 3)
        units = draw.sample(questions, draw.randint(1, 2)) if draw.random() < EXPANDED_SHARE else []
        judged.append(
            {
                "key": f"verdict-{number}",
                "judge": TAKEN_BACK if number in taken else f"judge-{draw.randrange(JUDGES)}",
                "episode": draw.randrange(1_000_000),
                "supporting": places[: draw.randint(1, 2)],
                "rejected": places[2:],
                "partial": draw.random() < 0.5,
                "confidence": draw.choice([1.0, 0.8, 0.5]),
                "retrieval_success": True if units else draw.choice([None, True, False]),
                "expansions": [Expansion("facet", text) for text in units],
            }
        )
    return judged


def teach(app: Application, collection: str, answers: Sequence[Any], judged: Sequence[Mapping[str, Any]]) -> float:
    """Accept the verdicts and apply them as a worker does; how many seconds the applying took."""
    target = app.auth.access.scope(collection).collection.id
    events = []
    for said in judged:
        answer = answers[said["episode"] % len(answers)]
        shown = [sentence.sentence_id for passage in answer.passages for sentence in passage.sentences]
        supported = {shown[place % len(shown)] for place in said["supporting"]}
        rejected = {shown[place % len(shown)] for place in said["rejected"]} - supported
        verdict = Verdict(
            query_id=answer.query_id,
            scope=app.auth.access.scope(collection),
            supporting=[NamedSentence(sentence) for sentence in sorted(supported)],
            rejected=[NamedSentence(sentence) for sentence in sorted(rejected)],
            **{name: said[name] for name in ("partial", "retrieval_success", "expansions", "judge", "confidence")},
        )
        events.append(app.learning.verdicts.accept(verdict, said["key"]).event.id)
    began = time.perf_counter()
    for batch in common.chunks(events, app.settings.feedback_batch_size):
        if app.learning.learner.apply(target, batch) != len(batch):
            raise SystemExit("Some verdicts could not be applied.")
    seconds = time.perf_counter() - began
    app.passage_keys.evolve.evolve(app.auth.access.scope(collection))
    return seconds


@contextmanager
def measure_learning_waits(app: Application, collection: str) -> Iterator[list[float]]:
    """How long each of many asks for the right to learn there waited, in seconds, while the block runs."""
    target = app.auth.access.scope(collection).collection.id
    waits: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.wait(PROBE_SECONDS):
            began, held = time.perf_counter(), False
            while not held:  # whoever has waited too long is sent away and, like a worker, comes again
                with suppress(UnavailableError), app.database.write() as writer:
                    collections.lock_learning(writer, target, exclusive=False)
                    held = True
            waits.append(time.perf_counter() - began)

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(tenancy.carry(ask))
        try:
            yield waits
        finally:
            over.set()
            asking.result()


def compare(app: Application, one: str, other: str) -> bool:
    """Print what both hold, table by table; whether it is the same."""
    compared = []
    for table in TABLES:
        left, right = rows(app, one, table), rows(app, other, table)
        differing = len(set(left) ^ set(right))
        compared.append([table, len(left), len(right), "yes" if left == right else f"no: {differing} rows differ"])
        if left != right:
            for row in sorted(set(left) ^ set(right))[:2]:
                print(f"{table}: {row[:400]}", file=sys.stderr)
    common.table(["table", "rows", "rows without the judge", "the same"], compared)
    return all(row[-1] == "yes" for row in compared)


def measure(app: Application, one: str, other: str, arguments: argparse.Namespace) -> bool:
    """Fill, teach, revoke, compare; whether both are the same."""
    draw = random.Random(arguments.seed)
    bodies, texts = corpus(arguments.data, arguments.passages)
    asked = [texts[number % len(texts)] for number in range(arguments.questions)]
    judged = stream(arguments.events, arguments.revoked, texts, draw)
    for collection in (one, other):
        common.stage(app, collection, bodies)
        app.jobs.runner.run_ready(collection_id=app.auth.access.scope(collection).collection.id)
    with app.database.administer() as administrator:
        administrator.execute("ANALYZE")  # as autovacuum does within a minute or so
    # Both are asked before either is taught: the same questions find the same.
    answers = {collection: episodes(app, collection, asked) for collection in (one, other)}
    applying = teach(app, one, answers[one], judged)
    teach(app, other, answers[other], [said for said in judged if said["judge"] != TAKEN_BACK])
    print(f"{len(judged)} verdicts applied, {len(judged) / applying:.0f} a second")

    app.learning.revocation.request(app.auth.access.scope(one), judge=TAKEN_BACK)
    with measure_learning_waits(app, one) as waits:
        began = time.perf_counter()
        app.jobs.runner.run_ready()
        seconds = time.perf_counter() - began
    app.passage_keys.evolve.evolve(app.auth.access.scope(one))
    print(f"{arguments.revoked} revoked in {seconds:.1f} s, {arguments.revoked / seconds:.0f} a second")
    print(f"learning waited {max(waits):.2f} s at most, {sum(waits):.1f} s in all\n")
    return compare(app, one, other)


def main() -> None:
    parser = argparse.ArgumentParser(description="How fast and how exactly one judge's verdicts are taken back.")
    parser.add_argument("-n", "--events", type=int, default=5000)
    parser.add_argument("-r", "--revoked", type=int, default=1000, help="of them, one judge's")
    parser.add_argument("-d", "--data", type=Path, help="BEIR folder; the sample corpus by default")
    parser.add_argument("-p", "--passages", type=int, help="the first so many; all by default")
    parser.add_argument("-q", "--questions", type=int, default=200)
    parser.add_argument("-s", "--seed", type=int, default=0)
    arguments = parser.parse_args()

    with (
        common.application() as (app, _),
        common.scratch_collection(app) as one,
        common.scratch_collection(app) as other,
    ):
        same = measure(app, one, other, arguments)
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
