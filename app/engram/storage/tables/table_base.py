"""Metadata of all tables, and columns and constraints that recur."""

from sqlalchemy import (
    TIMESTAMP,
    BigInteger,
    Column,
    ForeignKeyConstraint,
    Integer,
    MetaData,
    func,
    text,
)

metadata = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(referred_table_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    }
)


def tenant() -> Column[int]:
    return Column("collection_id", BigInteger, nullable=False)


def space() -> Column[int]:
    return Column(
        "space",
        Integer,
        nullable=False,
        server_default=text("0"),
        comment="Of the collection's, that its vectors are of.",
    )


def build_timestamp_column(name: str) -> Column[object]:
    return Column(name, TIMESTAMP(timezone=True), nullable=False, server_default=func.now())


def parent_key(parent: str, *columns: str, references: str = "id") -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        ["collection_id", *columns], [f"{parent}.collection_id", f"{parent}.{references}"], ondelete="CASCADE"
    )
