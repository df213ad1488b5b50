"""Persons who ask: how long each answer took, and whether it showed what the person could not read."""

import random
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from soak.actors import PEOPLE
from soak.client import Caller, Failures, RefusedError
from soak.ledger import Ledger


@dataclass(frozen=True)
class Asked:
    """A question that was answered: when it was first sent, and when its answer came."""

    began: float
    ended: float
    query_id: str

    @property
    def seconds(self) -> float:
        """How long it took, all tries together."""
        return self.ended - self.began


@dataclass
class Askers:
    """Threads that ask at a rate, and no faster to make up for a time without answers.

    Attributes:
        ledger: who could read what when; None: everybody asks for all.
        rate: questions a second of all threads; 0: each asks one after the other.
        answered: by any thread.
        closed: passages shown that not everybody could read at all times.
        wrong: what must not be.
    """

    url: str
    collection: str
    questions: Sequence[str]
    ledger: Ledger | None = None
    rate: float = 0.0
    failures: Failures = field(default_factory=Failures)
    answered: list[Asked] = field(default_factory=list)
    closed: int = 0
    wrong: list[str] = field(default_factory=list)

    def start(
        self, pool: ThreadPoolExecutor, count: int, stopped: threading.Event, seed: int
    ) -> "list[Future[None]]":
        """So many threads ask until stopped."""
        return [pool.submit(self._run, count, stopped, random.Random(f"asker {seed} {at}")) for at in range(count)]

    def _run(self, count: int, stopped: threading.Event, draw: random.Random) -> None:
        caller = Caller(self.url, self.failures)
        due = time.time() + (draw.uniform(0.0, count / self.rate) if self.rate else 0.0)
        while not stopped.wait(max(0.0, due - time.time())):
            due = max(due + (count / self.rate if self.rate else 0.0), time.time())
            try:
                self._ask(caller, draw)
            except RefusedError as refused:
                self.wrong.append(f"a question: {refused}")

    def _ask(self, caller: Caller, draw: random.Random) -> None:
        body: dict[str, Any] = {"collection": self.collection, "query": draw.choice(self.questions)}
        names = draw.choice(PEOPLE)
        if self.ledger is not None:
            body["as"] = list(names)
        began = time.time()
        answer = caller.send("POST", "/query", json=body)
        self.answered.append(Asked(began, answer.ended, answer.body["query_id"]))
        if self.ledger is not None:
            shown = list_shown(answer.body)
            self.closed += sum(map(self.ledger.has_readers, shown))
            hidden = self.ledger.find_hidden(shown, names, answer.began, answer.ended)
            self.wrong += [
                f"{names} was shown {each}, hidden when it was asked at {answer.began}" for each in hidden
            ]


def list_shown(answer: Mapping[str, Any]) -> list[str]:
    """Ids of the passages that an answer names."""
    return [each["passage_id"] for hit in answer["passages"] for each in (hit, *(hit.get("duplicates") or ()))]
