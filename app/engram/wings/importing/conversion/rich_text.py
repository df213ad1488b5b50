"""Reader of Rich Text Format (Word 2007 RTF Specification, version 1.9.1)."""

import codecs
import re
from dataclasses import dataclass, replace

from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.inline_text import superscript
from engram.wings.importing.conversion.outline import Outline, flatten_text
from engram.wings.importing.conversion.pages import TICKED, UNTICKED
from engram.wings.importing.conversion.symbol_fonts import read_signs
from engram.wings.importing.conversion.table_model import Cell, lay_out, write_table

_TOKEN = re.compile(
    r"\\'(?P<byte>[0-9A-Fa-f]{2})|\\(?P<word>[A-Za-z]+)(?P<number>-?\d+)? ?|\\(?P<symbol>.)|(?P<brace>[{}])"
    r"|(?P<text>[^\\{}\r\n]+)|[\r\n]+",
    re.DOTALL,
)
_NO_TEXT = frozenset(
    """fonttbl colortbl stylesheet info pict object header headerl headerr headerf footer footerl footerr footerf
    fldinst xe tc sp shprslt pntext listtext annotation atnid revtbl nonshppict template""".split()
)
"""Destinations, next to those that are marked as such (``\\*``), whose content is no text of the document."""
_SHOWN = ("shpinst", "shptxt")
"""Marked destinations whose content is."""
_CHARACTERS = {
    "tab": " ",
    "line": " ",
    "emdash": "\u2014",
    "endash": "\u2013",
    "bullet": "\u2022",
    "lquote": "\u2018",
    "rquote": "\u2019",
    "ldblquote": "\u201c",
    "rdblquote": "\u201d",
    "emspace": " ",
    "enspace": " ",
}
_SYMBOLS = {"~": " ", "_": "\u2011", "-": "", "\\": "\\", "{": "{", "}": "}"}
_CHARSETS = {
    "128": "932",
    "129": "949",
    "134": "936",
    "136": "950",
    "161": "1253",
    "162": "1254",
    "163": "1258",
    "177": "1255",
    "178": "1256",
    "186": "1257",
    "204": "1251",
    "222": "874",
    "238": "1250",
}
"""Charsets of fonts -> code pages of Windows."""
_SIGNS = re.compile(r"\\f(\d+)[^{};]*?\s(W(?:ing|eb)dings(?: [23])?);")
_FONT = re.compile(r"\\f(\d+)[^{};]*?\\fcharset(\d+)")
_STYLE = re.compile(r"\{\\s(\d+)\b([^{}]*?) ([^{};\\]*);\}")
_LEVEL = re.compile(r"\\outlinelevel(\d)|heading (\d)|title$", re.IGNORECASE)
_TICK = re.compile(r"\\fftype1\b[^{}]*?\\ffres(\d+)(?:[^{}]*?\\ffdefres(\d+))?")
_BY_DEFAULT = "25"
_FIELD_CHARACTERS = 500
_STACK_DEPTH = 1_000
_BODY_LEVEL = 9


@dataclass(frozen=True)
class _State:
    """State that a group of the file has set.

    Attributes:
        skipped: whether its content is no text.
        hidden: whether Word does not show it.
        font: number of the font.
        raised: whether it is superscript.
        fallback: characters after a character of Unicode that stand for it.
        footnote: whether it is the outermost group of a footnote.
    """

    skipped: bool = False
    hidden: bool = False
    font: str = ""
    raised: bool = False
    fallback: int = 1
    footnote: bool = False


