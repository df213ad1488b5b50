"""Documents as the collection has them, for a comparison with what a folder has."""

from collections.abc import Iterable, Sequence

from engram.core.text.document_manifest import HeldDocument
from engram.storage.database import Reader
from engram.storage.visible_documents import build_visible_condition


def list_held(
    reader: Reader,
    collection_id: int,
    folders: Sequence[str],
    sources: Sequence[str],
    digests: Sequence[str],
    *,
    with_readers: bool,
) -> list[HeldDocument]:
    """Documents that the caller sees, of the folders or with a source or digest; those without a passage too.

    Args:
        with_readers: whether to look up who may read them, which reads all of their passages.
    """
    rows = reader.rows(
        f"""
        SELECT d.source, d.folder, d.imported_at, d.titled_by_name,
            CASE WHEN d.writing_job IS NULL THEN d.digest END AS digest,
            CASE WHEN %(with_readers)s THEN ARRAY(
                SELECT DISTINCT coalesce(p.reader_set_id, 0) FROM passage p
                WHERE p.collection_id = d.collection_id AND p.document_id = d.id
            ) ELSE ARRAY[]::bigint[] END AS reader_sets
        FROM document d
        WHERE d.collection_id = %(collection)s AND {build_visible_condition()}
          AND (d.folder = ANY (%(folders)s::text[]) OR d.source = ANY (%(sources)s::text[])
               OR d.digest = ANY (%(digests)s::text[]))
        """,
        {
            "collection": collection_id,
            "folders": list(folders),
            "sources": list(sources),
            "digests": list(digests),
            "with_readers": with_readers,
        },
    )
    ids = {one for row in rows for one in row.reader_sets if one}
    sets = reader.rows(
        """
        SELECT s.id, s.readers FROM reader_set s
        WHERE s.collection_id = %(collection)s AND s.id = ANY (%(ids)s::bigint[])
        """,
        {"collection": collection_id, "ids": sorted(ids)},
    )
    readers = {row.id: tuple(row.readers) for row in sets}
    return [
        HeldDocument(
            row.source,
            row.folder,
            row.digest,
            frozenset(readers.get(one) for one in row.reader_sets),
            row.imported_at,
            row.titled_by_name,
        )
        for row in rows
    ]


def count_by_folder(reader: Reader, collection_id: int, folders: Iterable[str]) -> dict[str, int]:
    """Count the documents that the caller sees of each of the folders."""
    rows = reader.rows(
        f"""
        SELECT d.folder, count(*) AS documents FROM document d
        WHERE d.collection_id = %(collection)s AND {build_visible_condition()}
          AND d.folder = ANY (%(folders)s::text[])
        GROUP BY d.folder
        """,
        {"collection": collection_id, "folders": sorted(folders)},
    )
    return {row.folder: row.documents for row in rows}
