"""Engine of commands that measure or fit: it runs in this process, without a worker."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from engram.composition.container import Application, Servers
    from engram.config.settings import Settings


@contextmanager
def engine(settings: "Settings") -> Iterator[tuple["Application", "Servers"]]:
    """Open an application with its servers, for all tenants. An embedded database is migrated first.

    Raises:
        ConfigurationError, UnavailableError: as the application's start does.
    """
    from engram.composition.container import Application, servers
    from engram.context import tenancy
    from engram.storage.schema_revision import migrate
    from engram.telemetry import logs

    logs.configure(settings.log_format, "WARNING")  # a line per query would bury the progress bars
    with servers(settings) as addresses:
        if settings.database_url is None:
            migrate(addresses.database_url)
        with closing(Application(settings, addresses)) as services, tenancy.allow_all_tenants():
            services.startup.check_encoders()
            yield services, addresses
