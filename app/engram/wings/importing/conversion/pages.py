"""Reader of HTML."""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.encodings import declared_encoding, decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.inline_text import (
    BLOCKS,
    HEADINGS,
    cell_text,
    find_tags,
    inline_text,
    is_hidden,
)
from engram.wings.importing.conversion.outline import QUOTATION, Outline, flatten_text, library
from engram.wings.importing.conversion.prose import paragraphs
from engram.wings.importing.conversion.quotations import begins_original, read_header, title_original
from engram.wings.importing.conversion.symbol_fonts import find_font, read_signs
from engram.wings.importing.conversion.table_model import Cell, lay_out, write_table

TICKED, UNTICKED = "☒", "☐"
_NO_VALUES = ("hidden", "password", "file", "image", "color", "submit", "reset", "button", "checkbox", "radio")
"""Types of fields whose value is no text that a person filled in. Browsers show those of unknown types as text."""
_GAUGES = ("meter", "progress")
_TICKED_ROLES = ["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio"]
_LABELLED = ("label", "li", "p", "dd", "dt")
_CELLS = ("td", "th")
_NO_TEXT = ("script", "style", "noscript", "template", "svg", "iframe")
_FIELDS = ("input", "select", "textarea", "datalist", "button")
# What an element is for its page, by its name and by its role; a note calls it so if it is left out.
_AROUND = {"main": "main", "nav": "navigation", "footer": "a footer", "aside": "an aside"}
_ROLES = {"main": "main", "navigation": "navigation", "contentinfo": "a footer", "complementary": "an aside"}
_ORIGINALS = ("divRplyFwdMsg", "x_divRplyFwdMsg")
"""Ids of the element that begins the earlier message in Outlook, which goes on to the end."""
_QUOTATIONS = frozenset(("gmail_quote", "yahoo_quoted"))
_BUTTON_TEXTS = [*HEADINGS, "summary", "dt", "legend"]
"""Elements that are text though they are buttons, which fold what stands below them."""
_STRONG = ("b", "strong")
_UNREAD_PANELS = ("dialog", "listbox", "menu", "tooltip")
_SHOWN_CHARACTERS = 60
DEPTH = 300
"""Elements inside each other; browsers stop at 512."""


