"""Facts of a text as subject, predicate and object, each with its sentence."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["entity", "date", "number", "text"]


@dataclass(frozen=True, slots=True)
class Triple:
    """One statement of a passage.

    Attributes:
        subject: as written; for what a sentence says of the page's own topic, the title.
        predicate: lower case, short, read from subject to object ("directed by", "place of birth").
        object: as written.
        sentence: ordinal in the passage of the sentence that says so, from 0.
        kind: of the object: a name, a date, a number with its unit, or other words.
        valid_from: first day on which it holds, as ``date.toordinal`` counts; None if the text gives none.
        valid_to: first day on which it no longer holds; None if the text gives none.
        confidence: how often statements found in this way are right, in (0, 1].
    """

    subject: str
    predicate: str
    object: str
    sentence: int
    kind: Kind
    valid_from: int | None
    valid_to: int | None
    confidence: float
