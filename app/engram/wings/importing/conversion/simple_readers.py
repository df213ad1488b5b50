"""Text of files as a simple second reader sees it, without order, layout or tables."""

import re
import zipfile
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from engram.wings.importing.conversion.books import read_chapters
from engram.wings.importing.conversion.encodings import declared_encoding, decode_text
from engram.wings.importing.conversion.office import parse_xml
from engram.wings.importing.conversion.outline import library
from engram.wings.importing.conversion.outlook import read_body
from engram.wings.importing.conversion.rich_text import map_code_pages, map_sign_fonts
from engram.wings.importing.conversion.symbol_fonts import NAMED, find_font, write_signs
from engram.wings.importing.conversion.word import remove_codes

_MARK = "\ufffe"
"""What pdfium writes in the place of a hyphen and the line end after it."""
_HYPHENS = ("-", "\u2010", "\u2011")
_NUMBER = re.compile(r"\d{1,6}")
_LEAST_REPEATED = 3
"""Pages on which a line stands that pages repeat."""
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_CHART = "{http://schemas.openxmlformats.org/drawingml/2006/chart}"
_COMPATIBILITY = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_SPREADSHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_PARTS = {
    ".docx": re.compile(r"word/(?:document|footnotes|endnotes)\d*\.xml"),
    ".pptx": re.compile(r"ppt/(?:slides/slide|notesSlides/notesSlide|charts/chart)\d+\.xml"),
}
_NO_SLIDE = re.compile("/(?:notesSlides|charts)/")
_VANISH = _WORD + "vanish"
_NOT_REQUIRED = {
    *(_WORD + name for name in ("moveFrom", "del", "instrText", "pict")),
    _MATH + "oMath",
    _COMPATIBILITY + "AlternateContent",
    _DRAWING + "fld",
}
_TEXTS = {_WORD + "t", _DRAWING + "t"}
_ALL_TEXTS = {*_TEXTS, _MATH + "t", _CHART + "v"}
_GAPS = {_WORD + name for name in ("p", "tab", "ptab", "br", "cr", "noBreakHyphen")} | {
    _DRAWING + "p",
    _DRAWING + "br",
    _MATH + "t",
    _CHART + "v",
}
_UNSEEN = (
    "script",
    "style",
    "noscript",
    "template",
    "svg",
    "iframe",
    "title",
    "head",
    "math",
    "datalist",
    "button",
)
_AROUND = ("nav", "footer", "aside", "header", "form")
_AROUND_ROLES = ("navigation", "contentinfo", "complementary", "banner", "menu", "dialog", "listbox")
_INVISIBLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_INLINE = "a abbr b bdo cite code del em font i ins kbd mark q s small span strong sub sup u var wbr".split()


_OPEN_TEXT = "//*[local-name()='p' or local-name()='h'][not(ancestor::*[local-name()='p' or local-name()='h'])]"
_OPEN_CELL = "//*[local-name()='table-cell'][@*[local-name()='value-type']='string']/*[local-name()='p']"
_OPEN_HIDDEN = re.compile(
    rb'display="(?:none|false)"|visibility="(?:hidden|collapse|filter)"|:hidden-(?:text|paragraph)'
)
_PROSE_LINE = re.compile(r"^(?:\*+ )?[^\W\d_].*$", re.MULTILINE)
_MARKS = {
    ".rst": re.compile(r"^[\w -]+::.*$|:[\w:.+-]+:(?=`)|<[^<>`]*>(?=`)|\|[^|\s]+\|_*|\[#?[\w-]+\]_", re.MULTILINE),
    ".org": re.compile(r"\[\[[^\[\]]*\](?=\[)|<\d{4}-[^>]*>|^CLOCK:.*$|:[\w:@]+:\s*$|\[#\w\]", re.MULTILINE),
}
"""Marks in prose of formats that are text themselves."""
_RTF_PART = re.compile(
    r"\\'[0-9A-Fa-f]{2}|\\u-?\d+ ?(?:\\'3[Ff])*\??|\\[a-zA-Z]+-?\d* ?|\\.|[{}]|[^\\{}\r\n]+", re.DOTALL
)
_RTF_NO_TEXT = {
    f"\\{name}"
    for name in """fonttbl colortbl stylesheet info pict header headerl headerr headerf footer footerl footerr
    footerf object pntext listtext sp shprslt themedata datastore listtable listoverridetable generator fldinst xe
    tc annotation revtbl rsidtbl nonshppict filetbl""".split()
}
_RTF_GAPS = {f"\\{name}" for name in ("par", "cell", "row", "tab", "line", "page", "sect", "nestcell", "nestrow")}
_RTF_GAPS |= {
    f"\\{name}" for name in "lquote rquote ldblquote rdblquote emdash endash bullet emspace enspace".split()
}
_RTF_PAGES = {str(page) for page in (437, 850, 852, 866, 874, 932, 936, 949, 950, *range(1250, 1259))}


