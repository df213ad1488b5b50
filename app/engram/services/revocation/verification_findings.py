"""Findings of a verification: bitwise differences of stored and replayed rows, and a checksum of each table."""

import hashlib
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engram.core.learning.caps import GainBudget
from engram.core.learning.states import Audit

TOLERANCE = 1e-9
"""Of what goes through exponentials and matrix products."""
TABLES = (
    "question",
    "question_support",
    "memory_audit",
    "learned_weights",
    "weight_audit",
)
"""Of what verdicts teach."""


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A row that the log does not lead to; ``row`` says which, in the table's own words."""

    table: str
    row: str
    reason: str


@dataclass(frozen=True, slots=True)
class CheckedTable:
    """A table's rows of one collection; ``checksum`` is SHA-256 over them as they are stored, in hexadecimal."""

    table: str
    rows: int
    checksum: str


@dataclass(frozen=True, slots=True)
class VerificationReport:
    """Report on one collection; ``difference_count`` counts all differences, of which some are listed."""

    collection: str
    tables: list[CheckedTable]
    differences: list[RowDifference]
    difference_count: int

    @property
    def clean(self) -> bool:
        """Whether everything learned follows from the log."""
        return self.difference_count == 0

    @property
    def rows(self) -> int:
        """Number of compared rows."""
        return sum(table.rows for table in self.tables)


@dataclass(slots=True)
class Findings:
    """Findings so far, of these tables."""

    most: int
    tables: Sequence[str]
    differences: list[RowDifference] = field(default_factory=list)
    count: int = 0
    rows: dict[str, int] = field(init=False)
    digests: dict[str, Any] = field(init=False)

    def __post_init__(self) -> None:
        self.rows = dict.fromkeys(self.tables, 0)
        self.digests = {table: hashlib.sha256() for table in self.tables}

    def differs(self, table: str, row: str, reason: str) -> None:
        """Note a row that is not what it ought to be."""
        self.count += 1
        if len(self.differences) < self.most:
            self.differences.append(RowDifference(table, row, reason))

    def add(self, table: str, *values: object) -> None:
        """Count a stored row into the table's checksum."""
        self.rows[table] += 1
        self.digests[table].update(b"".join(map(pack_value, values)))

    def compare(
        self, table: str, stored: Mapping[Any, object], replayed: Mapping[Any, object], name: str = "{}"
    ) -> None:
        """Compare rows by their keys, which ``name`` puts in words."""
        for key in sorted(stored.keys() | replayed.keys()):
            row = name.format(*key) if isinstance(key, tuple) else name.format(key)
            if key not in stored:
                self.differs(table, row, "is missing")
            elif key not in replayed:
                self.differs(table, row, "no event that counts leads to it")
            else:
                wrong = columns(stored[key], replayed[key])
                if wrong:
                    self.differs(table, row, wrong)

    def report_corrections(self, corrected: Sequence[Audit]) -> None:
        """Note audit rows that a replay corrects."""
        for row in corrected:
            name = f"event {row.event_id}, sentence {row.sentence_id}, {row.channel}"
            self.differs("memory_audit", name, "gain, residual or perplexities are not what a replay gives")

    def report(self, collection: str) -> VerificationReport:
        """All of it."""
        checked = [CheckedTable(table, self.rows[table], self.digests[table].hexdigest()) for table in self.tables]
        return VerificationReport(collection, checked, self.differences, self.count)


def values(row: Any) -> list[object]:
    """Return the values of a row, column by column."""
    return list(_list_columns(row).values())


def _list_columns(row: Any) -> dict[str, object]:
    return row if isinstance(row, dict) else {name: getattr(row, name) for name in row.__slots__}


def columns(stored: object, replayed: object) -> str:
    """Describe the columns that differ, with short values; empty if none does."""
    wrong = []
    expected = _list_columns(replayed)
    for name, value in _list_columns(stored).items():
        if pack_value(value) != pack_value(expected[name]):
            short = all(isinstance(v, int | float | str) for v in (value, expected[name]))
            wrong.append(f"{name} is {value!r}, replayed {expected[name]!r}" if short else f"{name} differs")
    return "; ".join(wrong)


def pack_value(value: object) -> bytes:
    """A value to the last bit, with its kind, so that no two rows run together."""
    match value:
        case bool():
            encoded = b"?" + bytes([value])
        case int():
            encoded = b"i" + struct.pack("<q", value)
        case float():
            encoded = b"d" + struct.pack("<d", value)
        case bytes():
            encoded = b"b" + struct.pack("<q", len(value)) + value
        case str():
            encoded = pack_value(value.encode())
        case np.ndarray():
            encoded = pack_value(np.ascontiguousarray(value).tobytes())
        case dict():
            encoded = pack_value(list(value.values()))
        case GainBudget():
            encoded = pack_value([value.day, value.remaining_shares])
        case list() | tuple():
            encoded = b"[" + struct.pack("<q", len(value)) + b"".join(map(pack_value, value))
        case _:
            raise TypeError(f"a {type(value).__name__} is no value of a row")
    return encoded
