"""Readers of files: text, Markdown, HTML and PDF each become a `Document`.

The libraries are the extra ``engram[import]`` and are imported when first needed.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from io import BytesIO
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any

from app.errors import EngramError
from app.importing.documents import Block, Document, UnreadableError

_BLANK_LINE = re.compile(r"\n\s*\n")
_FRONT_MATTER = re.compile(r"\A---\s*\n(.*?)\n---\s*\n", re.DOTALL)
_FRONT_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)
# A word cut at the end of a line of print; capitals after the hyphen are a name that has one.
_HYPHENATED = re.compile(r"(\w)-\n(?=[a-zà-ÿ])")
# What stands around a page's content, and what is no text.
_AROUND = ("script", "style", "noscript", "template", "svg", "nav", "footer", "aside", "form", "iframe", "head")
_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_BLOCKS = frozenset(
    """address article blockquote body caption dd details div dl dt fieldset figcaption figure header hr html li
    main ol p pre section summary table tbody td tfoot th thead tr ul""".split()
)


def text(source: str, data: bytes) -> Document:
    """Plain text: paragraphs are apart by blank lines."""
    blocks = [Block(_flat(part)) for part in _BLANK_LINE.split(decoded(source, data)) if part.strip()]
    return _document(source, None, blocks, "text")


def markdown(source: str, data: bytes) -> Document:
    """CommonMark with tables; the title is the front matter's, else the first heading of the first level."""
    whole = decoded(source, data)
    front = _FRONT_MATTER.match(whole)
    title = _FRONT_TITLE.search(front[1]) if front else None
    parser = _library("markdown_it").MarkdownIt("commonmark").enable("table")
    outline = _Outline(title[1] if title else None)
    tokens = parser.parse(whole[front.end() :] if front else whole)
    row: list[str] = []
    for before, token in pairwise([*tokens[:1], *tokens]):
        if token.type in ("fence", "code_block"):
            outline.lines(token.content)
        elif token.type == "tr_close":
            outline.row(row)
            row = []
        elif token.type == "inline" and (said := _flat(_inline(token.children or []))):
            if before.type == "heading_open":
                outline.heading(int(before.tag[1]), said)
            elif before.type in ("td_open", "th_open"):
                row.append(said)
            else:
                outline.say(said)
    return _document(source, outline.title, outline.blocks, "markdown")


def html(source: str, data: bytes) -> Document:
    """The page's content (``main`` or ``article`` if it has one) without navigation, scripts and forms."""
    soup = _library("bs4").BeautifulSoup(data, "html.parser")
    named = _flat(soup.title.get_text()) if soup.title else None
    for tag in soup(_AROUND):
        tag.decompose()
    outline = _Outline(named)
    _walk(soup.main or soup.article or soup.body or soup, outline)
    return _document(source, outline.title, outline.blocks, "html")


def pdf(source: str, data: bytes) -> Document:
    """The text of the pages; lines that most pages begin or end with are left out.

    Raises:
        UnreadableError: it is damaged, needs a password, or has no text (a scan).
    """
    pypdf = _library("pypdf")
    try:
        reader = pypdf.PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise UnreadableError(f"{source} needs a password.")
        pages = [page.extract_text().strip() for page in reader.pages]
        title = reader.metadata.title if reader.metadata else None
    except (pypdf.errors.PyPdfError, ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"{source} is no PDF that can be read ({error}).") from error
    blocks = [
        Block(_flat(_HYPHENATED.sub(r"\1", part)), page=number)
        for number, page in enumerate(_without_running_heads(pages), 1)
        for part in _BLANK_LINE.split(page)
        if part.strip()
    ]
    return _document(source, title if isinstance(title, str) else None, blocks, "pdf")


READERS: dict[str, Callable[[str, bytes], Document]] = {
    ".txt": text,
    ".text": text,
    ".md": markdown,
    ".markdown": markdown,
    ".html": html,
    ".htm": html,
    ".xhtml": html,
    ".pdf": pdf,
}