@dataclass(frozen=True)
class PlainText:
    """Text of a file.

    Attributes:
        required: what its conversion has to hold.
        whole: all of it, also what a conversion may leave out; None: not known.
    """

    required: str
    whole: str | None


_WITH_MACROS = {".docm": ".docx", ".pptm": ".pptx", ".xlsm": ".xlsx"}
"""Kinds that have the parts of another kind, and macros, which are not read."""


def read_plainly(  # noqa: PLR0911 - a case each
    source: str, kind: str, data: bytes, pages: Sequence[str]
) -> PlainText | None:
    """Read a file that its own reader read already; None for kinds without a second reader.

    Args:
        pages: text of the pages of a PDF, as pdfium gives it.
    """
    kind = _WITH_MACROS.get(kind, kind)
    if kind == ".pdf":
        return _join_pages(pages)
    if kind in _PARTS:
        return _read_office(data, _PARTS[kind])
    if kind == ".xlsx":
        return _read_workbook(data)
    if kind in (".html", ".htm", ".xhtml"):
        return _read_page(decode_text(source, data, declared_encoding(data)).text)
    if kind == ".epub":
        return _join([_read_page(chapter) for chapter in read_chapters(source, data)])
    if kind in (".odt", ".odp", ".ods"):
        return _read_open_document(data, _OPEN_CELL if kind == ".ods" else _OPEN_TEXT)
    if kind == ".rtf":
        return PlainText("".join(_read_rich_text(data)), None)
    if kind in _MARKS:
        prose = "\n".join(_PROSE_LINE.findall(decode_text(source, data).text))
        return PlainText(_MARKS[kind].sub(" ", prose), None)
    if kind == ".msg":
        return PlainText(read_body(data), None)
    if kind in (".yaml", ".yml"):
        return PlainText("\n".join(_list_scalars(decode_text(source, data).text)), None)
    if kind == ".xml":
        return PlainText("".join(_list_element_texts(parse_xml(data))), None)
    return None


def _join(parts: Sequence[PlainText]) -> PlainText:
    return PlainText("\n".join(one.required for one in parts), "\n".join(one.whole or "" for one in parts))


def _join_pages(pages: Sequence[str]) -> PlainText:
    """The pages without words that a line end cuts; lines that pages repeat or count are not required."""
    lines = [[line.strip() for line in page.split("\n")] for page in pages]
    counts = Counter(
        key for at, page in enumerate(lines) for key in {key for line in page for key in _keys(line, at)}
    )
    repeated = {key for key, count in counts.items() if count >= min(_LEAST_REPEATED, max(len(pages), 2))}
    required = [line for at, page in enumerate(lines) for line in page if repeated.isdisjoint(_keys(line, at))]
    return PlainText("\n".join(_drop_cut_words(required)), "\n".join(pages))


def _drop_cut_words(lines: Iterable[str]) -> Iterator[str]:
    """The lines without words that a hyphen cuts at the end of a line: how they go on is for the reader to find."""
    is_cut = False
    for line in lines:
        words = line.split()[is_cut:]
        is_cut = line.endswith(_HYPHENS)
        yield " ".join(word for word in (words[:-1] if is_cut else words) if _MARK not in word)


def _keys(line: str, page: int) -> Iterator[tuple[str, int]]:
    """List keys that a line may share with lines of other pages: all of it, or all but a number that counts up."""
    yield line, -1
    for number in _NUMBER.finditer(line):
        yield f"{line[: number.start()]}#{line[number.end() :]}", int(number[0]) - page


def _read_office(data: bytes, parts: re.Pattern[str]) -> PlainText:
    required: list[str] = []
    whole: list[str] = []
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = [name for name in archive.namelist() if parts.fullmatch(name)]
        for number, name in enumerate(names, 1):
            xml = archive.read(name)
            root = parse_xml(xml)
            if NAMED.search(xml):
                write_signs(root)
            whole += _list_texts(root, _ALL_TEXTS)
            whole.append(f" {number} ")  # a slide without a title is called by it
            whole += (f" {entry.get(_WORD + 'val')} " for entry in root.iter(_WORD + "listEntry"))
            if root.get("show") in ("0", "false") or _NO_SLIDE.search(name):
                continue
            for unseen in [
                *root.iter(*_NOT_REQUIRED),
                *(mark.getparent().getparent() for mark in root.iter(_VANISH)),
            ]:
                if unseen is not None and unseen.getparent() is not None:
                    unseen.getparent().remove(unseen)
            remove_codes(root)
            required += _list_texts(root, _TEXTS)
    return PlainText("".join(required), "".join(whole))


