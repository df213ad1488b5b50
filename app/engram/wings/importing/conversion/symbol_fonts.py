"""Signs of fonts whose letters show something else, such as the ticks of Wingdings."""

import re
from collections.abc import Iterator
from typing import Any

from engram.wings.importing.conversion.outline import library

_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_DRAWING = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
NAMED = re.compile(rb'"(?:W(?:ing|eb)dings(?: [23])?|Symbol)"')
"""How XML names such a font."""
_PLAIN = dict(zip("🗹🗷⮽🗵🞎🞏□❑❒🗸🗶🗴", "☑☒☒☒☐☐☐☐☐✓✗✗", strict=True))
"""Signs that fewer fonts and readers know, and plain ones."""
_FAMILY = re.compile(r"""(?:^|font(?:-family)?:)[^;"',]*["']?(W(?:ing|eb)dings(?: [23])?)""")
_OWN = re.compile("[\uf020-\uf0ff]")
_OWN_OR_LATIN = re.compile("[!-\xff\uf020-\uf0ff]")


def read_signs(text: str, font: str | None, *, latin: bool = True) -> str:
    """Return what a font shows of a text; the text itself if the font is none of these.

    Args:
        latin: whether Latin letters show its signs too, not only characters of private use.
    """
    signs = library("mammoth.docx.dingbats").dingbats

    def read(match: re.Match[str]) -> str:
        code = signs.get((font, ord(match[0]) & 0xFF))
        return match[0] if code is None else _PLAIN.get(chr(code), chr(code))

    return (_OWN_OR_LATIN if latin else _OWN).sub(read, text)


def find_font(*styles: object) -> str | None:
    """Return the font of signs that a face, or the declarations of a style, name first."""
    matches = (_FAMILY.search(str(style or "").strip()) for style in styles)
    return next((match[1] for match in matches if match), None)


def write_signs(root: Any) -> None:
    """Write the signs of runs of OOXML as their characters."""
    for sign in list(root.iter(f"{_WORD}sym")):
        letter = chr(int(sign.get(f"{_WORD}char", "0"), 16))
        if (sign_text := read_signs(letter, sign.get(f"{_WORD}font"))) != letter:
            sign.tag, sign.text = f"{_WORD}t", sign_text
    for text, font, latin in list(_list_texts(root)):
        text.text = read_signs(text.text or "", font, latin=latin)


def _list_texts(root: Any) -> Iterator[tuple[Any, str | None, bool]]:
    """Each text of a run with the name of its font; whether that is the one of Latin letters."""
    for fonts in root.iter(f"{_WORD}rFonts", f"{_DRAWING}latin", f"{_DRAWING}sym"):
        run = fonts.getparent().getparent()
        name = fonts.get(f"{_WORD}ascii") or fonts.get("typeface")
        if run is not None and run.tag in (f"{_WORD}r", f"{_DRAWING}r"):
            for text in run.iterchildren(f"{_WORD}t", f"{_DRAWING}t"):
                yield text, name, fonts.tag != f"{_DRAWING}sym"
