"""Documents: what passages were made of, by the names that their importers chose."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from uuid import UUID

from psycopg.types.json import Jsonb

from engram.storage.corpus import current_vectors
from engram.storage.corpus.graph_writer import ROWS
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index
from engram.storage.visible_documents import build_successor_column, build_visible_condition


@dataclass(frozen=True, slots=True)
class DocumentDescription:
    """A document as an importer describes it.

    Attributes:
        folder: the folder that it was imported from; None: it came by itself.
        digest: hash of the file, by which the importer knows it again.
        notes: how it was read and what was left out.
        titled_by_name: whether the titles of all its passages are its file's name, or of none; None: not known.
    """

    source: str
    folder: str | None = None
    digest: str | None = None
    pages: int | None = None
    notes: Sequence[str] = ()
    titled_by_name: bool | None = None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as the database has it.

    Attributes:
        id: internal id.
        digest: None: it came without one, or not all of its passages are written yet.
        passages: how many passages are made of it.
        imported_at: when it last came.
        valid_from: since when it holds; None: nothing tells it.
        valid_until: its last day; None: none is stated.
        dated_by: what tells it.
        status: ``draft``, ``retired`` if it holds no more, or None.
        replaced_by: source of the document that replaces it; None: none that the caller sees.
        replaced_origin: what tells so.
        replaces: sources of the documents that it replaces.
        readers: each list of readers that passages of it have, None in it: everyone; None: not for the caller.
    """

    id: int
    source: str
    folder: str | None
    digest: str | None
    pages: int | None
    imported_at: datetime
    passages: int
    notes: list[str] = field(default_factory=list)
    valid_from: date | None = None
    valid_until: date | None = None
    dated_by: str | None = None
    status: str | None = None
    replaced_by: str | None = None
    replaced_origin: str | None = None
    replaces: list[str] = field(default_factory=list)
    readers: list[list[str] | None] | None = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HeldPassage:
    """A passage of a document, as it is compared with a new version of the document."""

    id: int
    external_id: str
    content_hash: bytes
    text: str
    document_id: int | None


@dataclass(frozen=True, slots=True)
class PassageFrame:
    """A passage without content of its own, which receives sentences of another passage.

    Attributes:
        donor: passage whose vector stands in until the ingest embeds the new text.
    """

    external_id: str
    title: str | None
    text: str
    donor: int


ID_CHARACTERS = 512
"""Characters of a passage's external id at most."""
_COLUMNS = """
    d.id, d.source, d.folder, d.pages, d.imported_at, d.notes, d.valid_from, d.valid_until, d.dated_by, d.status,
    d.replaced_origin,
    CASE WHEN d.writing_job IS NULL THEN d.digest END AS digest,
    (SELECT count(*) FROM passage p WHERE p.collection_id = d.collection_id AND p.document_id = d.id) AS passages
"""


def find_ids(reader: Reader, collection_id: int, sources: Collection[str]) -> dict[str, int]:
    """Source -> document, for those that exist."""
    if not sources:
        return {}
    rows = reader.rows(
        f"""
        SELECT d.source, d.id FROM {id_rows("sources", "text")}
        {join_by_index("document d", "d.source = wanted.id")}
        """,
        {"collection": collection_id, "sources": list(sources)},
    )
    return {row.source: row.id for row in rows}


