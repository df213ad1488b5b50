"""Metadata of all tables, and builders of the columns, keys and indexes that recur."""

from typing import Any, Literal

from pgvector.sqlalchemy import HALFVEC, VECTOR
from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    MetaData,
    Text,
    func,
    text,
)
from sqlalchemy.types import TypeEngine

Storage = Literal["MAIN", "EXTERNAL"]

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(referred_table_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    }
)


SENT_TEXT = "sent_text"
"""Key of ``Table.info``: the column with a text from callers that column ``embedding`` of the row is made of. The
row has a numeric ``id``; a change of encoder embeds the text as a question."""
NOBODY = "erased"
"""Principal of rows that stay without the person."""


def require(
    name: str,
    kind: type[TypeEngine[Any]] | TypeEngine[Any],
    *,
    default: str | None = None,
    comment: str | None = None,
    storage: Storage | None = None,
) -> Column[Any]:
    """Build a column that is never null.

    Args:
        default: an SQL expression; None: every row must give a value.
        storage: how Postgres keeps long values (``SET STORAGE``); None: by the type.
    """
    return Column(
        name,
        kind,
        nullable=False,
        server_default=None if default is None else text(default),
        comment=comment,
        info={} if storage is None else {"storage": storage},
    )


def build_id_column() -> Column[Any]:
    return Column("id", BigInteger, Identity(), nullable=False)


def build_collection_column() -> Column[Any]:
    """Build ``collection_id`` of a table that refers to its collection, and is emptied with it."""
    return Column("collection_id", BigInteger, ForeignKey("collection.id", ondelete="CASCADE"), nullable=False)


def build_inherited_collection_column() -> Column[Any]:
    """Build ``collection_id`` of a table whose parents refer to the collection, or that outlives it."""
    return require("collection_id", BigInteger)


def build_principal_column(comment: str = "The principal who made the request.") -> Column[Any]:
    return require("principal", Text, default="'local'", comment=comment)


def build_reader_set_column() -> Column[Any]:
    """Build the column that row security compares with the sets of readers that a caller belongs to."""
    return Column("reader_set_id", BigInteger, comment="Who may read the passage; null: everyone.")


def build_space_column() -> Column[Any]:
    return require("space", Integer, default="0", comment="The collection's space when the vectors were made.")


def build_timestamp_column(name: str) -> Column[Any]:
    return Column(name, TIMESTAMP(timezone=True), nullable=False, server_default=func.now())


def build_vector_column(name: str) -> Column[Any]:
    """Build a column of vectors that are read by the hundred, and so stay in the row (MAIN)."""
    return Column(name, VECTOR(), nullable=False, info={"storage": "MAIN"})


def build_half_vector_column(name: str, *, nullable: bool = False, comment: str | None = None) -> Column[Any]:
    """Build a column of vectors in half precision: of what there is most of, and that is only compared."""
    return Column(name, HALFVEC(), nullable=nullable, comment=comment, info={"storage": "MAIN"})


def build_parent_key(parent: str, column: str, *, parent_column: str = "id") -> ForeignKeyConstraint:
    """Build the foreign key (collection_id, column) with ON DELETE CASCADE."""
    return ForeignKeyConstraint(
        ["collection_id", column], [f"{parent}.collection_id", f"{parent}.{parent_column}"], ondelete="CASCADE"
    )


def build_partial_index(name: str, *columns: str, where: str, unique: bool = False) -> Index:
    """Build an index of the rows that meet a condition in SQL."""
    return Index(name, *columns, unique=unique, postgresql_where=text(where))
