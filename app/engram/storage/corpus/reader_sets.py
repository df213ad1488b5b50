"""Sets of readers: who may read a passage. Row security compares them with what a caller is."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from engram.context import tenancy
from engram.context.errors import ConfigurationError
from engram.storage import row_security
from engram.storage.column_parameters import decode_column, integers
from engram.storage.corpus import current_vectors
from engram.storage.corpus.collections import Collection
from engram.storage.database import READER_ROLE, Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, join_by_index

Readers = tuple[str, ...]
"""In order, each once."""
SETS_OF_CALLER = "(SELECT nullif(current_setting('engram.reader_sets', true), '')::bigint[])::bigint[]"
"""SQL for the sets whose passages the caller sees besides those for everyone; null for one who sees all."""
PASSAGES_OF_CALLER = f"""(
    SELECT p.* FROM passage p WHERE p.collection_id = %(collection)s AND p.reader_set_id IS NULL
    UNION ALL
    SELECT p.* FROM unnest({SETS_OF_CALLER}) AS own(id)
    {join_by_index("passage p", "p.reader_set_id = own.id")}
)"""
"""SQL for the passages that a caller with readers sees, without a look at those that are hidden."""


def make(writer: Writer, collection_id: int, lists: Iterable[Readers]) -> dict[Readers, int]:
    """Return each list's set, made where it is new.

    Raises:
        ConfigurationError: the database cannot keep readers apart: it lacks the role.
    """
    by_digest = {_digest(readers): readers for readers in lists}
    if not by_digest:
        return {}
    _check_role(writer)
    for digest, readers in sorted(by_digest.items()):
        writer.execute(
            """
            INSERT INTO reader_set (collection_id, digest, readers)
            VALUES (%(collection)s, %(digest)s, %(readers)s::text[]) ON CONFLICT DO NOTHING
            """,
            {"collection": collection_id, "digest": digest, "readers": list(readers)},
        )
    rows = writer.rows(
        """
        SELECT digest, id FROM reader_set
        WHERE collection_id = %(collection)s AND digest = ANY (%(digests)s::bytea[])
        """,
        {"collection": collection_id, "digests": list(by_digest)},
    )
    return {by_digest[row.digest]: row.id for row in rows}


def assign(writer: Writer, collection_id: int, reader_set: int | None, passages: Sequence[int]) -> list[int]:
    """Give passages this set, with all rows that carry it; those that had another one. None: everyone may read.

    Whoever calls it holds the graph's lock.
    """
    changed = writer.rows(
        f"""
        UPDATE passage SET reader_set_id = %(set)s, updated_at = now() FROM {WANTED_IDS}
        WHERE passage.collection_id = wanted.collection_id AND passage.id = wanted.id
          AND passage.reader_set_id IS DISTINCT FROM %(set)s::bigint
        RETURNING passage.id
        """,
        {"collection": collection_id, "set": reader_set, "ids": integers(passages)},
    )
    ids = [row.id for row in changed]
    if not ids:
        return []
    parameters = {"collection": collection_id, "set": reader_set, "ids": integers(ids)}
    sentences = writer.rows(
        f"SELECT s.id FROM {WANTED_IDS} {join_by_index('sentence s', 's.passage_id = wanted.id')}", parameters
    )
    current_vectors.renew_if_supporting(writer, collection_id, [row.id for row in sentences])
    for table in ("sentence", "entity_sentence"):
        writer.execute(
            f"""
            UPDATE {table} SET reader_set_id = %(set)s FROM {WANTED_IDS}
            WHERE {table}.collection_id = wanted.collection_id AND {table}.passage_id = wanted.id
            """,
            parameters,
        )
    writer.execute(
        f"""
        UPDATE lexical_posting SET reader_set_id = %(set)s FROM (
            SELECT wanted.collection_id, wanted.id, term.id AS term_id
            FROM {WANTED_IDS} {join_by_index("lexical_passage held", "held.passage_id = wanted.id")}
            CROSS JOIN unnest(held.term_ids) AS term(id)
        ) AS wanted
        WHERE lexical_posting.collection_id = wanted.collection_id
          AND lexical_posting.term_id = wanted.term_id AND lexical_posting.passage_id = wanted.id
        """,
        parameters,
    )
    current_vectors.renew_base_version(writer, collection_id)
    return ids


def load(reader: Reader, collection_id: int, passages: Sequence[int]) -> dict[int, Readers | None]:
    """Passage -> who may read it, None for everyone; of the passages that the caller sees."""
    rows = reader.rows(
        f"""
        SELECT p.id, s.readers FROM {WANTED_IDS} {join_by_index("passage p", "p.id = wanted.id")}
        {join_by_index("reader_set s", "s.id = p.reader_set_id", outer=True)}
        """,
        {"collection": collection_id, "ids": integers(passages)},
    )
    return {row.id: None if row.readers is None else tuple(row.readers) for row in rows}


def list_visible(reader: Reader, collection_id: int, most: int) -> list[int] | None:
    """Passages that the caller sees, in id order; None if they are more than ``most``."""
    row = reader.row(
        f"""
        SELECT array_send(array_agg(id ORDER BY id)) AS ids FROM (
            (SELECT id FROM passage WHERE collection_id = %(collection)s AND reader_set_id IS NULL LIMIT %(limit)s)
            UNION ALL
            (SELECT id FROM passage WHERE collection_id = %(collection)s
                AND reader_set_id = ANY ({SETS_OF_CALLER}) LIMIT %(limit)s)
        ) AS seen
        """,
        {"collection": collection_id, "limit": most + 1},
    )
    ids: list[int] = decode_column(row.ids, np.int64).tolist()
    return ids if len(ids) <= most else None


def sees_small_share(reader: Reader, collection: Collection, rows_per_search: int) -> bool:
    """Whether to search all ``collection.passage_count`` passages that the caller sees is cheaper than an index.

    A search through the index meets more hidden entries the fewer of all the caller sees. Not on a cluster.

    Args:
        rows_per_search: passages that are compared in the time of a search by an index, where all are seen.
    """
    return not reader.distributed and bool(
        reader.scalar(
            """
            SELECT passage_count * %(rows)s::float8 >= %(seen)s::float8 * %(seen)s::float8
            FROM collection WHERE id = %(collection)s
            """,
            {"collection": collection.id, "seen": collection.passage_count, "rows": rows_per_search},
        )
    )


def list_of_siblings(reader: Reader, collection_id: int, external_id: str, source: str | None) -> list[Readers]:
    """Lists of readers that passages of the same document have.

    These are passages of the document ``source``, and of that which the id names, as ``handbook.pdf#3`` does. Ids
    that begin as this one does are of it as well.
    """
    document, separator, _ = external_id.rpartition("#")
    sources = {source} | ({document} if separator else set())
    rows = reader.rows(
        """
        SELECT s.readers FROM (
            SELECT p.reader_set_id AS id FROM passage p
            WHERE %(prefix)s::text <> '' AND p.collection_id = %(collection)s
              AND starts_with(p.external_id, %(prefix)s) AND p.external_id >= %(prefix)s
              AND p.reader_set_id IS NOT NULL
            UNION
            SELECT p.reader_set_id FROM document d
            JOIN passage p ON p.collection_id = d.collection_id AND p.document_id = d.id
            WHERE d.collection_id = %(collection)s AND d.source = ANY (%(sources)s::text[])
              AND p.reader_set_id IS NOT NULL
        ) AS held JOIN reader_set s ON s.collection_id = %(collection)s AND s.id = held.id
        """,
        {
            "collection": collection_id,
            "prefix": f"{document}#" if separator else "",
            "sources": [one for one in sources if one is not None],
        },
    )
    return [tuple(row.readers) for row in rows]


def find_bound_version(reader: Reader, collection_id: int) -> str | None:
    """Return the version of what callers see of a collection; None if all of them see all of it."""
    version: str | None = reader.scalar(
        """
        SELECT keys_version::text FROM collection c WHERE c.id = %(collection)s
            AND EXISTS (SELECT FROM reader_set WHERE collection_id = c.id)
        """,
        {"collection": collection_id},
    )
    return version


def count_languages(reader: Reader, collection_id: int) -> dict[str, int]:
    """Language -> passages of it that the caller sees, most first."""
    rows = reader.rows(
        """
        SELECT language, count(*) AS passages FROM passage
        WHERE collection_id = %(collection)s GROUP BY 1 ORDER BY 2 DESC, 1
        """,
        {"collection": collection_id},
    )
    return {row.language: row.passages for row in rows}


def describe_visible(reader: Reader, collection: Collection) -> Collection:
    """The collection with the counts of what the caller sees of it, to be shown."""
    if tenancy.get_visibility().readers is None or not is_bound(reader, collection.id):
        return collection
    counts = reader.row(
        """
        SELECT (SELECT count(*) FROM passage WHERE collection_id = %(collection)s) AS passages,
               (SELECT count(*) FROM sentence WHERE collection_id = %(collection)s) AS sentences,
               (SELECT count(*) FROM entity WHERE collection_id = %(collection)s) AS entities,
               (SELECT coalesce(jsonb_object_agg(language, passages), '{}') FROM (
                    SELECT language, count(*) AS passages FROM passage
                    WHERE collection_id = %(collection)s GROUP BY 1 ORDER BY 2 DESC, 1
               ) AS counted) AS languages
        """,
        {"collection": collection.id},
    )
    return replace(
        collection,
        passage_count=counts.passages,
        sentence_count=counts.sentences,
        entity_count=counts.entities,
        languages=counts.languages,
        indexed=(),
        index_recall={},
        is_whole=False,
    )


def is_bound(reader: Reader, collection_id: int) -> bool:
    """Whether a passage of the collection has readers, or had."""
    return bool(
        reader.scalar(
            "SELECT EXISTS (SELECT FROM reader_set WHERE collection_id = %(collection)s)",
            {"collection": collection_id},
        )
    )


def exist(reader: Reader, tenant: str) -> bool:
    """Whether a passage of the tenant has readers, or had."""
    statement = """
        SELECT s.id FROM reader_set s JOIN collection c ON c.id = s.collection_id
        WHERE c.tenant = %(tenant)s LIMIT 1
    """
    return reader.scalar(statement, {"tenant": tenant}) is not None


def _digest(readers: Readers) -> bytes:
    return hashlib.sha256("\0".join(readers).encode()).digest() if readers else bytes(32)


def _check_role(reader: Reader) -> None:
    role = reader.row(
        """
        SELECT pg_has_role(oid, 'MEMBER') AND NOT rolsuper AND NOT rolbypassrls AS is_bound FROM pg_roles
        WHERE rolname = %(role)s
        """,
        {"role": READER_ROLE},
    )
    if role is None or not role.is_bound or row_security.list_unbound(reader):
        raise ConfigurationError(
            f"Readers of passages need the role {READER_ROLE}, bound by policies and granted to the service's own: "
            "docs/access.md says how an administrator makes it."
        )
