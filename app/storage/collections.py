"""Collections, and the encoder whose vectors the database holds."""

from dataclasses import dataclass

from app.errors import ConfigurationError, EmbeddingSpaceMismatchError, NotFoundError
from app.storage.database import Reader, Writer


@dataclass(frozen=True, slots=True)
class Collection:
    """One tenant's corpus and what it holds."""

    id: int
    name: str
    passage_count: int
    sentence_count: int
    entity_count: int


COLUMNS = "id, name, passage_count, sentence_count, entity_count"


def find(reader: Reader, name: str) -> Collection:
    """The collection called ``name``.

    Raises:
        NotFoundError: there is none.
    """
    row = reader.row(f"SELECT {COLUMNS} FROM collection WHERE name = %(name)s", {"name": name})
    if row is None:
        raise NotFoundError(f"There is no collection {name!r}.")
    return Collection(*row)


def find_or_create(writer: Writer, name: str) -> Collection:
    """The collection called ``name``, made if it does not exist."""
    writer.execute("INSERT INTO collection (name) VALUES (%(name)s) ON CONFLICT (name) DO NOTHING", {"name": name})
    return find(writer, name)


def page(reader: Reader, after: str | None, limit: int) -> list[Collection]:
    """Collections in name order, those after ``after``."""
    rows = reader.rows(
        f"SELECT {COLUMNS} FROM collection WHERE name > %(after)s ORDER BY name LIMIT %(limit)s",
        {"after": after or "", "limit": limit},
    )
    return [Collection(*row) for row in rows]


def delete(writer: Writer, name: str) -> bool:
    """Remove the collection and everything in it; whether there was one."""
    return writer.execute("DELETE FROM collection WHERE name = %(name)s", {"name": name}) > 0


def claim_embedding_space(writer: Writer, model: str, fingerprint: str, dimension: int) -> None:
    """Record the encoder on first use, and refuse another one ever after.

    Raises:
        EmbeddingSpaceMismatchError: the database holds vectors of another encoder.
        ConfigurationError: the schema was migrated for another dimension.
    """
    columns = writer.scalar(
        "SELECT atttypmod FROM pg_attribute WHERE attrelid = 'sentence'::regclass AND attname = 'embedding'"
    )
    if columns != dimension:
        raise ConfigurationError(
            f"The database was migrated for {columns}-dimensional vectors, but {model} gives {dimension}. "
            "Set ENGRAM_EMBEDDING_DIMENSION before migrating a new database."
        )
    writer.execute(
        """
        INSERT INTO embedding_space (model, fingerprint, dimension)
        VALUES (%(model)s, %(fingerprint)s, %(dimension)s)
        ON CONFLICT DO NOTHING
        """,
        {"model": model, "fingerprint": fingerprint, "dimension": dimension},
    )
    held = writer.row("SELECT model, fingerprint FROM embedding_space")
    if held is not None and held.fingerprint != fingerprint:
        raise EmbeddingSpaceMismatchError(
            f"The database holds vectors of {held.model} ({held.fingerprint[:12]}), but the configured "
            f"encoder is {model} ({fingerprint[:12]}). Use the first, or ingest into a new database."
        )
