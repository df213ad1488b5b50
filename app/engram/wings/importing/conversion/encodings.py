"""The encoding of a text.

UTF-8 proves itself: text in another encoding is hardly ever valid UTF-8. So it goes before any label, also where
bytes of it are damaged. The 8-bit encodings do not prove themselves, and a statistical guess needs more text than a
note has. So Windows-1252, a superset of printable Latin-1, is assumed for text in Latin letters unless it would put
a symbol inside a word; the guess is left for the rest.
"""

import codecs
import re
import unicodedata
from importlib import import_module
from typing import NamedTuple

from engram.wings.importing.conversion.documents import NotInstalledError, UnreadableError
from engram.wings.importing.conversion.notes import list_some

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_LABELS = {
    "ascii": "cp1252",
    "utf-8-sig": "utf-8",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
"""Encodings by the names that browsers read as larger ones: files are labelled with the name and hold the other."""
_NO_CHARSETS = ("idna", "punycode", "raw-unicode-escape", "unicode-escape")
"""Python's codecs of text that no browser and no mail program knows: they are notations, not encodings."""
_WIDE = ("gb18030", "cp932", "cp949", "big5hkscs", "euc_jp", "utf-16", "utf-32")
"""Encodings of several bytes a character, which damaged UTF-8 hardly ever fits."""
_GUESSED = """
    cp1250 cp1251 cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 koi8_r koi8_u iso8859_2 iso8859_5 iso8859_6
    iso8859_7 iso8859_8 iso8859_15 cp866 cp874 gb18030 gbk big5hkscs euc_jp cp932 cp949 cp437 cp850 cp852
    """.split()
"""Encodings that files still have. Others, as those of old Macs, fit any bytes and are guessed for these."""
_DECLARED = re.compile(
    rb"""<(?:meta[^>]*?\bcharset|\?xml[^>]*?\bencoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE
)
_DECLARATION_BYTES = 4_096
_LATIN_SHARE = 0.33
"""Accented letters among all letters: Vietnamese has the most of the Latin scripts, Cyrillic text nearly all."""
_LATIN_RUN = re.compile(r"(?:(?=[^\x00-\x7f])[^\W\d_]){5}")
"""More accented letters in a row than a word in Latin letters has."""
_SAMPLE_BYTES = 200_000
_UTF8_SHARE = 0.5
"""Bytes of valid UTF-8 among those beyond ASCII: damaged UTF-8 has more, other encodings hardly ever as many."""
_SURE_UTF8_SHARE = 0.75
"""The same where the label fits too: short texts of an 8-bit script reach two thirds by chance."""
_SYMBOLS = frozenset({"Sc", "Sm", "Sk", "So", "No", "Cf", "Cc"})
_HIGH = re.compile(rb"[\x80-\xff]+")
_ESCAPED = re.compile(r"[\udc80-\udcff]+")
"""Bytes that ``surrogateescape`` kept because they are no UTF-8."""


class DecodedText(NamedTuple):
    """A text with ``\\n`` line ends, the encoding that it was read in, and a note where that may surprise."""

    text: str
    encoding: str
    notes: tuple[str, ...]


def decode_text(source: str, data: bytes, label: str | None = None) -> DecodedText:
    """Decode a text.

    Args:
        label: the encoding that the file says it has.

    Raises:
        UnreadableError: the bytes are no text.
    """
    codec = _codec(label)
    text, encoding, damage = _decode_bytes(source, data, codec)
    if "\x00" in text:
        raise UnreadableError(f"{source} is no text.")
    why = "" if codec is None or codec == _codec(encoding) else f", though it says {label}"
    if codec is None and encoding != "UTF-8":
        why = ", because it is not UTF-8"
    notes = (f"{source}: read as {encoding}{damage}{why}",) if damage or why else ()
    return DecodedText(text.replace("\r\n", "\n").replace("\r", "\n"), encoding, notes)


def declared_encoding(data: bytes) -> str | None:
    """The encoding that a page says it has. A page that says UTF-16 or UTF-32 in ASCII letters is UTF-8."""
    match = _DECLARED.search(data[:_DECLARATION_BYTES])
    label = match[1].decode("ascii") if match else None
    return "utf-8" if label and label.lower().startswith(("utf-16", "utf-32")) else label


def _codec(label: str | None) -> str | None:
    """Python's codec of a label, as browsers understand it; None if there is no such encoding."""
    try:
        name = codecs.lookup((label or "").strip().lower().replace("windows-", "cp")).name
        "a".encode(name)  # raises for codecs of bytes, as base64
    except (LookupError, ValueError):
        return None
    return None if name in _NO_CHARSETS else _LABELS.get(name, name)


def _decode_bytes(source: str, data: bytes, label: str | None) -> tuple[str, str, str]:  # noqa: PLR0911 - a case each
    """(text, encoding, what was damaged) of bytes."""
    for mark, codec, name in _BOMS:
        if data.startswith(mark):
            if name == "UTF-8":
                return _decode_utf8(data[len(mark) :])
            return _decode_wide(source, data, codec, name)
    if wide := _utf16_codec(data):
        return _decode_wide(source, data, wide, "UTF-16")
    if label is not None and data.isascii() and "a".encode(label) == b"a":
        text = _decode_strictly(data, label)  # 7-bit encodings of Japanese and Chinese look like ASCII
        if text is not None:
            return text, _name(label), ""
    if b"\x00" not in data and (text := _decode_strictly(data, "utf-8")) is not None:
        return text, "UTF-8", ""
    if label is not None and label.startswith(_WIDE) and (text := _decode_strictly(data, label)) is not None:
        return text, _name(label), ""
    if b"\x00" in data:
        raise UnreadableError(f"{source} is no text.")
    strict = _decode_strictly(data, label) if label is not None else None
    if _is_damaged_utf8(data, _UTF8_SHARE if strict is None or not _has_whole_words(strict) else _SURE_UTF8_SHARE):
        return _decode_utf8(data)
    if label is not None and label != "utf-8":
        damaged = data.decode(label, "replace")
        count = damaged.count("\ufffd")
        if count <= len(_HIGH.findall(data)) // 5:
            return damaged, _name(label), f", with {count} characters that it does not have" if count else ""
    return *_decode_8_bit(source, data), ""


def _decode_strictly(data: bytes, codec: str) -> str | None:
    try:
        return data.decode(codec)
    except (UnicodeDecodeError, LookupError):
        return None


def _decode_wide(source: str, data: bytes, codec: str, name: str) -> tuple[str, str, str]:
    """Decode UTF-16 or UTF-32, which may be cut inside its last character.

    Raises:
        UnreadableError: it is damaged elsewhere.
    """
    try:
        return data.decode(codec), name, ""
    except UnicodeDecodeError as error:
        if error.start < len(data) - 4:
            raise UnreadableError(f"{source} begins as {name} and is none.") from None
        return data.decode(codec, "replace"), name, ", cut inside its last character"


def _is_damaged_utf8(data: bytes, share: float) -> bool:
    """Whether at least this share of the bytes beyond ASCII is valid UTF-8."""
    runs = _HIGH.findall(data)
    valid = sum(len(run.decode("utf-8", "ignore").encode()) for run in runs)
    return valid > 0 and valid >= share * sum(map(len, runs))


def _decode_utf8(data: bytes) -> tuple[str, str, str]:
    """Decode UTF-8 whose damaged bytes are Windows-1252, but for a character that the end of the file cuts."""
    decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
    text = decoder.decode(data)
    is_cut = bool(decoder.getstate()[0])
    lines = [number for number, line in enumerate(text.split("\n"), 1) if _ESCAPED.search(line)]
    text = _ESCAPED.sub(lambda run: run[0].encode("ascii", "surrogateescape").decode("cp1252", "replace"), text)
    damage = f" but for bytes of Windows-1252 in line {list_some(lines)}" if lines else ""
    return text + "\ufffd" * is_cut, "UTF-8", damage + ", cut inside its last character" * is_cut


def _decode_8_bit(source: str, data: bytes) -> tuple[str, str]:
    for codec in ("cp1252", "cp1250"):
        text = _decode_strictly(data, codec)
        if text is not None and _is_plausible(text):
            return text, _name(codec)
    return _guess_encoding(source, data)


def _name(codec: str) -> str:
    return f"Windows-{codec[2:]}" if codec in ("cp1250", "cp1252") else codec


def _utf16_codec(data: bytes) -> str | None:
    """UTF-16 without a byte order mark: every other byte of text in Latin letters is zero."""
    sample = data[:4096]
    half = len(sample) // 2
    if half < 2:
        return None
    if sample[1::2].count(0) > 0.7 * half and sample[::2].count(0) < 0.1 * half:
        return "utf-16-le"
    if sample[::2].count(0) > 0.7 * half and sample[1::2].count(0) < 0.1 * half:
        return "utf-16-be"
    return None


def _is_plausible(text: str) -> bool:
    """Whether the beginning reads as words in Latin letters: few accents, and no symbol between two letters."""
    text = text[:_SAMPLE_BYTES]
    if _LATIN_RUN.search(text) or not _has_whole_words(text):
        return False
    letters = sum(map(str.isalpha, text))
    accented = sum(character > "\x7f" and character.isalpha() for character in text)
    return accented <= max(_LATIN_SHARE * letters, 1)


def _has_whole_words(text: str) -> bool:
    """Whether no word of the beginning has a control, a symbol or a capital inside, as in a wrong encoding."""
    text = text[:_SAMPLE_BYTES]
    neighbours = zip(" " + text, text, text[1:] + " ", strict=False)
    return not any(
        character > "\x7f" and _breaks_word(before, character, after) for before, character, after in neighbours
    )


def _breaks_word(before: str, character: str, after: str) -> bool:
    kind = unicodedata.category(character)
    if kind == "Cc" or (before.islower() and character.isupper()) or (character == "¿" and before.isalpha()):
        return True
    inside = before.isalpha() and after.isalpha()
    return inside and (kind in _SYMBOLS or character == "¡") and character != "\xad"


def _guess_encoding(source: str, data: bytes) -> tuple[str, str]:
    try:
        best = import_module("charset_normalizer").from_bytes(data, cp_isolation=_GUESSED).best()
    except ModuleNotFoundError as error:
        raise NotInstalledError("charset_normalizer is not installed: pip install 'engram[import]'.") from error
    if best is None:
        raise UnreadableError(f"{source} is no text in an encoding that can be told.")
    return str(best), str(best.encoding)
