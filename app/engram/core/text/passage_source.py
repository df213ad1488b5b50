"""The source of a passage, as every answer shows it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Protocol

from engram.core.text.link_template import make_link

LARGEST_PAGE = 10_000_000
"""A number beyond this is no page."""


class DescribedPassage(Protocol):
    """A passage, as far as its source is read from it."""

    @property
    def external_id(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def language(self) -> str: ...
    @property
    def document(self) -> str | None: ...
    @property
    def valid_from(self) -> date | None: ...
    @property
    def valid_until(self) -> date | None: ...
    @property
    def replaced_by(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class PassageSource:
    """Source of a passage.

    Attributes:
        document: source of its document; of a passage without one ``metadata.source``, its title, or its id.
        heading: the headings above it, outermost first.
        page: its page or slide, from 1; None without one.
        link: where people read it, by the collection's template; None without one.
        language: of its text.
        valid_from: since when its document holds; None: nothing tells it.
        valid_until: its last day; None: none is stated.
        replaced_by: source of the document that replaces its own; None: none that the caller sees.
    """

    document: str
    heading: tuple[str, ...]
    page: int | None
    link: str | None
    language: str
    valid_from: date | None = None
    valid_until: date | None = None
    replaced_by: str | None = None

    def __str__(self) -> str:
        """One line for people: document, headings and page."""
        path = " > ".join((self.document, *self.heading))
        return path if self.page is None else f"{path}, page {self.page}"


def read_source(passage: DescribedPassage, link_template: str | None) -> PassageSource:
    """Read a passage's source from its document and its metadata, as an import or a caller gave them.

    Args:
        link_template: of its collection, see ``link_template``; None: it has no links.
    """
    metadata = passage.metadata
    named = metadata.get("source")
    source = passage.document or (named if isinstance(named, str) and named.strip() else None)
    heading = metadata.get("heading")
    path = tuple(
        one for one in (heading if isinstance(heading, list) else [heading]) if isinstance(one, str) and one
    )
    page = metadata.get("page")
    is_page = isinstance(page, int) and not isinstance(page, bool) and 0 < page <= LARGEST_PAGE
    values = {
        "source": source or "",
        "heading": path[-1] if path else "",
        "page": str(page) if is_page else "",
        "title": passage.title or "",
        "id": passage.external_id,
    }
    return PassageSource(
        document=source or passage.title or passage.external_id,
        heading=path,
        page=page if is_page else None,
        link=None if link_template is None else make_link(link_template, values),
        language=passage.language,
        valid_from=passage.valid_from,
        valid_until=passage.valid_until,
        replaced_by=passage.replaced_by,
    )
