"""Exporting what is stored of a person."""

from collections.abc import Iterator
from typing import Any

from engram.storage.database import Database
from engram.storage.erasure import person_export


class ExportService:
    """Reads what is stored of a person, on one snapshot."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def list_rows(self, tenant: str, person: str) -> Iterator[dict[str, Any]]:
        """The rows of every table that name a principal or judge of a tenant, each with its ``table``.

        Vectors, features and hashes are left out.
        """
        with self._database.read() as reader:
            yield from person_export.list_person_rows(reader, tenant, person)
