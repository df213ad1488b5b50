"""``python -m tests.fuzz.importer`` on a few documents, and what it notices."""

from collections import Counter

import pytest

from engram.wings.importing.conversion.converter import Converter
from engram.wings.importing.conversion.documents import Conversion, ImportedPassage, UnreadableError
from tests.fuzz import importer
from tests.fuzz.documents import MutatedDocument, mutate

DOCUMENTS = 60


def test_mutated_documents_neither_break_the_importer_nor_lose_text() -> None:
    outcome = importer.run(importer.mutate_all(7, DOCUMENTS, importer.load_originals()))
    assert outcome.findings == []
    assert outcome.counts["found"] > DOCUMENTS / 10
    assert sum(outcome.counts[name] for name in ("read", "noted", "refused")) == DOCUMENTS


def test_a_document_is_the_same_for_its_number() -> None:
    originals = importer.load_originals()
    made = [mutate(1, number, originals) for number in range(40)]
    assert [mutate(1, number, originals).name for number in range(40)] == [one.name for one in made]
    assert len(Counter(one.name.partition(".")[2] for one in made)) > 5


def test_lost_words_and_broken_readers_are_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    def convert(_: Converter, source: str, data: bytes) -> Conversion:
        if source == "2.md":
            raise UnreadableError("2.md broke the reader, or needs more memory than it may take.")
        return Conversion((ImportedPassage("a", "T", data.decode(), ()),))

    monkeypatch.setattr(Converter, "convert", convert)
    documents = [MutatedDocument("0.md", b"word0", "word0"), MutatedDocument("1.md", b"gone", "word1")]
    outcome = importer.run([*documents, MutatedDocument("2.md", b"", None)])
    assert outcome.findings == [
        "1.md: 'word1' is missing without a note",
        "2.md broke the reader, or needs more memory than it may take.",
    ]
    assert outcome.counts == {"read": 2, "found": 1, "refused": 1}
