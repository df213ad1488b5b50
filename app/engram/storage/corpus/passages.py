"""Passages, and their sentences as they are read."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from engram.storage.column_parameters import decode_column, integers, vectors
from engram.storage.corpus import current_vectors
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index
from engram.storage.visible_documents import build_successor_column

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage as the database has it, without its vectors.

    Attributes:
        document: source of the document that it is made of; None: it came by itself.
        valid_from: since when the document holds; None: nothing tells it.
        valid_until: its last day; None: none is stated.
        replaced_by: source of the document that replaces it; None: none that the caller sees.
        readers: its list of readers, None in it: everyone; None: not read, or not for the caller.
    """

    id: int
    external_id: str
    title: str | None
    text: str
    metadata: dict[str, Any]
    language: str
    document: str | None = None
    valid_from: date | None = None
    valid_until: date | None = None
    replaced_by: str | None = None
    readers: list[list[str] | None] | None = None


@dataclass(frozen=True, slots=True)
class StoredSentence:
    """A sentence as the database has it, without its vectors."""

    id: int
    passage_id: int
    position: int
    text: str


@dataclass(frozen=True, slots=True)
class ReturningPassage:
    """A removed passage whose text is there again.

    Attributes:
        text_since: when its text became what it is.
        sentences: ids of its sentences in reading order; None: one that comes as a new sentence.
    """

    id: int
    text_since: datetime
    sentences: Sequence[int | None]


@dataclass(frozen=True, slots=True)
class PassageRow:
    """A passage to write.

    Attributes:
        returning: what it was before it was removed; only of one that is not stored.
    """

    external_id: str
    title: str | None
    text: str
    language: str
    metadata: Mapping[str, Any]
    content_hash: bytes
    embedding: Vector
    document_id: int | None = None
    returning: ReturningPassage | None = None


_COLUMNS = """
    p.id, p.external_id, p.title, p.text, p.metadata, p.language, d.source AS document, d.valid_from,
    d.valid_until, d.replaced_by
"""


# A foreign key keeps the document, so the first one from this id on is the one of this id. An equality would be
# answered from the index of sources, by a plan that was made while there was no document.
def _join_document() -> str:
    return f"""
    LEFT JOIN LATERAL (
        SELECT d.source, d.valid_from, d.valid_until, {build_successor_column()} AS replaced_by
        FROM document d WHERE d.collection_id = %(collection)s AND d.id >= p.document_id
        ORDER BY d.id LIMIT 1
    ) AS d ON true
    """


def versions(reader: Reader, collection_id: int, external_ids: Collection[str]) -> dict[str, tuple[int, bytes]]:
    """External id -> (passage, content hash), for those that exist."""
    if not external_ids:
        return {}
    rows = reader.rows(
        f"""
        SELECT p.external_id, p.id, p.content_hash
        FROM {id_rows("ids", "text")} {join_by_index("passage p", "p.external_id = wanted.id")}
        """,
        {"collection": collection_id, "ids": list(external_ids)},
    )
    return {row.external_id: (row.id, row.content_hash) for row in rows}


def load_by_id(reader: Reader, collection_id: int, passages: Iterable[int]) -> dict[int, StoredPassage]:
    """The given passages that exist."""
    rows = reader.rows(
        f"""
        SELECT {_COLUMNS}
        FROM {WANTED_IDS} {join_by_index("passage p", "p.id = wanted.id")} {_join_document()}
        """,
        {"collection": collection_id, "ids": integers(passages)},
    )
    return {row.id: StoredPassage(**row._asdict()) for row in rows}


def load_by_external_id(
    reader: Reader, collection_id: int, external_ids: Collection[str], most_bytes: int
) -> list[StoredPassage]:
    """The passages with these external ids that exist and whose text has at most ``most_bytes`` in UTF-8."""
    if not external_ids:
        return []
    rows = reader.rows(
        f"""
        SELECT {_COLUMNS}
        FROM {id_rows("ids", "text")} {join_by_index("passage p", "p.external_id = wanted.id")} {_join_document()}
        WHERE octet_length(p.text) <= %(bytes)s
        """,
        {"collection": collection_id, "ids": list(external_ids), "bytes": most_bytes},
    )
    return [StoredPassage(**row._asdict()) for row in rows]


