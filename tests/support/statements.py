"""What goes to the database in a block: connections taken from a pool, and statements sent on each of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.pool import Pool


@dataclass(frozen=True, slots=True)
class Sent:
    """Connections in the order in which they were taken, and the first word of what was sent on each of them."""

    connections: list[list[str]] = field(default_factory=list)

    @property
    def statements(self) -> int:
        """How many in all."""
        return sum(map(len, self.connections))

    @property
    def written(self) -> list[list[str]]:
        """Of the connections those that something was written on."""
        return [words for words in self.connections if not {"INSERT", "UPDATE", "DELETE"}.isdisjoint(words)]


@contextmanager
def watched() -> Iterator[Sent]:
    """All that goes through any pool during the block, whatever thread sends it."""
    sent = Sent()
    on: dict[int, list[str]] = {}

    def taken(connection: Any, *_: object) -> None:
        sent.connections.append([])
        on[id(connection)] = sent.connections[-1]

    def note(connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        on[id(connection.connection.dbapi_connection)].append(statement.split(maxsplit=1)[0])

    event.listen(Pool, "checkout", taken)
    event.listen(Engine, "before_cursor_execute", note)
    try:
        yield sent
    finally:
        event.remove(Pool, "checkout", taken)
        event.remove(Engine, "before_cursor_execute", note)
