"""The schema that the tables of the core and the wings define, as SQL."""

import re
from collections.abc import Iterable, Iterator

from sqlalchemy import Table
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.schema import (
    AddConstraint,
    CreateIndex,
    CreateSequence,
    CreateTable,
    ExecutableDDLElement,
    SetColumnComment,
    SetTableComment,
)

from engram.composition.wings import load_tables
from engram.storage.tables import list_sequences, metadata

FIRST_TENANT = """\
-- The tenant of requests without a key

INSERT INTO tenant (name) VALUES ('local');
"""
# Other styles of parameters write a percent sign twice.
_DIALECT = PGDialect(paramstyle="named")  # type: ignore[no-untyped-call]


def render() -> str:
    """Return SQL that creates every sequence and table, and the first tenant.

    Tables come in the order in which ``engram.storage.tables`` and then the wings define them.
    """
    load_tables()
    tables = metadata.tables.values()
    sequences = [_compile(CreateSequence(sequence)) for sequence in list_sequences()]
    references = [
        _compile(AddConstraint(key))
        for table in tables
        for key in sorted(table.foreign_key_constraints, key=lambda key: str(key.name))
    ]
    parts = [
        _join(sequences),
        *(_join(_list_statements(table)) for table in tables),
        "-- References\n",
        _join(references),
        FIRST_TENANT,
    ]
    return "\n".join(parts)


def _list_statements(table: Table) -> Iterator[str]:
    """Yield the statements of one table, without its foreign keys, which may lead to later tables."""
    yield _compile(CreateTable(table, include_foreign_key_constraints=[]))
    for column in table.columns:
        if "storage" in column.info:
            name = _DIALECT.identifier_preparer.format_column(column)
            yield f"ALTER TABLE {table.name} ALTER COLUMN {name} SET STORAGE {column.info['storage']}"
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        yield _compile(CreateIndex(index))
    if table.comment:
        yield _compile(SetTableComment(table))
    for column in table.columns:
        if column.comment:
            yield _compile(SetColumnComment(column))


def _compile(statement: ExecutableDDLElement) -> str:
    compiled = str(statement.compile(dialect=_DIALECT)).strip().expandtabs(4)
    return re.sub(r"\s*\n", "\n", compiled).replace("\n)\n ", "\n) ")


def _join(statements: Iterable[str]) -> str:
    return "".join(f"{statement};\n" for statement in statements)