def rtf(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """Rich text: headings by the levels of their styles, paragraphs, tables, footnotes. It stores no page numbers.

    Raises:
        UnreadableError: it is no such file, is nested too deeply, or has no text.
    """
    content = data.decode("latin-1").lstrip()
    if not content.startswith("{\\rtf"):
        raise UnreadableError(f"{source} is not what its name says: it does not begin as RTF.")
    reader = _RichTextConverter(source, content)
    return reader.read()


class _RichTextConverter:
    """Reads the groups of a file into an outline."""

    def __init__(self, source: str, content: str) -> None:
        self._source = source
        self._content = content
        page = re.search(r"\\ansicpg(\d+)", content)
        self._page = page[1] if page else "1252"
        self._fonts = map_code_pages(content)
        self._signs = map_sign_fonts(content)
        self._levels = {number: _find_level(f"{words} {name}") for number, words, name in _STYLE.findall(content)}
        title = re.search(r"\{\\title ([^{}\\]+)\}", content)
        self._outline = Outline(title[1] if title else None)
        self._state = _State()
        self._stack: list[_State] = []
        self._bytes = bytearray()  # of characters that are not complete
        self._left = 0  # characters to skip
        self._pieces: list[str] = []
        self._around: list[list[str]] = []  # pieces of the paragraphs that footnotes interrupt
        self._cells: list[Cell] = []
        self._rows: list[list[Cell]] = []
        self._footnotes: list[str] = []
        self._level = 0
        self._in_table = self._has_hidden = False
        self._pictures = 0
        self._tick = ""  # of the field whose result comes

    def read(self) -> Document:
        """Return the document."""
        at = 0
        while (token := _TOKEN.match(self._content, at)) is not None:
            at = token.end()
            if token["byte"]:
                if self._left:
                    self._left -= 1
                else:
                    self._bytes.append(int(token["byte"], 16))
                continue
            self._end_bytes()
            if token["brace"] == "{":
                self._stack.append(self._state)
                self._state = replace(self._state, footnote=False)
                if len(self._stack) > _STACK_DEPTH:
                    raise UnreadableError(f"{self._source} nests more than {_STACK_DEPTH:,} groups in each other.")
            elif token["brace"]:
                self._end_group()
                if not self._stack:
                    break
            elif token["word"] == "bin":
                at = min(at + max(int(token["number"] or 0), 0), len(self._content))
            elif token["word"]:
                self._read_word(token["word"], token["number"] or "", token.start())
            else:
                self._read_characters(token["symbol"], token["text"] or "")
        self._end_paragraph()
        self._end_table()
        self._outline.close(1)
        for number, text in enumerate(self._footnotes, 1):
            self._outline.add(f"[{number}] {text}")
        notes = [f"{self._source}: left out hidden text"] if self._has_hidden else []
        notes += [f"{self._source}: not read: pictures ({self._pictures})"] if self._pictures else []
        return self._outline.document(self._source, "rtf", tuple(notes))

    def _read_characters(self, symbol: str | None, text: str) -> None:
        if symbol is None:
            skipped, self._left = min(self._left, len(text)), max(self._left - len(text), 0)
            self._add(text[skipped:])
            return
        self._left = 0
        if symbol in "\r\n":
            self._end_paragraph()
        self._add(_SYMBOLS.get(symbol, ""))

    def _read_word(self, word: str, number: str, at: int) -> None:
        begins = self._content[max(at - 3, 0) : at].removesuffix("\\*")[-1:] == "{"
        marked = self._content[max(at - 2, 0) : at] == "\\*"
        self._pictures += word == "pict" and not self._state.skipped
        self._left = 0
        if word == "formfield":
            self._tick = _find_tick(self._content[at : at + _FIELD_CHARACTERS])
        if begins and (word in _NO_TEXT or (marked and word not in _SHOWN)):
            self._state = replace(self._state, skipped=True)
        elif self._state.skipped:
            pass
        elif word == "fldrslt":
            self._add(self._tick)
            self._tick = ""
        elif word in _CHARACTERS:
            self._add(_CHARACTERS[word])
        elif word == "u" and number:
            self._add(chr(int(number) % 0x10000))
            self._left = self._state.fallback
        elif word in ("par", "sect", "page"):
            self._end_paragraph()
        elif word in ("cell", "nestcell"):
            self._cells.append(Cell(self._take()))
        elif word in ("row", "nestrow"):
            self._rows.append(self._cells)
            self._cells = []
        elif word == "footnote" and begins:
            self._state = replace(self._state, footnote=True)
            self._around.append(self._pieces)
            self._pieces = []
        else:
            self._set(word, number)

    def _set(self, word: str, number: str) -> None:
        """Set what a control word sets for the text after it."""
        if word in ("v", "deleted"):
            self._state = replace(self._state, hidden=number != "0")
        elif word == "f":
            self._state = replace(self._state, font=number)
        elif word in ("super", "nosupersub"):
            self._state = replace(self._state, raised=word == "super" and number != "0")
        elif word == "plain":
            self._state = replace(self._state, hidden=False, raised=False)
        elif word == "uc":
            self._state = replace(self._state, fallback=int(number or 1))
        elif word == "pard":
            self._level, self._in_table = 0, False
        elif word == "intbl":
            self._in_table = True
        elif word == "s":
            self._level = self._levels.get(number, 0)
        elif word == "outlinelevel":
            self._level = int(number or _BODY_LEVEL) + 1

    def _end_group(self) -> None:
        if self._state.footnote:
            self._footnotes.append(self._take())
            self._pieces = [*self._around.pop(), f" [{len(self._footnotes)}]"]
        if self._stack:
            self._state = self._stack.pop()
        self._left = 0

    def _end_bytes(self) -> None:
        if self._bytes:
            page = self._fonts.get(self._state.font, self._page)
            try:
                codec = codecs.lookup(f"cp{page}").name
            except LookupError:
                codec = "cp1252"
            self._add(self._bytes.decode(codec, "replace"))
            self._bytes.clear()

    def _add(self, text: str) -> None:
        if self._state.skipped or not text:
            return
        if self._state.hidden:
            self._has_hidden |= bool(text.strip())
            return
        if font := self._signs.get(self._state.font):
            text = read_signs(text, font)
        self._pieces.append(superscript(text, "".join(self._pieces[-5:])) if self._state.raised else text)

    def _take(self) -> str:
        text = flatten_text(_join_surrogates("".join(self._pieces)))
        self._pieces.clear()
        return text

    def _end_paragraph(self) -> None:
        if self._in_table or self._around:
            self._pieces.append(" ")
            return
        self._end_table()
        if (text := self._take()) and 0 < self._level <= _BODY_LEVEL:
            self._outline.open_heading(self._level, text)
        else:
            self._outline.add(text)

    def _end_table(self) -> None:
        if self._rows:
            self._outline.table(write_table(lay_out(self._source, self._rows)))
            self._rows = []


def map_code_pages(content: str) -> dict[str, str]:
    """Map the numbers of fonts to their code pages; a font that names none has the file's.

    Charset 0 is that of Western Europe. Some writers give it to all fonts, whatever they write: then it names none.
    """
    fonts = dict(_FONT.findall(content))
    pages = {number: _CHARSETS[charset] for number, charset in fonts.items() if charset in _CHARSETS}
    western = "1252" if pages else None
    return pages | {number: western for number, charset in fonts.items() if western and charset == "0"}


def map_sign_fonts(content: str) -> dict[str, str]:
    """Map the numbers of fonts whose letters show signs to their names."""
    return dict(_SIGNS.findall(content))


def _join_surrogates(text: str) -> str:
    """The text with characters that two numbers write, and without halves of them."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _find_tick(field: str) -> str:
    """The box of a form's field; empty if it is of another kind."""
    box = _TICK.search(field.partition("\\fldrslt")[0])
    if box is None:
        return ""
    return TICKED if (box[2] if box[1] == _BY_DEFAULT else box[1]) == "1" else UNTICKED


def _find_level(style: str) -> int:
    """The level of the headings of a style; 0 if it is none of headings."""
    match = _LEVEL.search(style)
    if match is None:
        return 0
    return int(match[1]) + 1 if match[1] else int(match[2] or 1)
