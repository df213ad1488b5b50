"""What goes on beside the questions and verdicts of a soak: changes of readers, ingest, sync and erasure.

Each is a thread of its own that does one thing after the other, and writes down in the ledger what has to hold.
"""

import hashlib
import itertools
import random
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soak.client import PATIENCE_SECONDS, Caller, Failures, RefusedError
from soak.ledger import Ledger, Readers

PEOPLE = (
    ("group:a", "user:ana"),
    ("group:b", "user:bo"),
    ("group:a", "group:c", "user:cy"),
    ("group:b", "group:c"),
    ("user:di",),
    ("user:eve",),
)
"""What each person who asks is among the readers."""
READERS = ("group:a", "group:b", "group:c", "user:ana", "user:bo", "user:di")
NOTICES = 60
FILES = 16
QUESTIONS_OF_A_LEAVER = 3
VERDICTS_OF_A_LEAVER = 2
REPEATED_SHARE = 0.1


def draw_readers(draw: random.Random) -> Readers:
    """Everyone, nobody or some."""
    return draw.choice([None, (), *(sorted(draw.sample(READERS, draw.randint(1, 3))) for _ in range(4))])


@dataclass
class Place:
    """Where all this happens.

    Attributes:
        texts: what texts are made of, which the questions ask for.
        questions: what leavers ask.
        stable: ids of passages that nothing changes, of which verdicts may speak.
        wrong: what must not be, one line each.
    """

    url: str
    collection: str
    texts: Sequence[str]
    questions: Sequence[str]
    stable: frozenset[str]
    ledger: Ledger = field(default_factory=Ledger)
    failures: Failures = field(default_factory=Failures)
    wrong: list[str] = field(default_factory=list)

    def write(self, name: str, edition: int) -> str:
        """The text of a thing, which tells its edition."""
        at = int.from_bytes(hashlib.sha256(name.encode()).digest()[:4]) % len(self.texts)
        return f"{self.texts[at]} This is edition {edition} of the note {name.rpartition('/')[2]}."


class Actor:
    """Does something about every so many seconds until it is stopped, and ends what it has begun."""

    every: float

    def __init__(self, place: Place, seed: int) -> None:
        self.place = place
        self.draw = random.Random(f"{type(self).__name__} {seed}")
        self.caller = Caller(place.url, place.failures)
        self.done = 0

    def prepare(self) -> None:
        """Put in what it changes later."""

    def act(self) -> None:
        """Do it once."""
        raise NotImplementedError

    def run(self, stopped: threading.Event) -> None:
        """Act until stopped; what is refused is written down as wrong."""
        while not stopped.wait(self.every * self.draw.uniform(0.5, 1.5)):
            try:
                self.act()
            except RefusedError as refused:
                self.place.wrong.append(f"{type(self).__name__}: {refused}")
            self.done += 1

    def put(self, key: str, passages: Sequence[dict[str, Any]]) -> None:
        """Ingest passages and wait for it; some requests are sent again, and have to name the same job."""
        body = {"collection": self.place.collection, "passages": passages}
        accepted = self.caller.send("POST", "/passages", key=key, json=body)
        if self.draw.random() < REPEATED_SHARE:
            again = self.caller.send("POST", "/passages", key=key, json=body)
            if again.body["job_id"] != accepted.body["job_id"]:
                self.place.wrong.append(f"the repeated ingest {key} began another job")
        self.caller.wait(accepted)

    def put_new(self, key: str, names: Sequence[str]) -> None:
        """Ingest passages of these names with readers."""
        readers = {name: draw_readers(self.draw) for name in names}
        changes = [self.place.ledger.begin(name, readers[name]) for name in names]
        texts = {name: self.place.write(name, 1) for name in names}
        self.put(key, [{"id": name, "text": texts[name], "readers": readers[name]} for name in names])
        for change in changes:
            change.confirm()
        self.place.ledger.texts |= texts


class ReadersChanges(Actor):
    """Gives notices other readers."""

    every = 1.5

    def prepare(self) -> None:
        self.names = [f"notice-{number}" for number in range(NOTICES)]
        self.put_new("notices", self.names)

    def act(self) -> None:
        name, readers = self.draw.choice(self.names), draw_readers(self.draw)
        change = self.place.ledger.begin(name, readers)
        where = {"collection": self.place.collection}
        self.caller.send("PATCH", f"/passages/{name}", params=where, json={"readers": readers})
        change.confirm()


class Ingest(Actor):
    """Puts in two new passages, and a new text of an earlier one."""

    every = 6.0

    def prepare(self) -> None:
        self.editions: dict[str, int] = {}
        self.act()

    def act(self) -> None:
        number = len(self.editions)
        names = [f"ingested-{number + at}" for at in range(2)]
        self.put_new(f"ingest-{number}", names)
        self.editions |= dict.fromkeys(names, 1)
        name = self.draw.choice(sorted(self.editions))
        self.editions[name] += 1
        text = self.place.write(name, self.editions[name])
        self.put(f"revise-{number}", [{"id": name, "text": text}])
        self.place.ledger.texts[name] = text


