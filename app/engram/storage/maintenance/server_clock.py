"""The clock of Postgres, which all processes share."""

from datetime import datetime

from engram.storage.database import Reader


def present(reader: Reader) -> datetime:
    """Return the present moment, with its zone: that of the call, not of the transaction's begin."""
    moment: datetime = reader.scalar("SELECT clock_timestamp()")
    return moment
