"""Receipts of erasures on the wire."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import Field

from engram.api.schemas import ResponseModel
from engram.services.erasure.erasure_service import ErasureReceipt


class BackupOut(ResponseModel):
    """A backup that was made before an erasure."""

    folder: str
    made_at: datetime


class ErasureOut(ResponseModel):
    """Receipt of an erasure. It has no personal data."""

    id: UUID = Field(description="Of the job that erased.")
    kind: Literal["query", "judge", "principal", "span"]
    salt: str | None = Field(description="In hexadecimal.")
    digest: str | None = Field(
        description="SHA-256 of salt and name, in hexadecimal, by which the name is found in an old backup."
    )
    queries: list[UUID]
    since: datetime | None
    before: datetime | None
    anonymised: bool
    removed: dict[str, int] = Field(description="Table -> rows that were removed or made anonymous.")
    backups: list[BackupOut] = Field(description="Backups that still have what was erased.")
    erased_at: datetime

    @classmethod
    def from_service(cls, receipt: ErasureReceipt) -> "ErasureOut":
        """The receipt with bytes as text."""
        texts: dict[str, Any] = {
            name: None if value is None else value.hex()
            for name, value in (("salt", receipt.salt), ("digest", receipt.digest))
        }
        return cls.combine(receipt, **texts)


class ErasuresOut(ResponseModel):
    """The receipts of a collection, oldest first."""

    collection: str
    erasures: list[ErasureOut]
