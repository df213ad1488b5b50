"""Standing of a database's schema against this version."""

from functools import cache
from pathlib import Path
from typing import Literal

from alembic.script import ScriptDirectory

import engram.migrations
from engram.storage.database import Reader

Standing = Literal["current", "behind", "newer"]


def load_standing(reader: Reader) -> Standing:
    """Return the schema's standing; "newer" is a revision that this version does not know.

    Raises:
        ConfigurationError: it was never migrated.
    """
    head, known = _revisions()
    row = reader.row("SELECT version_num FROM alembic_version")
    if row is None or (row.version_num != head and row.version_num in known):
        return "behind"
    return "current" if row.version_num == head else "newer"


@cache
def _revisions() -> tuple[str, frozenset[str]]:
    """The last revision, and all of them."""
    scripts = ScriptDirectory(str(Path(engram.migrations.__file__).parent))
    (head,) = scripts.get_heads()
    return head, frozenset(script.revision for script in scripts.walk_revisions())
