"""The project's own sample corpus: passages on a few linked topics, with multi-hop questions."""

import json
from dataclasses import dataclass
from importlib.resources import files

COLLECTION = "sample"


@dataclass(frozen=True, slots=True)
class SampleQuestion:
    """A question with its gold sentences as (passage id, sentence) pairs."""

    id: str
    text: str
    paraphrase: str
    supporting: list[tuple[str, str]]


def corpus() -> bytes:
    """All passages as NDJSON."""
    return (files(__package__) / "corpus.jsonl").read_bytes()


def questions() -> list[SampleQuestion]:
    """All questions, in file order."""
    lines = (files(__package__) / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines if line.strip()]
    return [
        SampleQuestion(
            row["_id"],
            row["text"],
            row["metadata"]["paraphrase"],
            [(passage, text) for passage, _, text in row["metadata"]["supporting_sentences"]],
        )
        for row in rows
    ]
