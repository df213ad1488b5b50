"""Locks that keep workers' upkeep away from a database."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from engram.context.errors import UnavailableError
from engram.storage.database import Database

LOCKS = ("backup", "maintenance", "retention")
"""Held during a backup or a move: what rebuilds indexes or drops tables would wait for it, and others for that."""
LOCK_SECONDS = 60.0


@contextmanager
def exclude_upkeep(
    database: Database, names: Sequence[str] = LOCKS, seconds: float = LOCK_SECONDS
) -> Iterator[None]:
    """Keep others from backups, index rebuilds and dropping weeks for the block.

    Raises:
        UnavailableError: others are at it for longer than ``seconds``.
    """
    if not names:
        yield
        return
    until = time.monotonic() + seconds
    while True:
        with database.hold_lock(names[0]) as is_locked:
            if is_locked:
                with exclude_upkeep(database, names[1:], until - time.monotonic()):
                    yield
                return
        if time.monotonic() > until:
            raise UnavailableError(f"Another process has been at {names[0]} for a minute; try again later.")
        time.sleep(0.5)
