"""The source of a passage on the wire."""

from datetime import date

from pydantic import Field

from engram.api.schemas import ResponseModel


class PassageSourceOut(ResponseModel):
    """The source of a passage."""

    document: str = Field(
        description="Source of its document; of a passage without one `metadata.source`, its title, or its id."
    )
    heading: list[str] = Field(description="The headings above it, outermost first, from `metadata.heading`.")
    page: int | None = Field(description="Its page or slide, from 1.")
    link: str | None = Field(
        description="Where people read it, by the collection's `link_template`; null without a template, or if the "
        "passage lacks a value that the template needs."
    )
    language: str = Field(description="Of its text, as it was given or recognised.")
    valid_from: date | None = Field(description="Since when its document holds; null: nothing tells it.")
    valid_until: date | None = Field(description="Its document's last day; null: none is stated.")
    replaced_by: str | None = Field(
        description="Source of the document that replaces its own; null: none, or none that you may read."
    )
