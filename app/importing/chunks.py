"""Where a document is cut into passages: between sections always, inside one only as far as its length demands."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from app.importing.documents import Block, Document, Passage
from app.providers.language.sentences import split_sentences

# An encoder reads some 256 tokens of a passage; English has four to five characters a token.
SIZE = 1_200
OVERLAP = 200


@dataclass(frozen=True)
class _Unit:
    """What is never cut: a sentence, a row, a line of code, or so much of one as fits a passage."""

    text: str
    page: int | None
    opens: bool  # a block begins with it


def passages(document: Document, *, size: int = SIZE, overlap: int = OVERLAP) -> Iterator[Passage]:
    """The passages of a document, in order.

    A section's heading is the first sentence of each of its passages: it says what the rest is about.

    Args:
        size: characters of a passage at most, its heading aside.
        overlap: characters of whole sentences at most that a passage repeats of the one before it in its section.

    Raises:
        ValueError: the overlap is not smaller than the size, or one of them is negative.
    """
    if not 0 <= overlap < size:
        raise ValueError("overlap must be at least 0 and smaller than size")
    number = 0
    for headings, blocks in groupby(document.blocks, key=lambda block: block.headings):
        units = [unit for block in blocks for unit in _units(block, size)]
        for held in _packed(units, size, overlap):
            number += 1
            yield _passage(document, number, headings, held)


def _units(block: Block, size: int) -> Iterator[_Unit]:
    opens = True
    for sentence in [block.text] if block.whole else split_sentences(block.text):
        for piece in _pieces(sentence, size):
            yield _Unit(piece, block.page, opens)
            opens = False


def _pieces(text: str, size: int) -> Iterator[str]:
    """The text, cut between words where it is longer than a passage, and inside one that is itself too long."""
    while len(text) > size:
        cut = text.rfind(" ", size // 2, size + 1)
        cut = size if cut < 0 else cut
        yield text[:cut].rstrip()
        text = text[cut:].lstrip()
    if text:
        yield text


def _packed(units: list[_Unit], size: int, overlap: int) -> Iterator[list[_Unit]]:
    held: list[_Unit] = []
    for unit in units:
        if held and _length(held) + 1 + len(unit.text) > size:
            yield held
            held = _tail(held, min(overlap, size - len(unit.text) - 1))
        held.append(unit)
    if held:
        yield held


def _tail(held: list[_Unit], most: int) -> list[_Unit]:
    """The last units that have no more than ``most`` characters together, but never all of them."""
    kept: list[_Unit] = []
    for unit in reversed(held[1:]):
        if _length([unit, *kept]) > most:
            break
        kept.insert(0, unit)
    return kept


def _length(units: list[_Unit]) -> int:
    return sum(len(unit.text) for unit in units) + len(units) - 1


def _passage(document: Document, number: int, headings: tuple[str, ...], held: list[_Unit]) -> Passage:
    heading = headings[-1] if headings else None
    text = "".join((("\n" if unit.opens else " ") if at else "") + unit.text for at, unit in enumerate(held))
    metadata: dict[str, object] = {"source": document.source, "format": document.format}
    if headings:
        metadata["heading"] = list(headings)
    if held[0].page is not None:
        metadata["page"] = held[0].page
    return Passage(
        id=f"{document.source}#{number}",
        title=document.title,
        text=text if heading is None else f"{heading}\n{text}",
        sentences=(*(() if heading is None else (heading,)), *(unit.text for unit in held)),
        metadata=metadata,
    )
