"""SQL of which documents a caller sees: those of which a passage is visible."""

from engram.context import tenancy


def build_visible_condition(alias: str = "d") -> str:
    """SQL of whether the caller sees a document of this alias."""
    if tenancy.get_visibility().readers is None:
        return "true"
    return f"""EXISTS (
        SELECT FROM passage v WHERE v.collection_id = {alias}.collection_id AND v.document_id = {alias}.id
    )"""


def build_successor_column() -> str:
    """SQL of the source of the document that replaces a ``document d``; null: none that the caller sees.

    The first document from its id on is the one of this id, see ``passages``.
    """
    return f"""(
        SELECT n.source FROM (
            SELECT r.collection_id, r.id, r.source FROM document r
            WHERE r.collection_id = %(collection)s AND r.id >= d.replaced_by ORDER BY r.id LIMIT 1
        ) AS n WHERE n.id = d.replaced_by AND {build_visible_condition("n")}
    )"""
