"""Servers of this machine, as a wing may run them."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from engram.config.settings import Settings


class LocalServers(Protocol):
    """Runs Postgres and Redis in the data directory, where no address of them is configured."""

    def open_postgres(self, settings: Settings, *, make: bool) -> AbstractContextManager[str]:
        """Run the data directory's Postgres, and give its URL.

        Args:
            settings: name the data directory.
            make: create the database if it does not exist.

        Raises:
            ConfigurationError: there is no database and ``make`` is false, or its folder, its user or its programs
                cannot be used.
            UnavailableError: the server ended or hung while starting.
        """
        ...

    def open_redis(self, settings: Settings) -> AbstractContextManager[str]:
        """Run the data directory's Redis, and give its URL.

        Raises:
            ConfigurationError: its folder or its programs cannot be used.
            UnavailableError: the server ended or hung while starting.
        """
        ...

    def open_empty_postgres(self, settings: Settings, folder: Path) -> AbstractContextManager[str]:
        """Run a Postgres of its own in an empty folder, and give its URL.

        Raises:
            ConfigurationError: the folder, the user or the programs of Postgres cannot be used.
            UnavailableError: the server ended or hung while starting.
        """
        ...

    def holds(self, settings: Settings, database_url: str) -> bool:
        """Tell whether a database is the data directory's, whichever process started its server."""
        ...

    def find_programs(self) -> Path:
        """Find the folder of Postgres's own programs, such as ``pg_dump``.

        Raises:
            ConfigurationError: there are none for this platform.
        """
        ...