def decoded(source: str, data: bytes) -> str:
    """UTF-8, else what the bytes look like most.

    Raises:
        UnreadableError: they look like no text at all.
    """
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        best = _library("charset_normalizer").from_bytes(data).best()
        if best is None:
            raise UnreadableError(f"{source} is no text.") from None
        return str(best).replace("\r\n", "\n")


class _Outline:
    """Blocks below the headings that are open; the first of the first level is the title if nothing else is."""

    def __init__(self, title: str | None) -> None:
        self.title = title
        self.blocks: list[Block] = []
        self._open: list[tuple[int, str]] = []
        self._pending: list[str] = []

    def heading(self, level: int, said: str) -> None:
        self._open = [(above, name) for above, name in self._open if above < level]
        if level == 1 and self.title in (None, said):
            self.title = said
        else:
            self._open.append((level, said))

    def say(self, said: str, *, whole: bool = False) -> None:
        self.blocks.append(Block(said, tuple(name for _, name in self._open), whole=whole))

    def lines(self, code: str) -> None:
        for line in code.splitlines():
            if line.strip():
                self.say(line.rstrip(), whole=True)

    def row(self, cells: Sequence[str]) -> None:
        if said := " | ".join(cell for cell in cells if cell):
            self.say(said, whole=True)


def _walk(node: Any, outline: _Outline) -> None:
    """What a node of HTML holds, piece by piece: text between the borders of blocks is one piece."""
    held: list[str] = []

    def flush() -> None:
        if said := _flat("".join(held)):
            outline.say(said)
        held.clear()

    for child in node.children:
        name = getattr(child, "name", None)
        if name is None:
            if type(child).__name__ == "NavigableString":  # comments and the like are other types
                held.append(str(child))
        elif name == "br":
            held.append("\n")
        elif name in _BLOCKS or name in _HEADINGS or child.find(_BLOCKS | _HEADINGS.keys()):
            flush()
            _block(child, name, outline)
        else:
            held.append(child.get_text())
    flush()


def _block(node: Any, name: str, outline: _Outline) -> None:
    if name in _HEADINGS:
        if said := _flat(node.get_text(" ")):
            outline.heading(_HEADINGS[name], said)
    elif name == "pre":
        outline.lines(node.get_text())
    elif name == "tr":
        outline.row([_flat(cell.get_text(" ")) for cell in node.find_all(["td", "th"], recursive=False)])
    else:
        _walk(node, outline)


def _inline(tokens: Sequence[Any]) -> str:
    """The words of a line of Markdown, without its marks."""
    return "".join(
        "\n" if token.type in ("softbreak", "hardbreak") else _inline(token.children or []) or token.content
        for token in tokens
        if token.type != "html_inline"
    )


def _without_running_heads(pages: Sequence[str]) -> Iterator[str]:
    """Pages without the first and the last lines that more than half of them share, numbers aside."""
    lines = [page.splitlines() for page in pages]
    ends: Counter[str] = Counter()
    for page in lines:
        ends.update({_numberless(page[0]), _numberless(page[-1])} if page else ())
    running = {line for line, count in ends.items() if count > max(2, len(pages) / 2)}
    for page in lines:
        while page and _numberless(page[0]) in running:
            del page[0]
        while page and _numberless(page[-1]) in running:
            del page[-1]
        yield "\n".join(page)


def _numberless(line: str) -> str:
    return re.sub(r"\d+", "", line).strip()


def _flat(piece: str) -> str:
    return " ".join(piece.split())


def _document(source: str, title: str | None, blocks: Sequence[Block], kind: str) -> Document:
    if not blocks:
        raise UnreadableError(f"{source} has no text" + (": is it a scan?" if kind == "pdf" else "."))
    named = _flat(title or "") or PurePosixPath(source.replace("\\", "/")).stem
    return Document(source, named, tuple(blocks), kind)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        raise EngramError(f"{name} is not installed: pip install 'engram[import]'.") from error
