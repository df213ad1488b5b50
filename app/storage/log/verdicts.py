"""How a verdict stands in the log, by the version it was written in."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from app.core.verdict import Expansion, LoggedVerdict

VERSION = 1


def written(verdict: LoggedVerdict) -> dict[str, Any]:
    """The verdict as it is stored, in the present version."""
    return asdict(verdict)


def verdict_of(stored: Mapping[str, Any]) -> LoggedVerdict:
    """A stored verdict."""
    return LoggedVerdict(
        supports=tuple(map(int, stored["supports"])),
        rejects=tuple(map(int, stored["rejects"])),
        missed=tuple(stored["missed"]),
        partial=stored["partial"],
        retrieval_success=stored["retrieval_success"],
        generation_success=stored["generation_success"],
        generation_score=stored["generation_score"],
        passages=tuple(stored["passages"]),
        spared=tuple(stored["spared"]),
        expansions=expansions_of(stored["expansions"]),
        confidence=stored["confidence"],
    )


def expansions_of(stored: list[dict[str, str]]) -> tuple[Expansion, ...]:
    """The expansions of a stored verdict."""
    return tuple(Expansion(expansion["method"], expansion["text"]) for expansion in stored)
