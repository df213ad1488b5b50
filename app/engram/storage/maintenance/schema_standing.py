"""Standing of a database's schema against this version."""

from functools import cache
from pathlib import Path
from typing import Literal

from alembic.script import ScriptDirectory

import engram.migrations
from engram.context.errors import ConfigurationError
from engram.storage.database import Reader
from engram.storage.postgres_errors import NOT_MIGRATED

Standing = Literal["current", "behind", "newer", "unknown"]


def load_standing(reader: Reader) -> Standing:
    """Return the schema's standing.

    Both "newer" and "unknown" are revisions that this version does not know; it works on a newer one. The
    migration left a comment that says which is the oldest revision whose code still works.

    Raises:
        ConfigurationError: it was never migrated.
    """
    head, known = _revisions()
    row = reader.row(
        """
        SELECT version_num, obj_description('alembic_version'::regclass, 'pg_class') AS oldest_code
        FROM alembic_version
        """
    )
    if row is None or (row.version_num != head and row.version_num in known):
        return "behind"
    if row.version_num == head:
        return "current"
    return "newer" if row.oldest_code in known else "unknown"


def check_standing(reader: Reader) -> None:
    """Check that this version works on the schema.

    Raises:
        ConfigurationError: it does not.
    """
    standing = load_standing(reader)
    if standing == "behind":
        raise ConfigurationError(NOT_MIGRATED)
    if standing == "unknown":
        raise ConfigurationError("The database has the schema of a later version, on which this one does not work.")


@cache
def _revisions() -> tuple[str, frozenset[str]]:
    """The last revision, and all of them."""
    scripts = ScriptDirectory(str(Path(engram.migrations.__file__).parent))
    (head,) = scripts.get_heads()
    return head, frozenset(script.revision for script in scripts.walk_revisions())
