"""Engram: retrieval that learns from being used."""

from typing import Any


def __getattr__(name: str) -> Any:
    """``__version__``, looked up when asked for: the look-up imports more than a command needs to start."""
    if name != "__version__":
        raise AttributeError(name)
    from importlib.metadata import version

    return version("engram")
