"""The source of a passage as metadata, for clients whose protocol has no place for it."""

from typing import Any

from engram.core.text.passage_source import PassageSource


def list_source_fields(source: PassageSource) -> dict[str, Any]:
    """Document, headings, page, link and language, without what the source lacks."""
    fields = {
        "document": source.document,
        "heading": list(source.heading),
        "page": source.page,
        "link": source.link,
        "language": source.language,
    }
    return {name: value for name, value in fields.items() if value}
