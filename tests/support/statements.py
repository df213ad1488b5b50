"""What goes to the database in a block: connections taken from a pool, and statements sent on each of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from psycopg import Connection
from sqlalchemy import event
from sqlalchemy.pool import Pool

from engram.storage.database import observe_sql


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
def record_statements() -> Iterator[Sent]:
    """All that goes through any pool during the block, whatever thread sends it."""
    sent = Sent()
    on: dict[int, list[str]] = {}

    def record_connection(connection: Any, *_: object) -> None:
        sent.connections.append([])
        on[id(connection)] = sent.connections[-1]

    def note(connection: "Connection[Any]", statement: str, _parameters: object) -> None:
        on[id(connection)].append(statement.split(maxsplit=1)[0])

    event.listen(Pool, "checkout", record_connection)
    try:
        with observe_sql(note):
            yield sent
    finally:
        event.remove(Pool, "checkout", record_connection)
