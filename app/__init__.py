"""Engram: retrieval that learns from being used."""

from importlib.metadata import version

__version__ = version("engram")
