"""Find Postgres and Redis: as configured, or on this machine."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from engram.composition.local_servers import LocalServers
from engram.composition.servers import Servers
from engram.composition.wings import find_local_servers, list_installed_wings
from engram.config.settings import Settings
from engram.context.errors import ConfigurationError


@contextmanager
def servers(settings: Settings, *, make: bool = True) -> Iterator[Servers]:
    """Yield the configured servers, or those of this machine where none is configured.

    Args:
        settings: name the servers or the data directory.
        make: create the database of this machine if it does not exist.

    Raises:
        ConfigurationError: the database does not exist and ``make`` is false, a server cannot start, or no wing
            that is on runs servers.
        UnavailableError: a server cannot start.
    """
    with ExitStack() as stack:
        if settings.database_url:
            database_url = settings.database_url.get_secret_value()
        else:
            local = require_local_servers(settings)
            database_url = stack.enter_context(local.open_postgres(settings, make=make))
        if settings.redis_url:
            redis_url = settings.redis_url.get_secret_value()
        else:
            redis_url = stack.enter_context(require_local_servers(settings).open_redis(settings))
        yield Servers(database_url, redis_url)


def require_local_servers(settings: Settings) -> LocalServers:
    """Return what runs servers on this machine.

    Raises:
        ConfigurationError: no wing that is on does.
    """
    factory = find_local_servers(settings.wings, list_installed_wings())
    if factory is None:
        raise ConfigurationError(
            "No wing that is on runs servers on this machine: set DATABASE_URL and REDIS_URL, or add the wing "
            "'local' to ENGRAM_WINGS."
        )
    return factory