def page(
    reader: Reader, collection_id: int, after: str | None, limit: int, prefix: str = ""
) -> list[StoredDocument]:
    """Documents in the order of their sources, those after ``after`` whose source begins with ``prefix``.

    Who sees only some passages sees the documents that these are of, and counts of these.
    """
    rows = reader.rows(
        f"""
        SELECT {_COLUMNS}, {build_successor_column()} AS replaced_by,
            ARRAY(
                SELECT e.source FROM document e
                WHERE e.collection_id = d.collection_id AND e.replaced_by = d.id AND {build_visible_condition("e")}
                ORDER BY e.source
            ) AS replaces,
            (
                SELECT coalesce(jsonb_agg(to_jsonb(s.readers) ORDER BY s.readers), '[]') FROM (
                    SELECT DISTINCT p.reader_set_id FROM passage p
                    WHERE p.collection_id = d.collection_id AND p.document_id = d.id
                ) AS held
                LEFT JOIN reader_set s ON s.collection_id = d.collection_id AND s.id = held.reader_set_id
            ) AS readers
        FROM document d
        WHERE d.collection_id = %(collection)s AND d.source > %(after)s AND starts_with(d.source, %(prefix)s)
          AND {build_visible_condition()}
        ORDER BY d.collection_id, d.source LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after or "", "limit": limit, "prefix": prefix},
    )
    return [StoredDocument(**row._asdict()) for row in rows]


def count_passages(reader: Reader, collection_id: int, document_ids: Sequence[int]) -> dict[int, int]:
    """Document -> how many passages that the reader sees are made of it; documents without any are left out."""
    rows = reader.rows(
        f"""
        SELECT p.document_id AS id, count(*) AS passages
        FROM {WANTED_IDS} {join_by_index("passage p", "p.document_id = wanted.id")} GROUP BY p.document_id
        """,
        {"collection": collection_id, "ids": list(document_ids)},
    )
    return {row.id: row.passages for row in rows}


def sees(reader: Reader, collection_id: int, source: str) -> bool:
    """Whether there is a document of this source that the caller sees."""
    row = reader.row(
        f"""
        SELECT d.id FROM document d
        WHERE d.collection_id = %(collection)s AND d.source = %(source)s AND {build_visible_condition()}
        """,
        {"collection": collection_id, "source": source},
    )
    return row is not None


def add_missing(writer: Writer, collection_id: int, sources: Collection[str]) -> dict[str, int]:
    """Source -> document; those that do not exist are made, with nothing known of them."""
    if not sources:
        return {}
    writer.execute(
        """
        INSERT INTO document (collection_id, source) SELECT %(collection)s, unnest(%(sources)s::text[])
        ON CONFLICT DO NOTHING
        """,
        {"collection": collection_id, "sources": sorted(sources)},
    )
    return find_ids(writer, collection_id, sources)


def describe(writer: Writer, collection_id: int, description: DocumentDescription, job: UUID) -> int:
    """Store what an importer says of a document, made where it does not exist; the document.

    Args:
        job: writes its passages, and ends with ``end_writing``.
    """
    row = writer.row(
        """
        INSERT INTO document (collection_id, source, folder, digest, pages, notes, titled_by_name, writing_job)
        VALUES (%(collection)s, %(source)s, %(folder)s, %(digest)s, %(pages)s, %(notes)s, %(titled)s, %(job)s)
        ON CONFLICT (collection_id, source) DO UPDATE SET writing_job = excluded.writing_job,
            folder = coalesce(excluded.folder, document.folder), digest = excluded.digest,
            pages = excluded.pages, notes = excluded.notes, titled_by_name = excluded.titled_by_name,
            imported_at = excluded.imported_at
        RETURNING id
        """,
        {
            "collection": collection_id,
            "source": description.source,
            "folder": description.folder,
            "digest": description.digest,
            "pages": description.pages,
            "notes": Jsonb(list(description.notes)),
            "titled": description.titled_by_name,
            "job": job,
        },
    )
    document: int = row.id
    return document


def end_writing(writer: Writer, collection_id: int, job: UUID) -> None:
    """Note that the passages of the job's documents are all written."""
    writer.execute(
        "UPDATE document SET writing_job = NULL WHERE collection_id = %(collection)s AND writing_job = %(job)s",
        {"collection": collection_id, "job": job},
    )


def set_folder(writer: Writer, collection_id: int, document_id: int, folder: str) -> None:
    """Say which folder a document is imported from."""
    writer.execute(
        "UPDATE document SET folder = %(folder)s WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": document_id, "folder": folder},
    )


def forget_digest(writer: Writer, collection_id: int, document_id: int) -> None:
    """Forget the hash of a document's file, so that an importer reads the file again."""
    writer.execute(
        "UPDATE document SET digest = NULL WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": document_id},
    )


