"""The environment of processes that tests start."""

import os

PRECISION = "float32"
"""In which all tests embed. No figure depends on the processor then, and every process serves their collections."""


WINGS = os.environ.setdefault("TESTED_WINGS", os.environ.get("ENGRAM_WINGS", "all"))
"""Wings that are on in the applications of tests, told by this name to processes that run them side by side."""


def drop_settings() -> dict[str, str]:
    """The environment without settings of Engram."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("ENGRAM_", "DATABASE_"))}


def inherit_environment() -> dict[str, str]:
    """The environment without settings of Engram, but for the precision of all tests."""
    return drop_settings() | {"ENGRAM_EMBEDDING_PRECISION": PRECISION}