def html(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """The page's content (each ``main``, else the body) without navigation, scripts and what nothing can show.

    Boxes, chosen options and values of fields are text.
    """
    text, _, notes = decode_text(source, data, declared_encoding(data))
    return markup(source, text, "html", notes)


def markup(
    source: str,
    content: str,
    kind: str,
    notes: tuple[str, ...] = (),
    *,
    title: str | None = None,
    lines: bool = False,
    numbered: bool = True,
) -> Document:
    """Read HTML that a file or a converter holds.

    Args:
        lines: whether line ends inside paragraphs may part headings from sentences.
        numbered: whether its lists are numbered as the file shows them.

    Raises:
        UnreadableError: it is nested too deeply, or has no text.
    """
    soup = _parse(source, content)
    named = next((tag.get_text() for tag in find_tags(soup, ("title",)) if tag.find_parent("svg") is None), None)
    outline = Outline(title or named)
    left_out = _PageConverter(source, outline, lines=lines, numbered=numbered).read(soup)
    return outline.document(source, kind, (*notes, *_note_left_out(source, left_out)))


def add_html(source: str, content: str, outline: Outline) -> tuple[str, ...]:
    """Add the HTML of a message to an outline; what it quotes is a quotation. Returns notes."""
    reader = _PageConverter(source, outline, message=True)
    return _note_left_out(source, reader.read(_parse(source, content)))


def _parse(source: str, content: str) -> Any:
    library("lxml")
    soup = library("bs4").BeautifulSoup(content, "lxml")
    waiting = [(soup, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEPTH:
            raise UnreadableError(f"{source} nests more than {DEPTH} elements in each other.")
        waiting += [(child, depth + 1) for child in node.children if getattr(child, "name", None)]
    return soup


def _note_left_out(source: str, left_out: list[str]) -> tuple[str, ...]:
    return (f"{source}: left out {', '.join(left_out)}",) if left_out else ()


class _PageConverter:
    """Reads one page into an outline."""

    def __init__(
        self, source: str, outline: Outline, *, lines: bool = False, message: bool = False, numbered: bool = True
    ) -> None:
        self._source = source
        self._outline = outline
        self._lines = lines
        self._message = message
        self._numbered = numbered
        self._around: set[int] = set()
        self._cells: set[int] = set()  # ids of the cells of tables that are read
        self._numbers: dict[int, int] = {}  # id of a numbered list -> the number of its next item
        self._originals = 0  # earlier messages that have begun and go on to the end
        self._awaits_header = False  # an earlier message has begun whose header comes next

    def read(self, soup: Any) -> list[str]:
        """Add the content; returns what was left out though it has text."""
        _show_panels(soup)
        left_out = _remove_hidden(soup)
        _write_fields(soup)
        _write_signs(soup)
        # The head's other elements stay: libxml2 leaves those there that it does not know.
        for tag in find_tags(soup, (*_NO_TEXT, *_FIELDS, "title")):
            if tag.name != "button" or tag.find_parent(_BUTTON_TEXTS) is None:
                tag.decompose()
        kinds = _find_kinds(soup)
        mains = [tag for tag in kinds["main"] if not any(_kind(above) == "main" for above in tag.parents)]
        if not self._message:
            left_out += _remove_around(kinds, has_content=bool(mains) or soup.article is not None)
        if mains:
            left_out += self._outside(soup, mains)
        for content in mains or [soup]:
            self._around = _find_block_parents(content)
            self._walk(content)
        for _ in range(self._originals):
            self._outline.close_quotation()
        return left_out

    def _outside(self, soup: Any, mains: list[Any]) -> list[str]:
        """Add the page's heading where it stands above ``main``; returns the beginning of the other text there."""
        heading = None if any(main.h1 for main in mains) else soup.h1
        if heading is not None and (text := cell_text(heading)):
            self._outline.open_heading(1, text)
        strings, waiting = [], [soup]
        while waiting:
            node = waiting.pop()
            if getattr(node, "name", None) is None:
                strings.append(inline_text(node))
            elif node is not heading and not any(node is main for main in mains):
                waiting += reversed(node.contents)
        text = flatten_text(" ".join(strings))
        excerpt = text[:_SHOWN_CHARACTERS] + ("..." if len(text) > _SHOWN_CHARACTERS else "")
        return [f'text outside of its main part, "{excerpt}"'] if text else []

    def _walk(self, node: Any) -> None:
        """Add a node's content: text between the borders of blocks is one piece."""
        pieces: list[str] = []
        for child in node.children:
            name = getattr(child, "name", None)
            if name is not None and (name in BLOCKS or name in HEADINGS or id(child) in self._around):
                self._add_pieces(pieces)
                self._block(child, name)
            else:
                pieces.append(inline_text(child))
        self._add_pieces(pieces)

    def _add_pieces(self, pieces: list[str]) -> None:
        text = "".join(pieces)
        pieces.clear()
        lines = [flatten_text(line) for line in text.split("\n") if line.strip()]
        if lines and (self._awaits_header or (self._message and begins_original(lines))):
            title = title_original(lines[0])
            if not self._awaits_header:
                self._begin_original(title)
            lines = lines[title != QUOTATION :]
            header = read_header(lines)
            self._outline.add("; ".join(header), whole=True, is_header=True)
            self._awaits_header, text = False, "\n".join(lines[len(header) :])
        if self._lines:
            for piece, heading in paragraphs(text):
                self._outline.add(flatten_text(piece), whole=heading)
        else:
            self._outline.add(flatten_text(text))

    def _begin_original(self, title: str) -> None:
        self._outline.open_quotation(title)
        self._originals += 1

    def _block(self, node: Any, name: str) -> None:
        if self._message and node.get("id") in _ORIGINALS:
            self._begin_original(QUOTATION)
            self._awaits_header = True
        if id(node) in self._cells:
            return
        if name in HEADINGS:
            if text := cell_text(node):
                self._outline.open_heading(HEADINGS[name], text)
        elif name == "li" and node.parent.name == "ol":
            self._outline.number = self._number(node)
            self._walk(node)
            self._outline.number = ""
        elif name == "pre":
            self._outline.lines("".join(map(inline_text, node.children)))
        elif name == "table" and not _is_layout(node):
            own = [row for row in find_tags(node, ("tr",)) if row.find_parent("table") is node]
            rows = sorted(own, key=lambda row: row.parent.name == "tfoot")
            self._add_table(node, rows)
        elif name == "tr" and node.find_parent("table") is None:  # a row that lost its table
            self._add_table(node, [node], header_rows=0)
        elif self._message and (name == "blockquote" or _is_quotation(node)):
            self._outline.open_quotation()
            self._walk(node)
            self._outline.close_quotation()
        else:
            self._walk(node)

    def _number(self, item: Any) -> str:
        """Return what a browser shows before an item, if its list counts upwards in figures; else nothing."""
        above = item.parent
        is_lettered = any("alpha" in one or "roman" in one for one in above.get("class", ()))  # by docutils
        if not self._numbered or is_lettered or above.get("type", "1") != "1" or above.has_attr("reversed"):
            return ""
        given = str(item.get("value") or self._numbers.get(id(above)) or above.get("start") or 1)
        number = int(given) if re.fullmatch("-?[0-9]{1,6}", given) else 1
        self._numbers[id(above)] = number + 1
        return f"{number}. "

    def _add_table(self, table: Any, rows: list[Any], header_rows: int | None = None) -> None:
        """Add a table below its caption and below its text outside of cells, which browsers show above it."""
        lines = list(write_table(lay_out(self._source, map(_cells, rows)), header_rows))
        self._cells.update(id(cell) for row in rows for cell in _find_cells(row))
        self._walk(table)
        self._outline.table(lines)


def _kind(tag: Any) -> str | None:
    """Tell an element's part in the page, by its name or its role; None for one of its content."""
    return _AROUND.get(tag.name) or _ROLES.get(str(tag.get("role")))


def _find_kinds(soup: Any) -> dict[str, list[Any]]:
    """The elements of each kind, see ``_kind``."""
    kinds: dict[str, list[Any]] = defaultdict(list)
    for tag in soup.descendants:
        if getattr(tag, "name", None) is not None and (kind := _kind(tag)):
            kinds[kind].append(tag)
    return kinds


def _show_panels(soup: Any) -> None:
    """Show what a tab or a button of the page shows, and make text of such buttons."""
    controls: dict[str, Any] = {}
    for tag in soup.find_all(lambda tag: bool(tag.attrs)):
        panels = _list_controlled(tag)
        if panels and not any(above.name == "header" or _kind(above) == "navigation" for above in tag.parents):
            controls |= dict.fromkeys(panels, tag)
    for tag in soup.find_all(is_hidden):
        control = controls.get(str(tag.get("id")))
        if control is None and tag.get("role") != "tabpanel":
            continue
        if tag.get("role") in _UNREAD_PANELS or _kind(tag) == "navigation":
            continue
        del tag["hidden"], tag["style"]
        if control is not None and control.name == "button" and control.find_parent(_BUTTON_TEXTS) is None:
            control.name = "p"


def _list_controlled(tag: Any) -> list[str]:
    """Ids of what a tab or a button shows."""
    ids = str(tag.get("aria-controls") or "").split()
    if tag.get("role") == "tab" or tag.has_attr("data-bs-toggle") or tag.has_attr("data-toggle"):
        targets = (str(tag.get(name) or "") for name in ("data-bs-target", "data-target", "href"))
        ids += [target[1:] for target in targets if target.startswith("#")]
    return ids


def _write_fields(soup: Any) -> None:
    """Put text in the place of fields that a person sees filled in."""
    named = {str(tag.get("for")) for tag in find_tags(soup, ("label",)) if tag.get_text().strip()}
    for tag in soup.find_all(attrs={"aria-checked": True, "role": _TICKED_ROLES}):
        if tag.get_text().strip() or _is_labelled(tag, named):
            tag.insert(0, f"{TICKED if tag['aria-checked'] == 'true' else UNTICKED} ")
    for tag in find_tags(soup, ("input", "select", "textarea", *_GAUGES)):
        if tag.name == "textarea" or (tag.name in _GAUGES and tag.get_text().strip()):
            text = tag.get_text()
        elif tag.name == "select":
            chosen = (option for option in find_tags(tag, ("option",)) if option.has_attr("selected"))
            text = ", ".join(flatten_text(option.get_text()) for option in chosen)
        else:
            kind = str(tag.get("type") or "").casefold()
            text = "" if kind in _NO_VALUES else str(tag.get("value") or "")
            if kind in ("checkbox", "radio") and _is_labelled(tag, named):
                text = TICKED if tag.has_attr("checked") else UNTICKED
        after = str(tag.next_sibling or "")[:1]
        tag.replace_with(
            f" {text.strip()} ".rstrip(None if after and not after.isalnum() and after != "<" else "\n")
        )


def _write_signs(soup: Any) -> None:
    """Write letters of fonts of signs as what they show."""
    for tag in soup.find_all(lambda tag: tag.has_attr("face") or tag.has_attr("style")):
        if font := find_font(tag.get("face"), tag.get("style")):
            for text in tag.find_all(string=True):
                text.replace_with(read_signs(str(text), font))


def _is_labelled(box: Any, named: Collection[str]) -> bool:
    """Whether a text says what a box is for; others fold a menu."""
    if str(box.get("id")) in named or box.find_parent(_CELLS) is not None:
        return True
    around = box.find_parent(_LABELLED)
    return around is not None and bool(around.get_text().strip())


def _remove_hidden(soup: Any) -> list[str]:
    """Remove what browsers do not show; returns how a note calls it."""
    tags = (tag for tag in soup.descendants if getattr(tag, "name", None) not in (None, "html", "body"))
    hidden = [tag for tag in tags if tag.attrs and is_hidden(tag)]
    text = any(tag.get_text().strip() for tag in hidden)
    for tag in hidden:
        tag.decompose()
    return ["hidden text"] if text else []


def _remove_around(kinds: Mapping[str, list[Any]], *, has_content: bool) -> list[str]:
    """Remove what stands around the content; returns how a note calls it.

    Navigation goes everywhere. A footer or an aside inside ``main`` or an ``article`` belongs to it, and where a
    page has neither, an aside may be anything.
    """
    left_out = []
    for kind in ("navigation", "a footer", *(["an aside"] if has_content else [])):
        removed = [
            tag
            for tag in kinds.get(kind, [])
            if not tag.decomposed and (kind == "navigation" or not _is_inside_content(tag))
        ]
        if any(tag.get_text().strip() for tag in removed):
            left_out.append(kind)
        for tag in removed:
            tag.decompose()
    return left_out


def _is_inside_content(tag: Any) -> bool:
    return any(above.name == "article" or _kind(above) == "main" for above in tag.parents)


def _find_block_parents(content: Any) -> set[int]:
    """Ids of the elements that have a block inside, found in one pass."""
    around: set[int] = set()
    for tag in find_tags(content, BLOCKS | HEADINGS.keys()):
        for parent in tag.parents:
            if id(parent) in around:
                break
            around.add(id(parent))
    return around


def _is_quotation(node: Any) -> bool:
    """Whether a mail program wraps a quotation in this element and not in a ``blockquote``."""
    return bool(_QUOTATIONS.intersection(node.get_attribute_list("class"))) and node.blockquote is None


def _is_layout(table: Any) -> bool:
    """Whether a table arranges a page: it holds headings, tables or columns of text, or has one column."""
    if table.get("role") == "presentation":
        return True
    names = {getattr(node, "name", None) for node in table.descendants}
    own = (row for row in find_tags(table, ("tr",)) if row.find_parent("table") is table)
    rows = [cells for row in own if (cells := _find_cells(row))]
    if len(rows) > 1 and len(rows[0]) > 1 and all(cell.name == "th" for cell in rows[0]):
        return False
    if not names.isdisjoint(HEADINGS.keys() | {"table"}):
        return True
    if len(rows) == 1 and any(len(find_tags(cell, ("p", "div", "li"))) > 1 for cell in rows[0]):
        return True  # columns of text
    return "th" not in names and all(len(row) < 2 for row in rows)


def _find_cells(row: Any) -> list[Any]:
    """The cells of a row, also those that another element wraps."""
    cells: list[Any] = []
    for child in row.children:
        name = getattr(child, "name", None)
        if name in ("td", "th"):
            cells.append(child)
        elif name not in (None, "tr"):
            cells += _find_cells(child)
    return cells


def _cells(row: Any) -> list[Cell]:
    named = row.parent.name == "thead"
    return [
        Cell(
            cell_text(cell),
            columns=_span(cell, "colspan"),
            rows=_span(cell, "rowspan") or 65_534,  # 0 is: as far as the table goes
            heading=named or cell.name == "th",
            strong=_is_strong(cell),
        )
        for cell in _find_cells(row)
    ]


def _span(cell: Any, name: str) -> int:
    value = str(cell.get(name, "")).strip()
    return int(value) if value.isascii() and value.isdigit() and len(value) < 6 else 1


def _is_strong(cell: Any) -> bool:
    """Whether all text of a cell is bold."""
    if not find_tags(cell, _STRONG):
        return False
    strings = (node for node in cell.descendants if getattr(node, "name", None) is None and node.strip())
    return all(string.find_parent(_STRONG) is not None for string in strings)
