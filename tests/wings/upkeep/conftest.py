"""Databases of their own, as the tests of storage have them."""

from tests.storage.conftest import empty_database

__all__ = ["empty_database"]
