"""Tables of wings. A wing is off only while they are empty.

Nothing looks after the rows of a wing that is off: they would keep the text of passages that are deleted meanwhile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from engram.context import tenancy
from engram.context.errors import ConfigurationError, ConflictError, NotFoundError
from engram.services.maintenance.doctor_checks import CheckResult
from engram.storage.database import Database
from engram.storage.maintenance import wing_tables


@dataclass(frozen=True, slots=True)
class WingState:
    """A wing as it stands.

    Attributes:
        tables: all tables of the wing.
        filled: those of them that hold rows.
    """

    name: str
    is_on: bool
    tables: Sequence[str]
    filled: Sequence[str]


class WingClearingService:
    """Tells which wings hold rows, and empties those that are off.

    Args:
        tables: names of the tables of each installed wing.
        on: names of the wings that are on.
    """

    def __init__(self, database: Database, tables: Mapping[str, Sequence[str]], on: Sequence[str]) -> None:
        self._database = database
        self._tables = tables
        self._on = frozenset(on)

    def list_wings(self) -> list[WingState]:
        """List the installed wings."""
        return self._read_states(self._tables)

    def check(self) -> None:
        """See that wings that are off hold no rows.

        Raises:
            ConfigurationError: one does.
        """
        for wing in self._read_states(name for name in self._tables if name not in self._on):
            if wing.filled:
                raise ConfigurationError(
                    f"The wing {wing.name!r} is off and holds rows ({', '.join(wing.filled)}): switch it on by "
                    f"ENGRAM_WINGS, or remove them by `engram wing clear {wing.name}`."
                )

    def examine(self) -> Iterator[CheckResult]:
        """Check what ``check`` does, for the doctor."""
        try:
            self.check()
        except ConfigurationError as error:
            yield CheckResult("wings", "wrong", error.detail)
        else:
            yield CheckResult("wings", "ok", f"on: {', '.join(sorted(self._on)) or 'none'}")

    def find(self, name: str) -> WingState:
        """Find a wing that may be cleared.

        Raises:
            NotFoundError: no such wing is installed.
            ConflictError: it is on.
        """
        if name not in self._tables:
            raise NotFoundError(f"There is no wing {name!r}; installed are {', '.join(self._tables)}.")
        if name in self._on:
            raise ConflictError(f"The wing {name!r} is on. Stop the service, and switch it off by ENGRAM_WINGS.")
        (wing,) = self._read_states([name])
        return wing

    def clear(self, name: str) -> WingState:
        """Remove all rows of a wing, of every collection and tenant; returns the wing as it was.

        Raises:
            NotFoundError, ConflictError: as ``find``.
        """
        wing = self.find(name)
        if wing.filled:
            with tenancy.allow_all_tenants(), self._database.write() as writer:
                wing_tables.empty(writer, wing.tables)
        return wing

    def _read_states(self, names: Iterable[str]) -> list[WingState]:
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            return [
                WingState(name, name in self._on, tables, wing_tables.list_filled(reader, tables))
                for name in names
                for tables in (self._tables[name],)
            ]
