"""What a soak put into its collection: the newest texts, and who may read what, with the time of each change."""

import math
import threading
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Readers = Sequence[str] | None
"""Names of readers; None: everyone."""


@dataclass
class Change:
    """A thing got these readers: not before ``began``, and at the latest at ``ended`` (seconds of the epoch)."""

    readers: Readers
    began: float
    ended: float = math.inf

    def confirm(self) -> None:
        """The service said that it holds."""
        self.ended = time.time()


class Ledger:
    """Texts and readers of passages and documents by name; what it does not know of is read by everyone.

    A passage ``handbook/a.txt#2`` is of the thing ``handbook/a.txt``. Only one thread changes a thing.

    Attributes:
        texts: the text that each thing has to have at the end.
    """

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self._changes: dict[str, list[Change]] = {}
        self._lock = threading.Lock()

    def begin(self, thing: str, readers: Readers) -> Change:
        """A change that is asked for from now on."""
        change = Change(readers, time.time())
        with self._lock:
            self._changes.setdefault(thing, []).append(change)
        return change

    def get_readers(self, thing: str) -> Readers:
        """Readers that a thing got last."""
        with self._lock:
            changes = self._changes.get(thing)
            return changes[-1].readers if changes else None

    def has_readers(self, passage_id: str) -> bool:
        """Whether not everybody could read it at all times."""
        return any(change.readers is not None for change in self._changes.get(get_thing(passage_id), ()))

    def find_hidden(self, shown: Iterable[str], names: Sequence[str], began: float, ended: float) -> list[str]:
        """Passages that whoever is ``names`` could not read at any moment between ``began`` and ``ended``."""
        return [each for each in shown if not self._could_read(get_thing(each), names, began, ended)]

    def _could_read(self, thing: str, names: Sequence[str], began: float, ended: float) -> bool:
        with self._lock:
            changes = list(self._changes.get(thing, ()))
        held = max((at for at, change in enumerate(changes) if change.ended <= began), default=0)
        possible = [change.readers for change in changes[held:] if change.began <= ended]
        return not changes or any(readers is None or not set(readers).isdisjoint(names) for readers in possible)


def get_thing(passage_id: str) -> str:
    """The document that a passage is of, or the passage itself."""
    return passage_id.partition("#")[0]