class FolderSync(Actor):
    """Changes a folder by a file of each kind, and keeps the collection in step with ``engram sync``."""

    every = 20.0

    def __init__(self, place: Place, seed: int, folder: Path) -> None:
        super().__init__(place, seed)
        self.folder = folder
        self.closed_to: Sequence[str] = ("group:a",)
        self.numbers = itertools.count()
        self.edition = 1

    def prepare(self) -> None:
        for part in ("open", "closed"):
            (self.folder / part).mkdir(parents=True)
        self._synchronise([self._make_name() for _ in range(FILES)], [])

    def act(self) -> None:
        revised, renamed, gone = self.draw.sample(self._list_files(), 3)
        new, added = self._make_name(), self._make_name()
        self.edition += 1
        if self.draw.random() < 0.5:
            self.closed_to = (self.draw.choice(("group:a", "group:b", "group:c", "user:di")),)
        (self.folder / renamed).rename(self.folder / new)
        (self.folder / gone).unlink()
        # Until the run ends, who could read it under its old name may read it under the new one.
        moved = self.place.ledger.begin(new, self.place.ledger.get_readers(renamed))
        self._synchronise([revised, added], [renamed, gone])
        moved.confirm()

    def _list_files(self) -> list[str]:
        return sorted(path.relative_to(self.folder).as_posix() for path in self.folder.glob("*/*.txt"))

    def _make_name(self) -> str:
        return f"{self.draw.choice(('open', 'closed'))}/file-{next(self.numbers)}.txt"

    def _get_rule(self, name: str) -> Readers:
        return self.closed_to if name.startswith("closed/") else None

    def _synchronise(self, written: Sequence[str], gone: Sequence[str]) -> None:
        """Write files, and bring the collection into step; what is gone may be shown to nobody afterwards."""
        ledger = self.place.ledger
        for name in written:
            (self.folder / name).write_text(self.place.write(name, self.edition) + "\n", encoding="utf-8")
        (self.folder / ".engram-readers").write_text(f"*: everyone\nclosed/*: {','.join(self.closed_to)}\n")
        present = self._list_files()
        changes = [ledger.begin(name, self._get_rule(name)) for name in present]
        changes += [ledger.begin(name, ()) for name in gone]
        self._run()
        for change in changes:
            change.confirm()
        for name in gone:
            del ledger.texts[name]
        ledger.texts |= {name: (self.folder / name).read_text(encoding="utf-8").strip() for name in present}

    def _run(self) -> None:
        program = [sys.executable, "-P", "-m", "engram.cli", "sync", str(self.folder), "--allow-mass-deletion"]
        program += ["--collection", self.place.collection, "--url", self.place.url]
        deadline = time.monotonic() + PATIENCE_SECONDS
        while (ran := subprocess.run(program, check=False, capture_output=True, text=True)).returncode:
            if time.monotonic() > deadline:
                raise RefusedError(f"engram sync: exit code {ran.returncode}: {ran.stderr[-500:]}")
            self.place.failures.note("a sync that was run again")
            time.sleep(1.0)


@dataclass(frozen=True)
class Leaver:
    """A person who asks, judges and is erased."""

    name: str
    queries: list[str] = field(default_factory=list)

    @property
    def readers(self) -> list[str]:
        """What the person is among the readers."""
        return [f"user:{self.name}"]

    @property
    def principal(self) -> str:
        """The name under which the service stores what the person does."""
        return f"local as {hashlib.sha256(self.readers[0].encode()).hexdigest()[:16]}"


class Leavers(Actor):
    """Persons who ask, judge, begin a session and are erased at once."""

    every = 20.0

    def prepare(self) -> None:
        self.erased: list[Leaver] = []

    def act(self) -> None:
        leaver = Leaver(f"leaver-{self.done}")
        self.erased.append(leaver)
        judged = [self._ask(leaver) for _ in range(QUESTIONS_OF_A_LEAVER)]
        given = [self._judge(leaver, *one) for one in judged[:VERDICTS_OF_A_LEAVER] if one[1]]
        asked = {"collection": self.place.collection, "question": judged[0][2], "as": leaver.readers}
        session = self.caller.send("POST", "/sessions", key=leaver.name, json=asked | {"planner": "pool"})
        path = f"/collections/{self.place.collection}/principals/{leaver.principal}"
        self.caller.wait(self.caller.send("DELETE", path, key=f"erase-{leaver.name}"))
        paths = [f"/queries/{query}" for query in leaver.queries] + [f"/feedback/{number}" for number in given]
        for left in [*paths, f"/sessions/{session.body['session_id']}"]:
            status = self.caller.send("GET", left, params={"collection": self.place.collection}, accept=404).status
            if status != 404:
                self.place.wrong.append(f"after {leaver.name} was erased, {left} was answered {status}")

    def _ask(self, leaver: Leaver) -> tuple[str, list[int], str]:
        """A query of theirs, sentences of it that stay, and its words."""
        text = self.draw.choice(self.place.questions)
        body = {"collection": self.place.collection, "query": text, "include": ["sentences"], "as": leaver.readers}
        answer = self.caller.send("POST", "/query", json=body).body
        leaver.queries.append(answer["query_id"])
        stay = [hit for hit in answer["passages"] if hit["passage_id"] in self.place.stable]
        return answer["query_id"], [one["sentence_id"] for hit in stay for one in hit["sentences"]], text

    def _judge(self, leaver: Leaver, query: str, sentences: Sequence[int], _: str) -> int:
        body = {"collection": self.place.collection, "query_id": query, "as": leaver.readers, "judge": leaver.name}
        given = body | {"supporting": sentences[:1]}
        key = f"{leaver.name}-{query}"
        return int(self.caller.send("POST", "/feedback", key=key, json=given).body["feedback_id"])
