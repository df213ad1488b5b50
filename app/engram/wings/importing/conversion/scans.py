"""Text of pictures, recognised by Tesseract where it is installed, and the reader of picture files."""

import csv
import io
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Any

from engram.wings.importing.conversion.documents import Document, UnreadableError
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.line_ends import join_words
from engram.wings.importing.conversion.notes import list_some
from engram.wings.importing.conversion.outline import Outline, library
from engram.wings.importing.conversion.prose import add_paragraphs

KINDS = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
RESOLUTION = 300
"""Dots an inch, which Tesseract's manual asks for."""
MOST_PIXELS = 25_000_000
"""Of a page; a larger one is drawn in less detail."""
LOW_CONFIDENCE = 0.8
TIME_SHARE = 0.5
"""Of the time of a file that is no picture, after which OCR stops, so that the rest is left for its text."""
PICTURE_TIME_SHARE = 0.9
"""As ``TIME_SHARE``, of a picture: the rest is for cutting what was read into passages."""
_BOUND = 'ulimit -t "$1" && shift && exec "$@"'
_WORD_LEVEL = "5"
_NO_LANGUAGE = ("osd", "snum")
_BEGINNINGS = (b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"II*\0", b"MM\0*", b"P5 ")
"""Of PNG, JPEG, TIFF and PGM. Tesseract takes anything else for a list of files, which it would read."""


@dataclass(frozen=True)
class RecognisedPage:
    """Text of a page; lines end with a line end, paragraphs with a blank line.

    Attributes:
        confidence: mean of what Tesseract says of its words, by their characters, from 0 to 1.
    """

    text: str
    confidence: float


@cache
def find_program() -> str | None:
    """Return the path of Tesseract; None where it is not installed."""
    return shutil.which("tesseract")


