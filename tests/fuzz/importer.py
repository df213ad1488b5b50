"""Look for documents that break the importer, stall it or lose text in silence: ``python -m tests.fuzz.importer``.

Documents are made of others by mutation and converted in the process for untrusted files, with its bounds.
A finding is a process that ended, one that took too long, or a planted word that no passage has and no note tells
of. Seed and number name a document again (``--only`` writes it to a file).
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engram.wings.importing.conversion.converter import Converter
from engram.wings.importing.conversion.documents import Conversion, UnreadableError
from engram.wings.importing.conversion.formats import KINDS
from engram.wings.importing.conversion.import_limits import ConversionLimits
from tests.fuzz.documents import MutatedDocument, mutate
from tests.support.pdf_files import pdf_drawn, show_at

FILES = Path(__file__).resolve().parents[1] / "wings" / "importing" / "files"
LIMITS = ConversionLimits(seconds=20.0)
_BROKEN = ("broke the reader", "took longer than")
_TEXTS = {
    "page.html": "<!doctype html><html><head><title>Rules</title></head><body><main><h1>Rules</h1><p>Rooms are "
    "free from <b>nine</b> to five.</p><ul><li>Close the window</li><li>Switch off lights</li></ul><table><tr>"
    "<th>Room</th><th>Seats</th></tr><tr><td>Basel</td><td>12</td></tr><tr><td>Bern</td><td>2<sup>3</sup></td></tr></table>"
    "<pre>make test</pre><p>Ask Ana in Zürich.</p></main></body></html>",
    "notes.md": "---\ntitle: Notes\n---\n# Travel\n\nTake the train to **Basel**.\n\n| Town | Fare |\n|---|---|\n"
    "| Bern | 12 |\n| Genf | 48 |\n\n- [ ] Book early\n- [x] Ask Ana\n\n> Quoted text\n\n```\nmake run\n```\n",
    "plain.txt": "The museum opens at nine.\nGroups pay 120 francs in Zürich.\n\nDogs stay outside.\n",
    "table.csv": 'name,seats,opened\nBasel,12,2019-01-02\nBern,8,2020-05-06\n"Genf, west",30,2021-07-08\n',
    "rows.jsonl": '{"id": "a", "text": "Basel lies on the Rhine.", "seats": 12}\n'
    '{"id": "b", "text": "Bern lies on the Aare.", "tags": ["x", 1]}\n',
    "records.json": '[{"title": "Basel",\n"text": "It lies on the Rhine."},\n{"title": "Bern",\n"text": "Aare."}]',
    "mail.eml": "From: Ana <ana@example.org>\nTo: Ben <ben@example.org>\nSubject: Rooms\n"
    "Date: Mon, 4 May 2026 09:00:00 +0200\n"
    "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=xx\n\n--xx\nContent-Type: text/plain; "
    "charset=utf-8\n\nThe room is booked.\n--xx\nContent-Type: text/csv; name=a.csv\nContent-Disposition: "
    "attachment; filename=a.csv\n\na,b\n1,2\n--xx--\n",
    "words.vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\nWelcome to Basel.\n\n"
    "00:02.000 --> 00:04.000\nThe tour begins.\n",
    "book.ipynb": '{"cells": [\n{"cell_type": "markdown", "source": ["# Fares\\n", "Trains are cheap."]},\n'
    '{"cell_type": "code", "source": "1 + 1", "outputs": [{"output_type": "stream", "text": "2"}]}],\n'
    '"metadata": {}, "nbformat": 4}',
}


@dataclass
class Outcome:
    """What became of mutated documents.

    Attributes:
        counts: how many were ``read``, ``noted`` (with notes), ``refused``, or had a planted word that was found.
        findings: a line for each document that is one.
        slowest_seconds: the longest conversion.
    """

    counts: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    slowest_seconds: float = 0.0


def load_originals(folder: Path | None = None) -> dict[str, bytes]:
    """Load the documents that others are made of; ``folder``: with more of them, below it."""
    originals = {path.name: path.read_bytes() for path in FILES.iterdir() if path.name != "locked.pdf"}
    originals |= {name: text.encode() for name, text in _TEXTS.items()}
    originals["drawn.pdf"] = pdf_drawn(
        [
            show_at((72, 700, "Rooms in Basel"), (72, 680, "Seats in Bern"), (200, 680, "twelve")),
            show_at((72, 700, "Dogs")),
        ]
    )
    for path in sorted(folder.rglob("*")) if folder is not None else ():
        if path.suffix in KINDS and path.is_file() and path.stat().st_size:
            originals[f"{path.parent.name}/{path.name}"] = path.read_bytes()
    return originals


def run(documents: Iterable[MutatedDocument]) -> Outcome:
    """Convert documents one after the other."""
    outcome = Outcome()
    with Converter(LIMITS) as converter:
        for document in documents:
            began = time.monotonic()
            try:
                conversion = converter.convert(document.name, document.data)
            except UnreadableError as error:
                outcome.counts["refused"] += 1
                if any(said in error.detail for said in _BROKEN):
                    outcome.findings.append(error.detail)
            else:
                outcome.counts["noted" if conversion.notes else "read"] += 1
                _look_for_word(document, conversion, outcome)
            outcome.slowest_seconds = max(outcome.slowest_seconds, time.monotonic() - began)
    return outcome


def _look_for_word(document: MutatedDocument, conversion: Conversion, outcome: Outcome) -> None:
    """Note it if a planted word is missing and nothing tells so."""
    if document.word is None:
        return
    texts = (f"{one.title} {one.text} {one.metadata}" for one in conversion.passages)
    if any(document.word in text for text in texts):
        outcome.counts["found"] += 1
    elif not conversion.notes:
        outcome.findings.append(f"{document.name}: {document.word!r} is missing without a note")


def mutate_all(seed: int, count: int, originals: Mapping[str, bytes]) -> Iterable[MutatedDocument]:
    """Make documents one by one."""
    return (mutate(seed, number, originals) for number in range(count))


def main() -> int:
    """Run it."""
    asked = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    asked.add_argument("--documents", type=int, default=2_000)
    asked.add_argument("--seed", type=int, default=1)
    asked.add_argument("--inputs", type=Path, help="a folder with more documents to mutate")
    asked.add_argument("--only", type=int, help="write the document of this number here, and convert nothing")
    given = asked.parse_args()
    originals = load_originals(given.inputs)
    if given.only is not None:
        document = mutate(given.seed, given.only, originals)
        Path(document.name).write_bytes(document.data)
        sys.stdout.write(f"{document.name}, planted: {document.word}\n")
        return 0
    outcome = run(mutate_all(given.seed, given.documents, originals))
    for finding in outcome.findings:
        sys.stdout.write(f"{finding}\n")
    counts = ", ".join(f"{count} {name}" for name, count in sorted(outcome.counts.items()))
    sys.stdout.write(f"{given.documents} documents: {counts}; slowest {outcome.slowest_seconds:.1f} s\n")
    return 1 if outcome.findings else 0


if __name__ == "__main__":
    sys.exit(main())
