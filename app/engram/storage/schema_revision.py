"""Bringing a database's schema to a revision."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
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
    """Upgrade or downgrade to ``revision``; "base" removes the schema with all data, "-1" goes back one revision.

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
            if _is_earlier(config, revision):
                command.downgrade(config, revision)
    except CommandError as error:
        raise ConfigurationError(f"migration: {error}") from error
    except exc.OperationalError as error:
        raise UnavailableError(f"Postgres: {error.orig}") from error
    reached: str | None = config.attributes["reached"]
    return reached


def _is_earlier(config: Config, revision: str) -> bool:
    """Whether the database is past ``revision``, so that an upgrade to it did nothing."""
    if revision.startswith("+"):
        return False
    target = ScriptDirectory.from_config(config).get_revision(revision)
    reached: str | None = config.attributes["reached"]
    return target is not None and target.revision != reached
