"""Reader of captions: WebVTT and SubRip."""

import html
import re

from engram.wings.importing.conversion.documents import Document
from engram.wings.importing.conversion.encodings import decode_text
from engram.wings.importing.conversion.import_limits import ConversionLimits
from engram.wings.importing.conversion.outline import Outline, flatten_text
from engram.wings.importing.conversion.prose import STOPS

_TIMING = re.compile(r"\s*(?:\d+:)?\d{1,2}:\d{2}[.,]\d{3}\s+-->")
_NO_CUE = re.compile(r"(?:WEBVTT|NOTE|STYLE|REGION)\b")
_VOICE = re.compile(r"<v(?:\.[^\s>]*)?\s+([^>]+)>")
_TAG = re.compile(r"</?[A-Za-z0-9][^>]*>|\{\\[^}]*\}")
PARAGRAPH_CHARACTERS = 400
"""Characters from which on the next end of a sentence ends a paragraph."""


def captions(source: str, data: bytes, limits: ConversionLimits) -> Document:
    """Captions as running text: without times, numbers and marks; a voice that is named begins a paragraph."""
    whole, _, notes = decode_text(source, data)
    outline = Outline()
    paragraph: list[str] = []
    voice = last = ""

    def end_paragraph() -> None:
        outline.add(flatten_text(" ".join(paragraph)))
        paragraph.clear()

    for cue in re.split(r"\n\s*\n", whole.replace("\r\n", "\n")):
        for text, speaker in _read_cue(cue):
            if text == last:  # captions that roll show a line twice
                continue
            last = text
            if speaker and speaker != voice:
                end_paragraph()
                voice = speaker
                paragraph.append(f"{speaker}:")
            paragraph.append(text)
            if text.endswith(STOPS) and sum(map(len, paragraph)) >= PARAGRAPH_CHARACTERS:
                end_paragraph()
    end_paragraph()
    return outline.document(source, "captions", notes)


def _read_cue(cue: str) -> list[tuple[str, str]]:
    """Return the lines of a cue, each with the voice that speaks from it on; none of a block that is no cue."""
    lines = cue.strip().split("\n")
    timed = next((at for at, line in enumerate(lines) if _TIMING.match(line)), None)
    if timed is None or (_NO_CUE.match(lines[0]) and not _TIMING.match(lines[min(1, len(lines) - 1)])):
        return []
    read = []
    for line in lines[timed + 1 :]:
        voices = _VOICE.findall(line)
        text = html.unescape(_TAG.sub("", line)).strip()
        if text:
            read.append((text, voices[-1].strip() if voices else ""))
    return read
