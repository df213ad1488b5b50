"""Holding a collection against those who would change or delete it, until the transaction ends.

By its row; or, where that is on all nodes of a cluster, whose every lock is one on the whole table, by locks on its
number that the coordinator keeps.
"""

from dataclasses import dataclass
from typing import Any

from engram.storage.database import Writer
from engram.storage.moved_collections import check_not_moved
from engram.storage.row_lookups import NOT_DELETED


@dataclass(frozen=True, slots=True)
class LockStrength:
    """A strength of lock: of the row, and of the two numbers that stand for being there and for being changed."""

    row: str
    there: str
    changed: str | None = None


SHARED_LOCK = LockStrength("FOR KEY SHARE", "_shared")
"""Kept from deletion, beside all who do not delete it."""
WRITE = LockStrength("FOR NO KEY UPDATE", "_shared", "")
"""Its graph is changed by this transaction alone."""
EXCLUSIVE = LockStrength("FOR UPDATE", "", "")
"""Nobody else does anything with it."""


def row_lock(writer: Writer, hold: LockStrength, *, wait: bool = True) -> str:
    """Return the SQL suffix that locks the collection's row; empty where every node has its rows."""
    if writer.distributed:
        return ""
    return hold.row if wait else f"{hold.row} SKIP LOCKED"


def hold(writer: Writer, collection_id: int, strength: LockStrength, *, wait: bool = True) -> bool:
    """Hold the number of a collection on the coordinator; False: somebody else does, and was not waited for."""
    tried = "" if wait else "_try"
    for name, how in (("there", strength.there), ("changed", strength.changed)):
        if how is None:
            continue
        lock = f"pg{tried}_advisory_xact_lock{how}(hashtextextended(%(name)s, 0))"
        is_locked = writer.scalar(f"SELECT {lock}", {"name": f"collection {name}:{collection_id}"})
        if not wait and not is_locked:
            return False
    return True


def lock_row(
    writer: Writer,
    collection_id: int,
    strength: LockStrength,
    *,
    condition: str = NOT_DELETED,
    columns: str = "id, space",
    wait: bool = True,
) -> Any:
    """Hold the row of a collection that meets the condition; these columns of it, or None.

    Args:
        wait: for whoever holds it; else that is None too.

    Raises:
        CollectionMovingError, CollectionMovedError: it is hidden for its move.
    """
    if writer.distributed and not hold(writer, collection_id, strength, wait=wait):
        return None
    lock = row_lock(writer, strength, wait=wait)
    row = writer.row(
        f"SELECT {columns} FROM collection WHERE id = %(id)s AND {condition} {lock}", {"id": collection_id}
    )
    if row is None:
        check_not_moved(writer, collection_id)
    return row
