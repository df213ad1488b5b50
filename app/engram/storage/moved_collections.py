"""Collections that are hidden because they move to another database or from one."""

from collections.abc import Mapping
from typing import Any

from engram.context.errors import CollectionMovedError, CollectionMovingError, EngramError
from engram.storage.database import Reader, Writer

MOVING, ARRIVING = "moving", "arriving"
"""Stages of a collection's ``move``, in the database that it leaves and in the other one."""
SWITCHED, MOVED = "switched", "moved"
"""Stages where it lives in the other database: its rows are still here, and only its name is."""


def check_not_moved(reader: Reader, collection_id: int) -> None:
    """Check a collection that was not found by its id.

    Raises:
        CollectionMovingError, CollectionMovedError: it is hidden for its move.
    """
    check_row(reader.row("SELECT name, move FROM collection WHERE id = %(id)s", {"id": collection_id}))


def check_name_not_moved(reader: Reader, name: str, tenant: str) -> None:
    """Check a collection that was not found by its name.

    Raises:
        CollectionMovingError, CollectionMovedError: it is hidden for its move.
    """
    check_row(
        reader.row(
            "SELECT name, move FROM collection WHERE tenant = %(tenant)s AND name = %(name)s",
            {"tenant": tenant, "name": name},
        )
    )


def check_row(row: Any) -> None:
    """Check a row of ``collection`` with its ``name`` and ``move``, or None, which is not there for callers.

    Raises:
        CollectionMovingError, CollectionMovedError: it is hidden for its move.
    """
    if row is not None and row.move is not None:
        raise build_move_error(row.name, row.move)


def forget(writer: Writer, tenant: str, name: str | None = None) -> None:
    """Forget where the tenant's collections moved, or the one of a name."""
    writer.execute(
        f"""
        DELETE FROM collection
        WHERE tenant = %(tenant)s AND (%(name)s::text IS NULL OR name = %(name)s) AND move ->> 'stage' = '{MOVED}'
        """,
        {"tenant": tenant, "name": name},
    )


def build_move_error(name: str, move: Mapping[str, Any]) -> EngramError:
    """Make the error for a collection that is hidden for its ``move``."""
    if move["stage"] in {MOVING, ARRIVING}:
        return CollectionMovingError(f"Collection {name!r} is being moved to another database; try again later.")
    url = move.get("url")
    return CollectionMovedError(
        f"Collection {name!r} moved to {url or 'another database'}.", **({} if url is None else {"moved_to": url})
    )
