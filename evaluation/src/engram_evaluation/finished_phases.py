"""Finished parts of a run on disk, so that a long run that was stopped goes on where it was.

A part is found again only under the same parameters, data set and code, so a resumed run never mixes two of them.
"""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import engram
from engram_evaluation.retrieval_metrics import QuestionScores

SERVICE = Path(engram.__file__).resolve().parent
FOLDERS = ("composition", "core", "providers", "services", "storage", "wings")
CODE = (*(SERVICE / folder for folder in FOLDERS), Path(__file__).resolve().parent)
"""Folders of code that can change a figure."""


@dataclass(frozen=True, slots=True)
class Phase:
    """One group of questions, asked once each in one state of the memory.

    Attributes:
        arm: what answered.
        group: what was asked, in words.
        turn: rounds of verdicts before it.
        seed: of the order in which verdicts came; None where no order matters.
    """

    arm: str
    group: str
    turn: int
    seed: int | None
    rows: tuple[QuestionScores, ...]


class Phases:
    """Phases of runs with the same parameters, one JSON file each."""

    def __init__(self, folder: Path, parameters: Mapping[str, Any]) -> None:
        plain = json.dumps(dict(parameters), sort_keys=True, default=str)
        self._folder = folder / "phases" / hashlib.sha256(plain.encode()).hexdigest()[:16]
        self._parameters = plain

    def get(self, arm: str, group: str, *, turn: int, seed: int | None) -> Phase | None:
        """Return the stored phase; None if it was not finished or its file cannot be read."""
        try:
            rows = json.loads(self._path(arm, group, turn, seed).read_text(encoding="utf-8"))["questions"]
            return Phase(arm, group, turn, seed, tuple(QuestionScores.from_json(row) for row in rows))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, phase: Phase) -> None:
        """Store a finished phase, all of it or nothing."""
        path = self._path(phase.arm, phase.group, phase.turn, phase.seed)
        self._write(path, {"questions": [row.as_json() for row in phase.rows]})

    def _write(self, path: Path, content: Mapping[str, Any]) -> None:
        """Write the content and the parameters to a file, all of it or nothing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".part")
        draft.write_text(json.dumps({"parameters": json.loads(self._parameters), **content}), encoding="utf-8")
        os.replace(draft, path)

    def _path(self, arm: str, group: str, turn: int, seed: int | None) -> Path:
        name = "-".join(str(part) for part in (arm, group, turn, seed) if part is not None)
        return self._folder / f"{''.join(c if c.isalnum() or c == '-' else '_' for c in name)}.json"


@cache
def code_fingerprint() -> str:
    """Changes whenever a file does that can change a figure."""
    return fingerprint(CODE)


def fingerprint(folders: Sequence[Path]) -> str:
    """Hash the Python files of folders, with their paths.

    Raises:
        FileNotFoundError: a folder has none.
    """
    digest = hashlib.sha256()
    for folder in folders:
        paths = sorted(folder.rglob("*.py"))
        if not paths:
            raise FileNotFoundError(f"{folder} has no code")
        for path in paths:
            name = path.relative_to(folder.parent).as_posix()
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