def image(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """A picture of text; the pages of a TIFF are pages.

    Raises:
        UnreadableError: Tesseract is not installed, it is no such picture, has too many pages, or shows no text.
    """
    pages, is_whole = recognise(source, data, limits)
    if len(pages) > limits.pages:
        raise UnreadableError(f"{source} has more than {limits.pages:,} pages.")
    outline = Outline()
    for number, text in enumerate(join_words([page.text for page in pages]), 1):
        outline.page = number if len(pages) > 1 or not is_whole else None
        add_paragraphs(text, outline)
    notes = () if is_whole else (f"{source}: OCR took too long for page {len(pages) + 1} and those after it",)
    return outline.document(source, "image", (*notes, *note_recognised(source, dict(enumerate(pages, 1)))))


def recognise(source: str, picture: bytes, limits: ConversionLimits) -> tuple[list[RecognisedPage], bool]:
    """Recognise the text of the pages of a picture: PNG, JPEG, TIFF or PGM.

    It reads from a pipe and writes to one, below the bounds of the process that converts.

    Returns:
        The pages that were read before the time for OCR was over, and whether they are all.

    Raises:
        UnreadableError: Tesseract is not installed, it is no such picture, or no page was read in time.
    """
    program = find_program()
    if program is None:
        raise UnreadableError(f"{source} is read by Tesseract, which is not installed: apt install tesseract-ocr.")
    if not picture.startswith(_BEGINNINGS):
        raise UnreadableError(f"{source} is not what its name says: it begins as no picture.")
    languages = "+".join(_list_languages(program))
    command = [program, "stdin", "stdout", "--dpi", str(RESOLUTION), "-l", languages, "tsv"]
    seconds = max(min(limits.seconds, limits.recognise_until - time.monotonic()), 0.0)
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", _BOUND, "sh", str(int(seconds) + 1), *command],
            input=picture,
            capture_output=True,
            timeout=seconds,
            env=_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        pages = _read_table(late.stdout or b"")[:-1]  # the last one may be cut
        if not pages:
            raise UnreadableError(f"{source} needs more time for OCR than it may take.") from None
        return pages, False
    if done.returncode:
        raise UnreadableError(f"{source} is no picture that Tesseract can read, or needs too much time or memory.")
    return _read_table(done.stdout), True


def recognise_pages(
    source: str, reader: Any, numbers: Iterable[int], limits: ConversionLimits
) -> dict[int, RecognisedPage]:
    """Recognise pages of a PDF by their numbers from 1, without those that fail or for which no time is left."""
    read = {}
    for number in numbers:
        if time.monotonic() >= limits.recognise_until:
            break
        with closing(reader[number - 1]) as page, suppress(UnreadableError, subprocess.SubprocessError):
            read[number] = _recognise_page(source, page, limits)
    return read


def _recognise_page(source: str, page: Any, limits: ConversionLimits) -> RecognisedPage:
    """Recognise the text of a page of pdfium; one on which nothing is drawn has none."""
    if next(page.get_objects(), None) is None:
        return RecognisedPage("", 0.0)
    width, height = page.get_size()
    scale = min(_find_resolution(page) / 72, (MOST_PIXELS / max(width * height, 1)) ** 0.5)
    pixels = page.render(scale=scale, grayscale=True).to_numpy()
    rows, columns = pixels.shape[:2]
    read, _ = recognise(source, b"P5 %d %d 255\n" % (columns, rows) + pixels.tobytes(), limits)
    return read[0] if read else RecognisedPage("", 0.0)


def _find_resolution(page: Any) -> float:
    """The resolution of the finest picture of a page: to draw a scan finer than it is makes noise of its grain."""
    pictures = page.get_objects(filter=[library("pypdfium2.raw").FPDF_PAGEOBJ_IMAGE])
    resolutions = [picture.get_metadata().horizontal_dpi for picture in pictures]
    return min(max(resolutions, default=RESOLUTION), RESOLUTION) or RESOLUTION


def note_recognised(source: str, pages: dict[int, RecognisedPage]) -> tuple[str, ...]:
    """The lines that name pages that were recognised, with the confidence, and those that may be wrong."""
    read = {number: page for number, page in pages.items() if page.text}
    if not read:
        return ()
    labels = [f"{number} (confidence {page.confidence:.2f})" for number, page in read.items()]
    low = [number for number, page in read.items() if page.confidence < LOW_CONFIDENCE]
    notes = [f"{source}: read by OCR: page {list_some(labels)}"]
    notes += [f"{source}: OCR is unsure of page {list_some(low)}"] if low else []
    return tuple(notes)


@cache
def _list_languages(program: str) -> tuple[str, ...]:
    """The languages that Tesseract has models of; English first."""
    listed = subprocess.run(
        [program, "--list-langs"], capture_output=True, text=True, env=_environment(), check=True, timeout=30
    )
    names = [line.strip() for line in listed.stdout.split("\n")[1:]]
    known = [name for name in names if name and name not in _NO_LANGUAGE and "/" not in name]
    return tuple(sorted(known, key=lambda name: (name != "eng", name)))


def _environment() -> dict[str, str]:
    variables = {name: os.environ[name] for name in ("PATH", "TESSDATA_PREFIX") if name in os.environ}
    return variables | {"OMP_THREAD_LIMIT": "1"}


def _read_table(table: bytes) -> list[RecognisedPage]:
    """Read the words of Tesseract's TSV: level, page, block, paragraph, line, word, box, confidence, text."""
    lines = io.StringIO(table.decode("utf-8", "replace"))
    rows = [row for row in csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if len(row) == 12]
    words = [row for row in rows if row[0] == _WORD_LEVEL and row[11].strip()]
    pages = max((int(row[1]) for row in rows if row[1].isdecimal()), default=0)
    return [_join(row for row in words if row[1] == str(number)) for number in range(1, pages + 1)]


def _join(words: Iterable[Sequence[str]]) -> RecognisedPage:
    words = list(words)
    paragraphs = (
        "\n".join(" ".join(word[11] for word in line) for _, line in groupby(paragraph, key=lambda word: word[4]))
        for _, paragraph in groupby(words, key=lambda word: (word[2], word[3]))
    )
    characters = sum(len(word[11]) for word in words)
    confidence = sum(float(word[10]) * len(word[11]) for word in words) / (100 * characters or 1)
    return RecognisedPage("\n\n".join(paragraphs), confidence)