def _list_texts(root: Any, names: Collection[str]) -> Iterator[str]:
    """Yield the text nodes, with line ends between paragraphs."""
    for node in root.iter(*names, *_GAPS):
        if node.tag in _GAPS:
            yield "\n"
        if node.tag in names:
            yield node.text or ""
            if node.tag in _GAPS:
                yield "\n"


def _read_workbook(data: bytes) -> PlainText:
    """The texts in cells of the visible sheets, without hidden rows and columns: a sheet with such is left out."""
    required: list[str] = []
    with zipfile.ZipFile(BytesIO(data)) as archive:
        names = set(archive.namelist())
        shared: list[str] = []
        if "xl/sharedStrings.xml" in names:
            root = parse_xml(archive.read("xl/sharedStrings.xml"))
            shared = ["".join(_list_cell_texts(item)) for item in root]
        book = parse_xml(archive.read("xl/workbook.xml"))
        hidden = any(sheet.get("state", "visible") != "visible" for sheet in book.iter(_SPREADSHEET + "sheet"))
        has_signs = "xl/styles.xml" in names and NAMED.search(archive.read("xl/styles.xml")) is not None
        sheets = [] if hidden else [name for name in names if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", name)]
        for name in sheets:
            xml = archive.read(name)
            if b"hidden=" in xml:
                continue
            places = re.findall(rb'<(?:\w+:)?c\s[^>]*?\bt="s"[^>]*>(?:<(?:\w+:)?f.*?)?<(?:\w+:)?v>(\d+)<', xml)
            texts = (shared[int(place)] for place in places if int(place) < len(shared))
            required += (text for text in texts if len(text) > 1 or not has_signs)
    return PlainText("\n".join(required), None)


def _list_cell_texts(item: Any) -> Iterator[str]:
    """Yield the texts of a shared string without how it is read aloud (``rPh``)."""
    for part in item:
        if part.tag != _SPREADSHEET + "rPh":
            yield from (text.text or "" for text in part.iter(_SPREADSHEET + "t"))


def _read_open_document(data: bytes, path: str) -> PlainText | None:
    """The paragraphs of an OpenDocument file; one with hidden parts is not compared."""
    with zipfile.ZipFile(BytesIO(data)) as archive:
        xml = archive.read("content.xml")
    if _OPEN_HIDDEN.search(xml):
        return None
    root = parse_xml(xml)
    for sign in root.iter("{*}span") if NAMED.search(xml) else ():
        if len(sign.text or "") == 1:
            sign.text = ""
    for unseen in root.iter(
        "{*}annotation", "{*}tracked-changes", "{*}table-of-content", "{*}settings", "{*}page-number"
    ):
        tail, before = unseen.tail or "", unseen.getprevious()
        if before is not None:
            before.tail = (before.tail or "") + tail
        elif unseen.getparent() is not None:
            unseen.getparent().text = (unseen.getparent().text or "") + tail
        unseen.clear(keep_tail=False)
    for gap in root.iter("{*}s", "{*}tab", "{*}line-break", "{*}p", "{*}h", "{*}note", "{*}note-citation"):
        gap.tail = f"\n{gap.tail or ''}"
    return PlainText("\n".join("".join(map(str, node.itertext())) for node in root.xpath(path)), None)


def _read_rich_text(data: bytes) -> Iterator[str]:
    """Yield the text of RTF outside of groups that are no text, by the code pages of the file and of its fonts.

    Letters that show signs are left out.
    """
    content = data.decode("latin-1")
    signs = map_sign_fonts(content)
    fonts = {number: f"cp{page}" for number, page in map_code_pages(content).items()}
    skipped, codec, fonts_used = [False], "cp1252", [""]
    escaped = bytearray()
    for part in _RTF_PART.findall(content):
        if part.startswith("\\'"):
            escaped.append(int(part[2:], 16))
            continue
        if escaped and not skipped[-1] and fonts_used[-1] not in signs:
            yield escaped.decode(fonts.get(fonts_used[-1], codec), "replace")
        escaped.clear()
        if part == "{":
            skipped.append(skipped[-1])
            fonts_used.append(fonts_used[-1])
        elif part == "}":
            skipped.pop()
            fonts_used.pop()
            if not skipped:
                return
        elif font := re.fullmatch(r"\\f(\d+) ?", part):
            fonts_used[-1] = font[1]
        elif part.strip() in ("\\*", "\\deleted", "\\v") or part.strip().rstrip("0123456789") in _RTF_NO_TEXT:
            skipped[-1] = True
        elif part.startswith("\\ansicpg"):
            codec = f"cp{part[8:].strip()}" if part[8:].strip() in _RTF_PAGES else codec
        elif not skipped[-1]:
            is_sign = fonts_used[-1] in signs and re.match(r"[^\\]|\\u-?\d", part)
            yield " " if is_sign else _read_rtf_part(part)


def _read_rtf_part(part: str) -> str:
    if character := re.match(r"\\u(-?\d+)", part):
        return chr(int(character[1]) % 0x10000)
    unseen = part == "\\-" or (part[1:2].isalpha() and part.rstrip() not in _RTF_GAPS)
    return ("" if unseen else "\n") if part[0] == "\\" else part


def _list_scalars(text: str) -> Iterator[str]:
    """Yield values of YAML that are words or plain figures, without keys."""
    yaml = library("yaml")
    is_key = False
    for token in yaml.scan(text):
        if isinstance(token, yaml.ScalarToken) and not is_key and (" " in token.value or token.value.isdecimal()):
            yield token.value
        is_key = isinstance(token, yaml.KeyToken)


def _list_element_texts(node: Any) -> Iterator[str]:
    """Yield the texts of an element in order, apart where an element holds others or no text follows it."""
    yield node.text or ""
    for child in node:
        number = "".join(child.itertext()).strip() if child.get("ref-type") else ""
        if number.isdecimal():
            yield f"[{number}]"
        elif isinstance(child.tag, str):
            yield "\n" if len(child) or child.tag.endswith("note") else ""
            yield from _list_element_texts(child)
        tail = child.tail or ""
        yield tail if tail.strip() else "\n"


def _read_page(text: str) -> PlainText:
    html = library("lxml.html")  # bytes: a text may have no declaration of an encoding, as XHTML has
    root = html.document_fromstring(text.encode("utf-8", "replace"), html.HTMLParser(encoding="utf-8"))
    controlled = {name for tag in root.iter() for name in str(tag.get("aria-controls") or "").split()}
    mains = list(root.iter("main")) or [root]
    required: list[str] = []
    for main in mains:
        _add_shown(main, required, controlled)
    whole = " ".join(str(part) for part in root.itertext())
    attributes = (str(tag.get(name)) for tag in root.iter() for name in ("alt", "value") if tag.get(name))
    joined: list[str] = []
    _add_shown(root, joined, controlled, everything=True)
    return PlainText("".join(required), " ".join([whole, "".join(joined), *attributes]))


def _add_shown(node: Any, texts: list[str], controlled: set[str], *, everything: bool = False) -> None:
    waiting: list[Any] = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            texts.append(one)
        elif isinstance(one.tag, str) and (everything or _is_shown(one, controlled)):
            gap = "" if one.tag in _INLINE else "\n"
            opening, closing = ("[", "]") if _is_note_mark(one) else (gap, gap)
            if one.tag in ("del", "s", "strike") and _ends_apart(one):
                closing = "\n"
            box = " "
            if (
                one.tag == "input"
                and one.get("type") in ("checkbox", "radio")
                and one.getparent().tag in ("li", "p", "td")
            ):
                box = " ☒ " if one.get("checked") is not None else " ☐ "
            inner = [part for child in one for part in (child, child.tail or "")]
            waiting += reversed([opening, one.text or "", *inner, box if one.tag == "input" else closing])


def _ends_apart(tag: Any) -> bool:
    """Whether an insertion, or a figure after a figure, stands right behind a struck text."""
    if not tag.tail:
        return tag.getnext() is not None and tag.getnext().tag == "ins"
    return str(tag.text_content())[-1:].isdigit() and tag.tail[0].isdigit()


def _is_note_mark(tag: Any) -> bool:
    """Whether an element is a figure that leads to a footnote."""
    raised = tag.tag == "a" and (tag.getparent().tag == "sup" or tag.find("sup") is not None)
    leads = tag.tag == "a" and (str(tag.get("href")).startswith("#") or "noteref" in str(tag.attrib))
    return (raised or leads) and tag.text_content().strip().isdecimal()


def _is_shown(tag: Any, controlled: set[str]) -> bool:
    if tag.tag == "option" and tag.get("selected") is None:
        return False
    if tag.tag in _UNSEEN or tag.tag in _AROUND or tag.get("role") in _AROUND_ROLES:
        return False
    if find_font(tag.get("face"), tag.get("style")):
        return False
    hidden = tag.get("hidden") not in (None, "until-found") or _INVISIBLE.search(str(tag.get("style") or ""))
    return not hidden or tag.get("role") == "tabpanel" or tag.get("id") in controlled
