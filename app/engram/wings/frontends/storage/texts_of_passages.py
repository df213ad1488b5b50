"""Passages by their whole text."""

from collections.abc import Collection

from engram.storage.database import Reader
from engram.storage.row_lookups import id_rows, join_by_index

TEXT_HASH = "hashtextextended(p.text, 0)"
"""As index ``passage_text_idx`` has it."""


def find_passages(reader: Reader, collection_id: int, texts: Collection[str]) -> dict[str, dict[int, str]]:
    """Text -> the passages that have it, passage -> external id; texts of no passage are absent."""
    if not texts:
        return {}
    rows = reader.rows(
        f"""
        SELECT wanted.id AS text, p.id, p.external_id
        FROM {id_rows("texts", "text")}
        {join_by_index("passage p", f"{TEXT_HASH} = hashtextextended(wanted.id, 0)")}
        WHERE p.text = wanted.id
        """,
        {"collection": collection_id, "texts": list(texts)},
    )
    passages_by_text: dict[str, dict[int, str]] = {}
    for row in rows:
        passages_by_text.setdefault(row.text, {})[row.id] = row.external_id
    return passages_by_text
