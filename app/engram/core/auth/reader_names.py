"""Names of readers: whom passages let read, and what a caller is among them."""

import re
import unicodedata
from collections.abc import Iterable

EVERYONE, NOBODY = "everyone", "nobody"
MOST_READERS = 1_000
"""Of one passage, and of one caller."""
MOST_CHARACTERS = 200
# White space beyond ASCII is listed, since not every reader of the pattern counts it among \s. What has no width
# looks as if it were not there.
_END = r"[^\s\x00-\x1f\x7f\x85\xa0\xad\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\ufeff]"
PATTERN = rf"^(user|group):{_END}([^\x00-\x1f\x7f]*{_END})?$"
_NAME = re.compile(PATTERN.replace("$", r"\Z"))
_MISREAD = re.compile(r"[#;*]|\s(user|group):")
"""What only looks like a separator, a comment or a pattern: it would be a part of a reader's name."""


def parse_readers(text: str) -> tuple[str, ...] | None:
    """Read names with commas between them, or ``everyone`` (None) or ``nobody``.

    Raises:
        ValueError: one is no name, or there are too many.
    """
    named = text.strip()
    if named in (EVERYONE, NOBODY):
        return None if named == EVERYONE else ()
    names = [part.strip() for part in named.split(",")]
    for misread in filter(None, map(_MISREAD.search, names)):
        raise ValueError(f"{misread[0].strip()!r} cannot stand in a name; readers have commas between them")
    return normalise_readers(names)


def normalise_readers(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names in order, each once, as Unicode composes them (NFC).

    Raises:
        ValueError: one is no name, or there are too many.
    """
    readers = tuple(sorted({unicodedata.normalize("NFC", name) for name in names}))
    if len(readers) > MOST_READERS:
        raise ValueError(f"there are at most {MOST_READERS} readers")
    for name in readers:
        if not is_reader_name(name):
            raise ValueError(
                f"a reader is user:NAME or group:NAME, {MOST_CHARACTERS} characters at most; {name[:50]!r} is not"
            )
    return readers


def is_reader_name(text: str) -> bool:
    """Whether a passage can name this reader."""
    is_unicode = not any("\ud800" <= character <= "\udfff" for character in text)
    return len(text) <= MOST_CHARACTERS and is_unicode and _NAME.match(text) is not None
