"""The encoding of a text file.

UTF-8 proves itself: text in another encoding is hardly ever valid UTF-8. The 8-bit encodings do not, and a
statistical guess needs more text than a note has. So Windows-1252, a superset of printable Latin-1, is assumed
for text in Latin letters unless it would put a symbol inside a word; the guess is left for the rest.
"""

import codecs
import unicodedata
from importlib import import_module

from engram.wings.importing.conversion.documents import NotInstalledError, UnreadableError

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig", "UTF-8"),
    (codecs.BOM_UTF32_LE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF32_BE, "utf-32", "UTF-32"),
    (codecs.BOM_UTF16_LE, "utf-16", "UTF-16"),
    (codecs.BOM_UTF16_BE, "utf-16", "UTF-16"),
)
_LATIN_SHARE = 0.3
"""Accented letters among all letters: Vietnamese has the most of the Latin scripts, Cyrillic text nearly all."""
_SAMPLE_BYTES = 200_000
_SYMBOLS = frozenset({"Sc", "Sm", "Sk", "So", "No", "Cf", "Cc"})


def decode_text(source: str, data: bytes) -> tuple[str, str]:
    """Return the text with ``\\n`` line ends, and the name of the encoding that was assumed.

    Raises:
        UnreadableError: the bytes are no text.
    """
    text, encoding = _decode_bytes(source, data)
    if "\x00" in text:
        raise UnreadableError(f"{source} is no text.")
    return text.replace("\r\n", "\n").replace("\r", "\n"), encoding


def note(source: str, encoding: str) -> tuple[str, ...]:
    """The line that says which encoding was assumed; none for UTF-8."""
    return () if encoding == "UTF-8" else (f"{source}: read as {encoding}, because it is not UTF-8",)


def _decode_bytes(source: str, data: bytes) -> tuple[str, str]:
    for mark, codec, name in _BOMS:
        if data.startswith(mark):
            try:
                return data.decode(codec), name
            except UnicodeDecodeError:
                raise UnreadableError(f"{source} begins as {name} and is none.") from None
    if wide := _utf16_codec(data):
        try:
            return data.decode(wide), "UTF-16"
        except UnicodeDecodeError:
            pass
    try:
        return data.decode("utf-8"), "UTF-8"
    except UnicodeDecodeError:
        pass
    if b"\x00" in data:
        raise UnreadableError(f"{source} is no text.")
    for codec, name in (("cp1252", "Windows-1252"), ("cp1250", "Windows-1250")):
        try:
            text = data.decode(codec)
        except UnicodeDecodeError:
            continue
        if _is_plausible(text):
            return text, name
    return _guess_encoding(source, data)


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
    letters = accented = 0
    text = text[:_SAMPLE_BYTES]
    for before, character, after in zip(" " + text, text, text[1:] + " ", strict=False):
        if character.isalpha():
            letters += 1
            accented += character > "\x7f"
        if character > "\x7f":
            kind = unicodedata.category(character)
            inside = before.isalpha() and after.isalpha()
            if kind == "Cc" or ((inside and (kind in _SYMBOLS or character in "¿¡")) and character != "\xad"):
                return False
            if character == "¿" and before.isalpha():
                return False
            if before.islower() and character.isupper():
                return False
    return accented <= max(_LATIN_SHARE * letters, 1)


def _guess_encoding(source: str, data: bytes) -> tuple[str, str]:
    try:
        best = import_module("charset_normalizer").from_bytes(data).best()
    except ModuleNotFoundError as error:
        raise NotInstalledError("charset_normalizer is not installed: pip install 'engram[import]'.") from error
    if best is None:
        raise UnreadableError(f"{source} is no text in an encoding that can be told.")
    return str(best), str(best.encoding)
