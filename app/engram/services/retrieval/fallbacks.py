"""Warnings about parts that an answer had to do without."""

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
]


@dataclass(frozen=True, slots=True)
class Fallback:
    """A step that an endpoint failed, and that was done without it or left out.

    Attributes:
        type: which one; stable.
        detail: how the endpoint failed.
    """

    type: FallbackType
    detail: str
