"""Collections that are hidden because they move to another database or from one, and where they live then."""

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


def read_routes(reader: Reader, tenant: str) -> dict[str, str]:
    """Read where the tenant's collections live that are in other databases: name -> address of an API, by name."""
    rows = reader.rows(
        f"""
        SELECT name, move ->> 'url' AS address FROM collection
        WHERE tenant = %(tenant)s AND move ->> 'stage' = '{MOVED}' AND move ->> 'url' IS NOT NULL ORDER BY name
        """,
        {"tenant": tenant},
    )
    return {row.name: row.address for row in rows}


def set_route(writer: Writer, tenant: str, name: str, address: str) -> bool:
    """Record where a collection lives that is not here; False: it is here, or its move is not over."""
    moved = writer.execute(
        f"""
        INSERT INTO collection
            (tenant, name, encoder_model, encoder_fingerprint, encoder_dimension, deleted_at, move)
        VALUES (
            %(tenant)s, %(name)s, '', '', 1, now(), jsonb_build_object('stage', '{MOVED}', 'url', %(url)s::text)
        )
        ON CONFLICT (tenant, name) DO UPDATE SET move = collection.move || excluded.move
        WHERE collection.move ->> 'stage' = '{MOVED}'
        """,
        {"tenant": tenant, "name": name, "url": address},
    )
    return moved > 0


def forget(writer: Writer, tenant: str, name: str | None = None) -> bool:
    """Forget where the tenant's collections live, or the one of a name; whether there was any."""
    forgotten = writer.execute(
        f"""
        DELETE FROM collection
        WHERE tenant = %(tenant)s AND (%(name)s::text IS NULL OR name = %(name)s) AND move ->> 'stage' = '{MOVED}'
        """,
        {"tenant": tenant, "name": name},
    )
    return forgotten > 0


def build_move_error(name: str, move: Mapping[str, Any]) -> EngramError:
    """Make the error for a collection that is hidden for its ``move``."""
    if move["stage"] in {MOVING, ARRIVING}:
        return CollectionMovingError(f"Collection {name!r} is being moved to another database; try again later.")
    return build_moved_error(name, move.get("url"))


def build_moved_error(name: str, address: str | None) -> CollectionMovedError:
    """Make the error for a collection that another database holds; ``address``: of its API."""
    extra = {} if address is None else {"moved_to": address}
    return CollectionMovedError(f"Collection {name!r} moved to {address or 'another database'}.", **extra)
