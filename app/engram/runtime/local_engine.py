"""The engine as commands that measure or fit run it: in this process, with no worker."""

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

from engram.context.errors import ConfigurationError

if TYPE_CHECKING:
    from engram.config.settings import Settings
    from engram.runtime.container import Application, Servers

EVALUATION_PACKAGES = ("ir_measures", "bm25s", "matplotlib")
"""Imports of the extra ``evaluation``, which ``make run`` does not install."""


def require_evaluation_packages() -> None:
    """Check, before anything is ingested, that what `engram evaluate` imports is installed.

    Raises:
        ConfigurationError: names the missing packages and the command that installs them.
    """
    missing = [name for name in EVALUATION_PACKAGES if find_spec(name) is None]
    if missing:
        raise ConfigurationError(
            f"`engram evaluate` needs {', '.join(missing)}. "
            f"Install them: {sys.executable} -m pip install 'engram[evaluation]'"
        )


@contextmanager
def engine(settings: "Settings") -> Iterator[tuple["Application", "Servers"]]:
    """An application ready for use and the servers it runs on; an embedded database is migrated first.

    Raises:
        ConfigurationError, UnavailableError: as the application's start does.
    """
    from engram.runtime.container import Application, servers
    from engram.storage.schema_revision import migrate
    from engram.telemetry import logs

    logs.configure(settings.log_format, "WARNING")  # a line per query would bury the progress bars
    with servers(settings) as addresses:
        if settings.database_url is None:
            migrate(addresses.database_url)
        with closing(Application(settings, addresses)) as services:
            services.check_encoders()
            yield services, addresses
