"""Cutting a document into passages: always between sections and pages, inside one only where its length demands."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice, pairwise
from typing import Literal

from engram.core.text.joining import count_unspaced, gap
from engram.providers.language.language_detection import detect_language
from engram.providers.language.sentence_splitter import split_sentences
from engram.wings.importing.conversion.documents import Block, Document, ImportedPassage

# Chosen by benchmarks/chunking.py; an encoder reads about 256 tokens of a passage, four to five characters each.
SIZE = 1_200
OVERLAP = 200
Lead = Literal["none", "last", "path"]
LEAD: Lead = "last"
RECOGNISED_BLOCKS = 20
"""First blocks of a document that its language is recognised by."""


@dataclass(frozen=True)
class _Unit:
    """A sentence, a row or a line of code, or as much of one as fits a passage. Units are never cut."""

    text: str
    opens: bool  # a block begins with it
    header: str = ""  # of a row the names of its table's columns
    lead: str = ""  # of a block's first unit
    is_sentence: bool = True

    @property
    def shown(self) -> str:
        return self.lead + self.text


def passages(
    document: Document, *, size: int = SIZE, overlap: int = OVERLAP, lead: Lead = LEAD
) -> Iterator[ImportedPassage]:
    """Yield the passages of a document, in order.

    A passage stays within one section and one page, so its heading path and its page hold for all of its text. One
    that begins inside a table begins with the names of its columns.

    Args:
        size: characters of a passage at most, without its heading; a Chinese or Japanese one counts as three.
        overlap: characters of whole sentences at most that a passage repeats of the one before it.
        lead: what stands before each passage's text: its innermost heading, the whole path, or nothing.

    Raises:
        ValueError: the overlap is not smaller than the size, or one of them is negative.
    """
    if not 0 <= overlap < size:
        raise ValueError("overlap must be at least 0 and smaller than size")
    number = 0
    language = detect_language("\n".join(block.text for block in islice(document.blocks, RECOGNISED_BLOCKS)))
    for (headings, page, quoted, own), blocks in groupby(document.blocks, key=_place):
        units = [unit for block in blocks for unit in _units(block, size, language)]
        first = {"none": "", "last": headings[-1] if headings else "", "path": " > ".join(headings)}[lead]
        for packed in _pack_units(units, size, overlap):
            number += 1
            metadata: dict[str, object] = {"source": document.source, "format": document.format}
            metadata |= {"heading": list(headings)} if headings else {}
            metadata |= {} if page is None else {"page": page}
            metadata |= {"quoted": True} if quoted else {}
            yield _passage(
                document, number, first, packed, metadata | dict(document.metadata if own is None else own)
            )


def pieces(text: str, size: int) -> Iterator[str]:
    """Cut text that is longer than a passage, between words where possible."""
    while len(text) > size:
        cut = text.rfind(" ", 1, size + 1)
        cut = size if cut < 0 else cut
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text


def _place(block: Block) -> tuple[tuple[str, ...], int | None, bool, Mapping[str, object] | None]:
    return block.headings, block.page, block.quoted, block.metadata


def _units(block: Block, size: int, language: str | None) -> Iterator[_Unit]:
    opens = True
    header = block.header if len(block.header) < size // 2 else ""
    lead = block.lead if len(block.lead) < size // 2 else ""
    for sentence in [block.text] if block.whole else split_sentences(block.text, language):
        room = size - len(lead) - (len(header) + 1 if header else 0)
        for piece in pieces(sentence, room):
            yield _Unit(piece, opens, header, lead if opens else "", not block.is_header)
            opens = False


def _pack_units(units: list[_Unit], size: int, overlap: int) -> Iterator[list[_Unit]]:
    packed: list[_Unit] = []
    length = -1
    for unit in units:
        if packed and length + 1 + _width(unit.shown) > size:
            yield packed
            packed = _begin(packed, unit, size, overlap)
            length = _length(packed)
        packed.append(unit)
        length += 1 + _width(unit.shown)
    if packed:
        yield packed


def _begin(before: list[_Unit], unit: _Unit, size: int, overlap: int) -> list[_Unit]:
    """The units before ``unit`` in a new passage: the end of the last one; in a table its header too."""
    if not unit.header:
        return _tail(before, min(overlap, size - _width(unit.shown) - 1))
    rows = [earlier for earlier in before if earlier.header == unit.header]
    most = min(overlap, size - _width(unit.shown) - _width(unit.header) - 2)
    return [_Unit(unit.header, opens=True), *_tail(rows, most)]


def _tail(packed: list[_Unit], most: int) -> list[_Unit]:
    """The last units with at most ``most`` characters together, but never all of them."""
    tail: list[_Unit] = []
    for unit in reversed(packed[1:]):
        if _length([unit, *tail]) > most:
            break
        tail.insert(0, unit)
    return tail


def _length(units: list[_Unit]) -> int:
    return sum(_width(unit.shown) for unit in units) + len(units) - 1


def _width(text: str) -> int:
    """Count characters, a Chinese or Japanese one as three: tokens have 1.5 of these, and 4.2 English ones."""
    return len(text) if text.isascii() else len(text) + 2 * count_unspaced(text)


def _passage(
    document: Document, number: int, first: str, packed: list[_Unit], metadata: dict[str, object]
) -> ImportedPassage:
    text = packed[0].shown + "".join(
        ("\n" if unit.opens else gap(before.text, unit.text)) + unit.shown for before, unit in pairwise(packed)
    )
    sentences = (*((first,) if first else ()), *(unit.text for unit in packed if unit.is_sentence))
    return ImportedPassage(
        id=f"{document.source}#{number}",
        title=document.title[:500],
        text=f"{first}\n{text}" if first else text,
        sentences=sentences or (document.title[:500],),
        metadata=metadata,
        titled_by_name=document.titled_by_name if sentences or not document.titled_by_name else None,
    )
