"""Bringing a database's schema to a revision."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import exc

import engram.migrations
from engram.context.errors import ConfigurationError, UnavailableError


def configuration(database_url: str) -> Config:
    """Alembic's configuration for this project."""
    config = Config()
    config.set_main_option("script_location", str(Path(engram.migrations.__file__).parent))
    config.attributes["url"] = database_url
    return config


def migrate(database_url: str, revision: str = "head") -> str | None:
    """Upgrade to ``revision``; downgrade for "base", which removes the schema with all data, and "-1", "-2", ...

    Returns:
        The revision that it is at now; None without a schema.

    Raises:
        ConfigurationError: there is no such revision.
        UnavailableError: Postgres cannot be reached or a lock could not be had.
    """
    config = configuration(database_url)
    try:
        if revision == "base" or revision.startswith("-"):
            command.downgrade(config, revision)
        else:
            command.upgrade(config, revision)
    except CommandError as error:
        raise ConfigurationError(f"migration: {error}") from error
    except exc.OperationalError as error:
        raise UnavailableError(f"Postgres: {error.orig}") from error
    reached: str | None = config.attributes["reached"]
    return reached
