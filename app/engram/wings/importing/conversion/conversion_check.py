"""A check of conversions: what they hold against what a simple second reader sees in the file."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby

from engram.core.text.joining import is_unspaced
from engram.wings.importing.conversion.documents import Block
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.outline import drop_encoded
from engram.wings.importing.conversion.simple_readers import PlainText
from engram.wings.importing.conversion.table_model import SEPARATOR

LEAST_FIGURES = 2
FIGURES_SHARE = 0.01
"""Share of a file's figures that may differ."""
LEAST_WORDS = 4
WORDS_SHARE = 0.02
"""Share of a file's words that may be missing: readers leave out what no page shows."""
_TOKEN = re.compile(r"[^\W_]+|[☐☑☒]")
_SOFT = re.compile("[\xad\u200b\u200c\u200d\u2060\ufeff]")
_RAISED = re.compile(r"\^\(([^()]*)\)")
_NUMBERING = re.compile(r"^\s*(?:\d+(?:\.\d+)*\.?|[A-Z]\.|[IVX]+\.)\s+")
_REFERENCE = re.compile(r"\[\d+\]")
_FALSELY_RAISED = re.compile(r"\b\w+\^\d{3,}")
_COMMON_RAISED = re.compile(r"\b\w*\d\^\d+")
_MOST_RAISED_SHARE = 0.3
_LEAST_RAISED = 5


def find_differences(
    source: str, plain: PlainText, blocks: Sequence[Block], texts: Iterable[str]
) -> tuple[str, ...]:
    """Compare words and figures of a file with those that its conversion holds; return notes with samples.

    A figure differs if it is missing, if the file does not have it, or if it stands more often than in the file
    outside of tables. The order is not compared.

    Args:
        blocks: of the document.
        texts: of its other passages.
    """
    rows = [block for block in blocks if block.header or SEPARATOR in block.text]
    prose = [block for block in blocks if not (block.header or SEPARATOR in block.text)]
    headings = {heading for block in blocks for heading in block.headings}
    in_prose = _count(block.text for block in prose)
    held = in_prose + _count([*map(_drop_names, rows), *texts]) + _count(headings)
    known = held + _count(block.header for block in rows)
    required = _count([drop_encoded(_drop_numbering(plain.required, headings))[0]])
    missing = Counter({token: count - known[token] for token, count in required.items() if count > known[token]})
    figures = Counter({token: count for token, count in missing.items() if _is_figure(token)})
    if plain.whole is not None:
        whole = _count([plain.whole])
        figures |= {token: count for token, count in held.items() if token.isdecimal() and not whole[token]}
        figures |= {
            token: count - whole[token]
            for token, count in in_prose.items()
            if token.isdecimal() and 0 < whole[token] < count
        }
    figures |= _count_falsely_raised(block.text for block in blocks)
    words = missing - figures
    all_figures = sum(count for token, count in required.items() if _is_figure(token))
    notes = []
    if figures.total() >= max(LEAST_FIGURES, FIGURES_SHARE * all_figures):
        notes.append(
            f"{source}: {figures.total()} figures differ from the plain text of the file: {_list(figures)}"
        )
    if words.total() >= max(LEAST_WORDS, WORDS_SHARE * (required.total() - all_figures)):
        notes.append(f"{source}: {words.total()} words of the plain text of the file are missing: {_list(words)}")
    return tuple(notes)


def _drop_numbering(text: str, headings: Iterable[str]) -> str:
    """The text with headings as bookmarks have them, without their numbers."""
    known = {heading.casefold() for heading in headings}
    lines = ((line, _NUMBERING.sub("", line)) for line in text.split("\n"))
    return "\n".join(title if title.casefold() in known else line for line, title in lines)


def _list(tokens: Counter[str]) -> str:
    return list_some(list(tokens))


def _count(texts: Iterable[str]) -> Counter[str]:
    """Count words and figures in one spelling; of scripts without spaces each character."""
    plain = "\n".join(texts)
    if "[" in plain or "^" in plain:
        plain = _RAISED.sub(r"\1", _REFERENCE.sub(" ", plain)).replace("^", "")
    if plain.isascii():
        return Counter(_TOKEN.findall(plain.casefold()))
    plain = unicodedata.normalize("NFKC", _SOFT.sub("", plain))
    counts = Counter(_TOKEN.findall(plain.casefold()))
    for token in [token for token in counts if not token.isascii() and any(map(is_unspaced, token))]:
        count = counts.pop(token)
        for unspaced, characters in groupby(token, key=is_unspaced):
            for part in characters if unspaced else ["".join(characters)]:
                counts[part] += count
    return counts


def _is_figure(token: str) -> bool:
    return any(map(str.isdigit, token))


def _drop_names(row: Block) -> str:
    """A row of a table without the names of its columns."""
    names = row.header.split(SEPARATOR) if row.header else []
    cells = row.text.split(SEPARATOR)
    named = ((cell, next((name for name in names if cell.startswith(f"{name}: ")), None)) for cell in cells)
    return SEPARATOR.join(cell if name is None else cell[len(name) + 2 :] for cell, name in named)


def _count_falsely_raised(texts: Iterable[str]) -> Counter[str]:
    """Figures whose end is written as raised and is too long for that, or where very many are."""
    text = "\n".join(texts)
    if "^" not in text:
        return Counter()
    common = _COMMON_RAISED.findall(text)
    many = len(common) >= _LEAST_RAISED and len(common) > _MOST_RAISED_SHARE * len(re.findall(r"\d+", text))
    return Counter(figure.replace("^", "") for figure in (common if many else _FALSELY_RAISED.findall(text)))
