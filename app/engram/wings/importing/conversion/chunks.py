"""Cutting a document into passages: always between sections and pages, inside one only where its length demands."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Literal

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


def passages(
    document: Document, *, size: int = SIZE, overlap: int = OVERLAP, lead: Lead = LEAD
) -> Iterator[ImportedPassage]:
    """Yield the passages of a document, in order.

    A passage stays within one section and one page, so its heading path and its page hold for all of its text.

    Args:
        size: characters of a passage at most, without its heading.
        overlap: characters of whole sentences at most that a passage repeats of the one before it.
        lead: what stands before each passage's text: its innermost heading, the whole path, or nothing.

    Raises:
        ValueError: the overlap is not smaller than the size, or one of them is negative.
    """
    if not 0 <= overlap < size:
        raise ValueError("overlap must be at least 0 and smaller than size")
    number = 0
    language = detect_language("\n".join(block.text for block in islice(document.blocks, RECOGNISED_BLOCKS)))
    for (headings, page), blocks in groupby(document.blocks, key=lambda block: (block.headings, block.page)):
        units = [unit for block in blocks for unit in _units(block, size, language)]
        first = {"none": "", "last": headings[-1] if headings else "", "path": " > ".join(headings)}[lead]
        for packed in _pack_units(units, size, overlap):
            number += 1
            yield _passage(document, number, headings, page, first, packed)


def pieces(text: str, size: int) -> Iterator[str]:
    """Cut text that is longer than a passage, between words where possible."""
    while len(text) > size:
        cut = text.rfind(" ", size // 2, size + 1)
        cut = size if cut < 0 else cut
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text


def _units(block: Block, size: int, language: str | None) -> Iterator[_Unit]:
    opens = True
    for sentence in [block.text] if block.whole else split_sentences(block.text, language):
        for piece in pieces(sentence, size):
            yield _Unit(piece, opens)
            opens = False


def _pack_units(units: list[_Unit], size: int, overlap: int) -> Iterator[list[_Unit]]:
    packed: list[_Unit] = []
    length = -1
    for unit in units:
        if packed and length + 1 + len(unit.text) > size:
            yield packed
            packed = _tail(packed, min(overlap, size - len(unit.text) - 1))
            length = _length(packed)
        packed.append(unit)
        length += 1 + len(unit.text)
    if packed:
        yield packed


def _tail(packed: list[_Unit], most: int) -> list[_Unit]:
    """The last units with at most ``most`` characters together, but never all of them."""
    tail: list[_Unit] = []
    for unit in reversed(packed[1:]):
        if _length([unit, *tail]) > most:
            break
        tail.insert(0, unit)
    return tail


def _length(units: list[_Unit]) -> int:
    return sum(len(unit.text) for unit in units) + len(units) - 1


def _passage(
    document: Document, number: int, headings: tuple[str, ...], page: int | None, first: str, packed: list[_Unit]
) -> ImportedPassage:
    text = "".join((("\n" if unit.opens else " ") if at else "") + unit.text for at, unit in enumerate(packed))
    metadata: dict[str, object] = {"source": document.source, "format": document.format}
    if headings:
        metadata["heading"] = list(headings)
    if page is not None:
        metadata["page"] = page
    return ImportedPassage(
        id=f"{document.source}#{number}",
        title=document.title[:500],
        text=f"{first}\n{text}" if first else text,
        sentences=(*((first,) if first else ()), *(unit.text for unit in packed)),
        metadata=metadata,
    )
