"""What the database holds after a soak: is what was posted stored once, applied once, and counted once?"""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from engram.composition.container import Application
from running import POLL_SECONDS

COLLECTION = "soak"
DRAIN_SECONDS = 900.0
Body = dict[str, Any]


class Rows:
    """What the database holds of the collection."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self._parameters = {"collection": app.auth.access.scope(COLLECTION).collection.id}

    def __call__(self, statement: str, **parameters: Any) -> Sequence[Any]:
        with self._app.database.read() as reader:
            return reader.rows(statement, self._parameters | parameters)

    def pending(self) -> int:
        """Verdicts that wait."""
        found = self(
            "SELECT count(*) AS n FROM feedback_event WHERE collection_id = %(collection)s AND status = 'pending'"
        )
        return int(found[0].n)


def drain(rows: Rows) -> float:
    """Wait until no verdict is pending; how long that took."""
    began = time.time()
    while rows.pending():
        if time.time() - began > DRAIN_SECONDS:
            raise SystemExit(f"{rows.pending()} verdicts are still pending after {DRAIN_SECONDS:.0f} s.")
        time.sleep(POLL_SECONDS)
    return time.time() - began


def check(rows: Rows, sent: Sequence[Body], results: Sequence[Body], log: Path) -> list[str]:
    """What is wrong, one line each."""
    wrong = [f"a post was answered {status}, {n} times" for status, n in _count_refused(results).items()]
    wanted = {post["key"]: post["body"] for post in sent}
    events = rows(
        """
        SELECT event.idempotency_key AS key, event.id, event.status, judged.id AS query_id, judged.question,
               judged.activated
        FROM feedback_event event
        JOIN judged_query judged ON judged.collection_id = event.collection_id AND judged.id = event.query_id
        WHERE event.collection_id = %(collection)s ORDER BY event.id
        """
    )
    stored = {event.key for event in events}
    if stored != wanted.keys() or len(stored) != len(events):
        wrong.append(f"{len(events)} events are stored and {len(wanted)} keys were posted")
    numbered = {event.key: event.id for event in events}
    differing = sum(result["feedback_id"] != numbered.get(result["key"]) for result in results)
    if differing:
        wrong.append(f"{differing} answers name another event than the one stored under their key")
    wrong += [
        f"{n} events are {status}"
        for status, n in Counter(event.status for event in events).items()
        if status != "applied"
    ]
    return wrong + _states(rows, wanted, events) + _deadlocks(log)


def _count_refused(results: Sequence[Body]) -> Counter[int]:
    return Counter(result["status"] for result in results if result["status"] not in {200, 202})


def _deadlocks(log: Path) -> list[str]:
    found = [log, log.with_suffix(".log.1")]
    n = sum(path.read_bytes().count(b"deadlock detected") for path in found if path.exists())
    return [f"{n} deadlocks in Postgres' log"] if n else []


def _states(rows: Rows, wanted: Mapping[str, Body], events: Sequence[Any]) -> list[str]:
    """Where audit rows or update counts are not the verdicts that were posted."""
    judged: Counter[tuple[int, str, int]] = Counter()
    tasks: Counter[int] = Counter()
    supports: Counter[tuple[str, int]] = Counter()
    for event in events:
        if (body := wanted.get(event.key)) is None or UUID(str(event.query_id)) != UUID(body["query_id"]):
            return [f"event {event.id} is of another query than was posted"]
        for sentence in {*body["supporting"], *body["rejected"], *(event.activated if body["complete"] else [])}:
            tasks[sentence] += 1
            supports[" ".join(event.question.casefold().split()), sentence] += 1
            judged[event.id, "task", sentence] += 1
            judged[event.id, "recall", sentence] += 1
    audit = Counter(
        (row.event_id, row.channel, row.sentence_id)
        for row in rows(
            """
            SELECT event_id, channel, sentence_id FROM memory_audit
            WHERE collection_id = %(collection)s AND channel <> 'time'
            """
        )
    )
    stored = {
        row.sentence_id: row.update_count
        for row in rows(
            """
            SELECT sentence_id, update_count FROM sentence_memory
            WHERE collection_id = %(collection)s AND channel = 'task'
            """
        )
    }
    known = {
        (" ".join(row.text.casefold().split()), row.sentence_id): row.update_count
        for row in rows(
            """
            SELECT q.text, known.sentence_id, known.update_count FROM question_support known
            JOIN question q ON q.collection_id = known.collection_id AND q.id = known.question_id
            WHERE known.collection_id = %(collection)s
            """
        )
    }
    late = rows(
        """
        SELECT count(*) AS n FROM sentence_memory memory
        WHERE memory.collection_id = %(collection)s AND memory.update_count <> (
            SELECT count(*) FROM memory_audit audit
            WHERE audit.collection_id = memory.collection_id AND audit.sentence_id = memory.sentence_id
              AND audit.channel = memory.channel)
        """
    )[0].n
    wrong = []
    counts: list[tuple[str, Mapping[Any, int], Mapping[Any, int]]] = [
        ("audit rows", audit, judged),
        ("memories", stored, tasks),
        ("supports", known, supports),
    ]
    for name, found, expected in counts:
        differing = sum(found.get(key) != expected.get(key) for key in found.keys() | expected.keys())
        if differing:
            wrong.append(f"{differing} {name} do not count the verdicts on them, of {len(expected)}")
    return [*wrong, f"{late} memories have another number of audit rows than of updates"] if late else wrong


def list_updates(rows: Rows) -> list[tuple[float, int]]:
    """(time applied, memory updates) of each event; a memory update is a state that moved, with its audit row."""
    found = rows(
        """
        SELECT extract(epoch FROM event.applied_at)::float8 AS at, count(*) AS n FROM feedback_event event
        JOIN memory_audit audit ON audit.collection_id = event.collection_id AND audit.event_id = event.id
        WHERE event.collection_id = %(collection)s GROUP BY event.id, event.applied_at
        """
    )
    return [(row.at, row.n) for row in found]
