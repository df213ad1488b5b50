"""Titles of documents' passages."""

from collections.abc import Collection

from engram.storage.database import Reader
from engram.storage.row_lookups import alias_rows, join_by_index


def find_titled(reader: Reader, collection_id: int, titles: Collection[tuple[str, str]]) -> set[str]:
    """Find the sources, of those with possible titles, with a passage that has such a title or none.

    Args:
        titles: source and title; a source may have several.
    """
    rows = reader.rows(
        f"""
        SELECT DISTINCT d.source
        FROM {alias_rows("unnest(%(sources)s::text[], %(titles)s::text[]) AS given(source, title)")}
        {join_by_index("document d", "d.source = new.source")}
        {join_by_index("passage p", "p.document_id = d.id")}
        WHERE p.title IS NULL OR p.title = new.title
        """,
        {
            "collection": collection_id,
            "sources": [source for source, _ in titles],
            "titles": [title for _, title in titles],
        },
    )
    return {row.source for row in rows}