def rename(writer: Writer, collection_id: int, document_id: int, source: str) -> None:
    """Give a document another source."""
    writer.execute(
        "UPDATE document SET source = %(source)s WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": document_id, "source": source},
    )


def delete(writer: Writer, collection_id: int, document_id: int) -> None:
    """Remove a document whose passages are gone already."""
    writer.execute(
        "DELETE FROM document WHERE collection_id = %(collection)s AND id = %(id)s",
        {"collection": collection_id, "id": document_id},
    )


def list_passages(reader: Reader, collection_id: int, document_id: int) -> list[int]:
    """The passages of a document that the caller sees, in id order."""
    rows = reader.rows(
        """
        SELECT p.id FROM passage p WHERE p.collection_id = %(collection)s AND p.document_id = %(document)s
        ORDER BY p.id
        """,
        {"collection": collection_id, "document": document_id},
    )
    return [row.id for row in rows]


def list_held(
    reader: Reader, collection_id: int, document_id: int | None, external_ids: Sequence[str]
) -> list[HeldPassage]:
    """The passages of a document and those that have one of the external ids, in the order of their creation."""
    columns = "p.id, p.external_id, p.content_hash, p.text, p.document_id"
    rows = reader.rows(
        f"""
        SELECT {columns} FROM passage p
        WHERE p.collection_id = %(collection)s AND p.document_id = %(document)s
        UNION
        SELECT {columns} FROM {id_rows("external_ids", "text")}
        {join_by_index("passage p", "p.external_id = wanted.id")}
        ORDER BY id
        """,
        {"collection": collection_id, "document": document_id, "external_ids": list(external_ids)},
    )
    return [HeldPassage(**row._asdict()) for row in rows]


def find_taught(reader: Reader, collection_id: int, sentences: Sequence[int]) -> set[int]:
    """Select the sentences that verdicts taught something about, or that a verdict which waits names."""
    rows = reader.rows(
        f"""
        SELECT q.sentence_id AS id FROM {WANTED_IDS}
        {join_by_index("question_support q", "q.sentence_id = wanted.id")}
        UNION ALL
        SELECT named.sentence_id FROM feedback_event waiting
        {join_by_index("verdict_sentence named", "named.event_id = waiting.id")}
        WHERE waiting.collection_id = %(collection)s AND waiting.status = 'pending'
          AND named.sentence_id = ANY(%(ids)s)
        """,
        {"collection": collection_id, "ids": list(sentences)},
    )
    return {row.id for row in rows}


def name_passages(writer: Writer, collection_id: int, document_id: int, before: str, source: str) -> bool:
    """Name the passages of a document after its new source, in their ids and in ``metadata.source``.

    Returns:
        False: other passages have such ids, or an id would be too long; nothing is changed.
    """
    parameters = {"collection": collection_id, "document": document_id, "before": before, "source": source}
    named = """
        SELECT p.collection_id, p.id,
               %(source)s::text || substr(p.external_id, length(%(before)s) + 1) AS external_id
        FROM passage p
        WHERE p.collection_id = %(collection)s AND p.document_id = %(document)s
          AND starts_with(p.external_id, %(before)s || '#')
    """
    conflict = writer.scalar(
        f"""
        SELECT EXISTS (
            SELECT FROM ({named}) AS new LEFT JOIN passage p ON p.collection_id = %(collection)s
                AND p.external_id = new.external_id
            WHERE p.id IS NOT NULL OR length(new.external_id) > %(limit)s
        )
        """,
        parameters | {"limit": ID_CHARACTERS},
    )
    if conflict:
        return False
    writer.execute(
        f"""
        UPDATE passage SET external_id = new.external_id, updated_at = now() FROM ({named}) AS new
        WHERE passage.collection_id = new.collection_id AND passage.id = new.id
        """,
        parameters,
    )
    writer.execute(
        """
        UPDATE passage SET metadata = metadata || jsonb_build_object('source', %(source)s::text), updated_at = now()
        WHERE collection_id = %(collection)s AND document_id = %(document)s
          AND metadata ->> 'source' = %(before)s
        """,
        parameters,
    )
    current_vectors.renew_base_version(writer, collection_id)
    return True


