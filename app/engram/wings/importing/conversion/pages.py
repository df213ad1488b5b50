"""Reader of HTML."""

from typing import Any

from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.encodings import decode_text, note
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import Outline, flatten_text, library

# What stands around a page's content, and what is no text.
_AROUND = ("script", "style", "noscript", "template", "svg", "nav", "footer", "aside", "form", "iframe", "head")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    """address article blockquote body caption dd details div dl dt fieldset figcaption figure header hr html li
    main ol p pre section summary table tbody td tfoot th thead tr ul""".split()
)
DEPTH = 300
"""Elements inside each other; browsers stop at 512."""


def html(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """The page's content (``main`` or ``article`` if it has one) without navigation, scripts and forms."""
    detector = library("bs4.dammit").EncodingDetector
    if detector.find_declared_encoding(data[:4096], is_html=True) and not data.startswith(b"\xef\xbb\xbf"):
        return markup(source, data, "html")
    text, encoding = decode_text(source, data)
    return markup(source, text, "html", note(source, encoding))


def markup(
    source: str, content: str | bytes, kind: str, notes: tuple[str, ...] = (), *, title: str | None = None
) -> Document:
    """Read HTML that a file, a mail or a converter holds.

    Raises:
        UnreadableError: it is nested too deeply, or has no text.
    """
    soup = library("bs4").BeautifulSoup(content, "html.parser")
    outline = Outline(title or (soup.title.get_text() if soup.title else None))
    _fill(source, soup, outline)
    return outline.document(source, kind, notes)


def add_html(source: str, content: str, outline: Outline) -> None:
    """Add a piece of HTML to an outline."""
    _fill(source, library("bs4").BeautifulSoup(content, "html.parser"), outline)


def _fill(source: str, soup: Any, outline: Outline) -> None:
    _check_depth(source, soup)
    for tag in soup(_AROUND):
        tag.decompose()
    content = soup.main or soup.article or soup.body or soup
    _walk(content, outline, _find_block_parents(content))


def _check_depth(source: str, soup: Any) -> None:
    waiting = [(soup, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEPTH:
            raise UnreadableError(f"{source} nests more than {DEPTH} elements in each other.")
        waiting += [(child, depth + 1) for child in node.children if getattr(child, "name", None)]


def _find_block_parents(content: Any) -> set[int]:
    """Ids of the elements that have a block inside, found in one pass."""
    around: set[int] = set()
    for tag in content.find_all(_BLOCKS | _HEADINGS.keys()):
        for parent in tag.parents:
            if id(parent) in around:
                break
            around.add(id(parent))
    return around


def _walk(node: Any, outline: Outline, around: set[int]) -> None:
    """Add a node's content: text between the borders of blocks is one piece."""
    pieces: list[str] = []

    def flush() -> None:
        outline.add(flatten_text("".join(pieces)))
        pieces.clear()

    for child in node.children:
        name = getattr(child, "name", None)
        if name is None:
            if type(child).__name__ == "NavigableString":  # comments and the like are other types
                pieces.append(str(child))
        elif name == "br":
            pieces.append("\n")
        elif name in _BLOCKS or name in _HEADINGS or id(child) in around:
            flush()
            _block(child, name, outline, around)
        else:
            pieces.append(child.get_text())
    flush()


def _block(node: Any, name: str, outline: Outline, around: set[int]) -> None:
    if name in _HEADINGS:
        if text := flatten_text(node.get_text(" ")):
            outline.open_heading(_HEADINGS[name], text)
    elif name == "pre":
        outline.lines(node.get_text())
    elif name == "tr":
        outline.row([flatten_text(cell.get_text(" ")) for cell in node.find_all(["td", "th"], recursive=False)])
    else:
        _walk(node, outline, around)
