"""Wings and what they hold: rows of tables, settings of collections, and open jobs.

A wing is off only while it holds nothing.

Nothing looks after the rows of a wing that is off: they would keep the text of passages that are deleted meanwhile.
Settings of one would look as if they were followed, and its jobs would wait for ever.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engram.context import tenancy
from engram.context.errors import ConfigurationError, ConflictError, NotFoundError
from engram.storage.corpus import collections
from engram.storage.database import Database, Reader, Writer
from engram.storage.maintenance import wing_tables

NAMED_COLLECTIONS = 5
"""Most collections that are named of those that hold a wing's settings."""


@dataclass(frozen=True, slots=True)
class WingHoldings:
    """Tables, settings and jobs in which a wing may hold something.

    Attributes:
        tables: names of its tables.
        settings: its settings of collections, by the names of their columns in table ``collection``.
        jobs: names of its kinds of jobs.
        forget: removes what the core's tables say of its rows, when it is cleared.
    """

    tables: Sequence[str] = ()
    settings: Sequence[str] = ()
    jobs: Sequence[str] = ()
    forget: Callable[[Writer], None] | None = None


@dataclass(frozen=True, slots=True)
class WingStatus:
    """Whether a wing is on, and what it holds.

    Attributes:
        tables: those of its tables that hold rows.
        collections: names of the first collections that hold settings of it.
        further_collections: whether there are more.
        jobs: those of its kinds of jobs of which some are open.
    """

    name: str
    is_on: bool
    tables: Sequence[str]
    collections: Sequence[str]
    further_collections: bool
    jobs: Sequence[str]

    @property
    def held(self) -> str:
        """Rows, settings and open jobs that it holds, in words; "" for nothing."""
        rows = f"rows ({', '.join(self.tables)})" if self.tables else ""
        ending = " and others" if self.further_collections else ""
        settings = f"settings of collections ({', '.join(self.collections)}{ending})" if self.collections else ""
        jobs = f"open jobs ({', '.join(self.jobs)})" if self.jobs else ""
        return " and ".join(filter(None, (rows, settings, jobs)))


@dataclass(frozen=True, slots=True)
class Cleared:
    """Removed things: rows of these tables, settings of this many collections, and jobs of these kinds."""

    tables: Sequence[str] = ()
    collections: int = 0
    jobs: Sequence[str] = ()


class WingClearingService:
    """Tells which wings hold something, and clears those that are off.

    Args:
        places: of each installed wing, by its name.
        on: names of the wings that are on.
    """

    def __init__(self, database: Database, places: Mapping[str, WingHoldings], on: Sequence[str]) -> None:
        self._database = database
        self._places = places
        self._on = frozenset(on)

    def list_wings(self) -> list[WingStatus]:
        """List the installed wings."""
        return self._read_states(self._places)

    def check(self) -> None:
        """See that wings that are off hold nothing.

        Raises:
            ConfigurationError: one does.
        """
        for wing in self._read_states(name for name in self._places if name not in self._on):
            if wing.held:
                raise ConfigurationError(
                    f"The wing {wing.name!r} is off and holds {wing.held}: switch it on by ENGRAM_WINGS, or remove "
                    f"them by `engram wing clear {wing.name}`."
                )

    def find(self, wing_name: str) -> WingStatus:
        """Find a wing that may be cleared.

        Raises:
            NotFoundError: no such wing is installed.
            ConflictError: it is on.
        """
        if wing_name not in self._places:
            raise NotFoundError(f"There is no wing {wing_name!r}; installed are {', '.join(self._places)}.")
        if wing_name in self._on:
            raise ConflictError(
                f"The wing {wing_name!r} is on. Stop the service, and switch it off by ENGRAM_WINGS."
            )
        (wing,) = self._read_states([wing_name])
        return wing

    def clear(self, wing_name: str) -> Cleared:
        """Remove all that a wing holds, of every collection and tenant.

        Raises:
            NotFoundError, ConflictError: as ``find``.
        """
        wing = self.find(wing_name)
        if not wing.held:
            return Cleared()
        places = self._places[wing_name]
        with tenancy.allow_all_tenants(), self._database.write() as writer:
            if wing.tables:
                wing_tables.empty(writer, places.tables)
            if places.forget is not None:
                places.forget(writer)
            cleared = collections.clear_settings(writer, places.settings) if wing.collections else 0
            if wing.jobs:
                wing_tables.remove_jobs(writer, places.jobs)
        return Cleared(wing.tables, cleared, wing.jobs)

    def _read_states(self, names: Iterable[str]) -> list[WingStatus]:
        with tenancy.allow_all_tenants(), self._database.read() as reader:
            return [self._read_state(reader, name) for name in names]

    def _read_state(self, reader: Reader, name: str) -> WingStatus:
        places = self._places[name]
        holding = (
            collections.list_holding_settings(reader, places.settings, NAMED_COLLECTIONS + 1)
            if places.settings
            else []
        )
        return WingStatus(
            name,
            is_on=name in self._on,
            tables=wing_tables.list_filled(reader, places.tables),
            collections=holding[:NAMED_COLLECTIONS],
            further_collections=len(holding) > NAMED_COLLECTIONS,
            jobs=wing_tables.list_open_jobs(reader, places.jobs) if places.jobs else [],
        )