def place_passages(writer: Writer, collection_id: int, document_id: int, places: Mapping[int, str]) -> None:
    """Give passages their external ids in a document; ids that others of them have now are no obstacle."""
    # First each gets an id that no caller's passage has: one beginning with a line break and its number.
    statement = f"""
        UPDATE passage SET external_id = new.external_id, document_id = %(document)s, updated_at = now()
        FROM {alias_rows("unnest(%(ids)s::bigint[], %(external_ids)s::text[]) AS given(id, external_id)")}
        WHERE passage.collection_id = new.collection_id AND passage.id = new.id
          AND (passage.external_id, passage.document_id) IS DISTINCT FROM (new.external_id, %(document)s)
    """
    ids = list(places)
    for temporary in (True, False):
        for start in range(0, len(ids), ROWS):
            some = ids[start : start + ROWS]
            writer.execute(
                statement,
                {
                    "collection": collection_id,
                    "document": document_id,
                    "ids": some,
                    "external_ids": [f"\n{one}" if temporary else places[one] for one in some],
                },
            )
    current_vectors.renew_base_version(writer, collection_id)


def add_frames(
    writer: Writer, collection_id: int, document_id: int, frames: Sequence[PassageFrame]
) -> dict[str, int]:
    """Make passages that receive sentences; external id -> passage. An ingest has yet to write what they hold."""
    arrays = "unnest(%(external_ids)s::text[], %(titles)s::text[], %(texts)s::text[], %(donors)s::bigint[])"
    rows = writer.rows(
        f"""
        INSERT INTO passage
            (collection_id, document_id, external_id, title, text, language, content_hash, embedding, reader_set_id)
        SELECT %(collection)s, %(document)s, new.external_id, new.title, new.text, p.language, ''::bytea,
               p.embedding, p.reader_set_id
        FROM {alias_rows(f"{arrays} AS frame(external_id, title, text, donor)")}
        JOIN passage p ON p.collection_id = new.collection_id AND p.id = new.donor
        RETURNING external_id, id
        """,
        {
            "collection": collection_id,
            "document": document_id,
            "external_ids": [frame.external_id for frame in frames],
            "titles": [frame.title for frame in frames],
            "texts": [frame.text for frame in frames],
            "donors": [frame.donor for frame in frames],
        },
    )
    current_vectors.renew_base_version(writer, collection_id)
    return {row.external_id: row.id for row in rows}


def move_sentences(writer: Writer, collection_id: int, places: Mapping[int, tuple[int, int]]) -> None:
    """Put sentences into other passages, each with its position there."""
    ids = list(places)
    current_vectors.renew_if_supporting(writer, collection_id, ids)
    for start in range(0, len(ids), ROWS):
        some = ids[start : start + ROWS]
        parameters = {
            "collection": collection_id,
            "ids": some,
            "passages": [places[one][0] for one in some],
            "positions": [places[one][1] for one in some],
        }
        source = "unnest(%(ids)s::bigint[], %(passages)s::bigint[], %(positions)s::int[])"
        rows = alias_rows(f"{source} AS given(id, passage_id, position)")
        writer.execute(
            f"""
            UPDATE sentence
            SET passage_id = new.passage_id, position = new.position, reader_set_id = p.reader_set_id
            FROM {rows} {join_by_index("passage p", "p.id = new.passage_id")}
            WHERE sentence.collection_id = new.collection_id AND sentence.id = new.id
            """,
            parameters,
        )
        writer.execute(
            f"""
            UPDATE entity_sentence SET passage_id = new.passage_id, reader_set_id = p.reader_set_id
            FROM {rows} {join_by_index("passage p", "p.id = new.passage_id")}
            WHERE entity_sentence.collection_id = new.collection_id AND entity_sentence.sentence_id = new.id
            """,
            parameters,
        )
    current_vectors.renew_base_version(writer, collection_id)
