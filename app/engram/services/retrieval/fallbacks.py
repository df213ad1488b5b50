"""Warnings about parts of a question or an answer that were left out."""

from dataclasses import dataclass
from typing import Literal

FallbackType = Literal[
    "sufficiency-not-judged",
    "not-reranked",
    "time-by-rules",
    "not-answered",
    "not-restated",
    "not-widened",
    "planned-by-rules",
    "sifted-by-rules",
    "noted-by-rules",
    "acted-by-rules",
    "not-read",
    "updated-by-rules",
    "question-shortened",
    "parts-not-read",
]


@dataclass(frozen=True, slots=True)
class Fallback:
    """A step that an endpoint failed and that was done without it, or a part of the question that was not read.

    Attributes:
        type: which one; stable.
        detail: how the endpoint failed, or what was left out.
    """

    type: FallbackType
    detail: str