def page(reader: Reader, collection_id: int, after: str | None, limit: int) -> list[StoredPassage]:
    """Passages in the order of their external ids, those after ``after``."""
    rows = reader.rows(
        f"""
        SELECT {_COLUMNS}, jsonb_build_array(to_jsonb(held.readers)) AS readers
        FROM passage p {_join_document()}
        LEFT JOIN reader_set held ON held.collection_id = p.collection_id AND held.id = p.reader_set_id
        WHERE p.collection_id = %(collection)s AND p.external_id > %(after)s
        ORDER BY p.collection_id, p.external_id
        LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after or "", "limit": limit},
    )
    return [StoredPassage(**row._asdict()) for row in rows]


SPREAD_IDS = """
    ends AS (
        SELECT (SELECT min(id) FROM passage WHERE collection_id = %(collection)s) AS first,
               (SELECT max(id) FROM passage WHERE collection_id = %(collection)s) AS last
    ), starts AS (
        SELECT first + step * greatest((last - first) / %(limit)s, 1) AS id
        FROM ends CROSS JOIN generate_series(0, %(limit)s - 1) AS step
        WHERE first + step * greatest((last - first) / %(limit)s, 1) <= last
    )
"""
"""Common tables that end in ``starts``: ``limit`` ids, spread over those of a collection's passages."""
SPREAD_PASSAGES = f"starts {join_by_index('passage p', 'p.id >= starts.id ORDER BY p.id LIMIT 1')}"
"""The first ``passage p`` from each of ``starts`` on; one that follows several comes several times."""


def sample(reader: Reader, collection_id: int, limit: int) -> list[tuple[str | None, str]]:
    """Title and text of up to ``limit`` passages, always the same ones of the same corpus: by content hash."""
    rows = reader.rows(
        """
        SELECT p.title, p.text FROM passage p WHERE p.collection_id = %(collection)s
        ORDER BY p.content_hash, p.id LIMIT %(limit)s
        """,
        {"collection": collection_id, "limit": limit},
    )
    return [(row.title, row.text) for row in rows]


def list_sentences(reader: Reader, collection_id: int, passages: Collection[int]) -> list[StoredSentence]:
    """All sentences of the given passages, in reading order."""
    if not passages:
        return []
    rows = reader.rows(
        f"""
        SELECT s.id, s.passage_id, s.position, s.text FROM {WANTED_IDS}
        {join_by_index("sentence s", "s.passage_id = wanted.id")}
        ORDER BY s.passage_id, s.position, s.id
        """,
        {"collection": collection_id, "ids": list(passages)},
    )
    return [StoredSentence(**row._asdict()) for row in rows]


def sentences_by_id(reader: Reader, collection_id: int, sentences: Iterable[int]) -> dict[int, StoredSentence]:
    """The given sentences that exist."""
    rows = reader.rows(
        f"""
        SELECT s.id, s.passage_id, s.position, s.text FROM {WANTED_IDS}
        {join_by_index("sentence s", "s.id = wanted.id")}
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    return {row.id: StoredSentence(**row._asdict()) for row in rows}


def find_revised(reader: Reader, collection_id: int, sentences: Iterable[int], shown_at: datetime) -> set[int]:
    """Select the sentences whose text was revised after this moment."""
    rows = reader.rows(
        f"""
        SELECT s.id FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
        WHERE %(shown_at)s < ANY (s.revised_at)
        """,
        {"collection": collection_id, "ids": list(sentences), "shown_at": shown_at},
    )
    return {row.id for row in rows}


def holders(reader: Reader, collection_id: int, sentences: Sequence[int]) -> dict[int, int]:
    """Sentence -> its passage, of the given sentences that exist."""
    row = reader.row(
        f"""
        SELECT array_send(array_agg(s.id)) AS ids, array_send(array_agg(s.passage_id)) AS passages
        FROM {WANTED_IDS} {join_by_index("sentence s", "s.id = wanted.id")}
        """,
        {"collection": collection_id, "ids": integers(sentences)},
    )
    return dict(
        zip(decode_column(row.ids, np.int64).tolist(), decode_column(row.passages, np.int64).tolist(), strict=True)
    )


def upsert(writer: Writer, collection_id: int, passages: Sequence[PassageRow]) -> dict[str, int]:
    """Write passages by external id; external id -> passage."""
    rows = writer.rows(
        """
        WITH numbered AS (
            SELECT nextval(pg_get_serial_sequence('passage', 'id')) AS new_id, now() AS moment, row.* FROM unnest(
                %(ids)s::bigint[], %(text_since)s::timestamptz[], %(external_ids)s::text[], %(titles)s::text[],
                %(texts)s::text[], %(languages)s::text[], %(metadata)s::jsonb[], %(hashes)s::bytea[],
                %(embeddings)s::vector[]::halfvec[], %(documents)s::bigint[]
            ) AS row(known_id, text_since, external_id, title, text, language, metadata, content_hash, embedding,
                     document_id)
        )
        INSERT INTO passage (collection_id, id, text_since, external_id, title, text, language, metadata,
                             content_hash, embedding, document_id, updated_at)
        SELECT %(collection)s, coalesce(n.known_id, n.new_id), coalesce(n.text_since, n.moment), n.external_id,
               n.title, n.text, n.language, n.metadata, n.content_hash, n.embedding, n.document_id, n.moment
        FROM numbered n
        ON CONFLICT (collection_id, external_id) DO UPDATE SET
            title = excluded.title, text = excluded.text, language = excluded.language,
            metadata = excluded.metadata, content_hash = excluded.content_hash, embedding = excluded.embedding,
            document_id = excluded.document_id, updated_at = excluded.updated_at,
            text_since = CASE WHEN passage.text = excluded.text THEN passage.text_since ELSE excluded.updated_at END
        RETURNING external_id, id
        """,
        {
            "collection": collection_id,
            "ids": [row.returning.id if row.returning else None for row in passages],
            "text_since": [row.returning.text_since if row.returning else None for row in passages],
            "external_ids": [row.external_id for row in passages],
            "titles": [row.title for row in passages],
            "texts": [row.text for row in passages],
            "languages": [row.language for row in passages],
            "metadata": [Jsonb(dict(row.metadata)) for row in passages],
            "hashes": [row.content_hash for row in passages],
            "embeddings": vectors([row.embedding for row in passages]),
            "documents": [row.document_id for row in passages],
        },
    )
    current_vectors.renew_base_version(writer, collection_id)
    return {row.external_id: row.id for row in rows}


def set_metadata(
    writer: Writer, collection_id: int, placed: Mapping[int, tuple[Mapping[str, Any], int | None]]
) -> set[int]:
    """Replace the metadata and the document of passages where they differ; the passages where they did."""
    rows = writer.rows(
        f"""
        UPDATE passage SET metadata = new.metadata, document_id = new.document_id, updated_at = now()
        FROM {
            alias_rows(
                "unnest(%(ids)s::bigint[], %(metadata)s::jsonb[], %(documents)s::bigint[])"
                " AS given(id, metadata, document_id)"
            )
        }
        WHERE passage.collection_id = new.collection_id AND passage.id = new.id
          AND (passage.metadata, passage.document_id) IS DISTINCT FROM (new.metadata, new.document_id)
        RETURNING passage.id
        """,
        {
            "collection": collection_id,
            "ids": list(placed),
            "metadata": [Jsonb(dict(metadata)) for metadata, _ in placed.values()],
            "documents": [document for _, document in placed.values()],
        },
    )
    return {row.id for row in rows}


def count_languages(reader: Reader, collection_id: int, passages: Collection[int]) -> dict[str, int]:
    """Language -> how many of the given passages have it."""
    rows = reader.rows(
        f"""
        SELECT p.language, count(*) AS passages
        FROM {WANTED_IDS} {join_by_index("passage p", "p.id = wanted.id")}
        GROUP BY p.language
        """,
        {"collection": collection_id, "ids": integers(passages)},
    )
    return {row.language: row.passages for row in rows}


def delete_passage(writer: Writer, collection_id: int, passage_id: int) -> None:
    """Remove a passage whose sentences and postings are gone already."""
    writer.execute(
        "DELETE FROM passage WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": passage_id},
    )
    current_vectors.renew_base_version(writer, collection_id)
