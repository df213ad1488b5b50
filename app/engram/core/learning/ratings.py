"""Ratings: a thumb under an answer, and how each combination of rating, citations and reason counts.

People judge the answer, and seldom the sentences. What a rating says of passages is therefore weaker than what a
verdict on sentences says. Without citations it falls with the rank: the passage of rank r was looked at with
probability 1 / r, as results are that people click on (docs/feedback.md).
"""

from dataclasses import dataclass
from typing import Literal, get_args

from engram.core.learning.logged_verdict import NEAREST_SENTENCE_PROBABILITY, LoggedVerdict

Rating = Literal["up", "down", "withdrawn"]
"""``withdrawn``: the judge takes back its rating of the answer."""
KnownReason = Literal["wrong_answer", "missing", "irrelevant", "outdated"]
REASONS: tuple[KnownReason, ...] = get_args(KnownReason)
"""Reasons of a thumb down that have a meaning of their own. Any other text is logged and means nothing more."""
RATED_PASSAGES = 5
"""Passages that a rating without citations speaks of."""
FIRST_PASSAGE_PROBABILITY = NEAREST_SENTENCE_PROBABILITY / 8.0
"""Probability that a thumb up without citations speaks of the first passage.

With a higher one, recall gives paraphrases the rated answer whole, and with it passages that are no evidence.
With this one, it adds to what they find themselves (evaluation/measurements/thumbs.md).
"""


@dataclass(frozen=True, slots=True)
class RatingMeaning:
    """Effect of a rating.

    Attributes:
        target: 1: passages are supported; 0: they are rejected; None: the rating says nothing of passages.
        citation_probability: that the rating speaks of a cited sentence, in [0, 1]; 0: citations are not judged.
        top_probability: that the rating speaks of the first passage, where nothing is cited, in [0, 1]. For the
            passage of rank r it is ``top_probability / r``.
        retrieval_success: False if the rating says that evidence is missing.
        generation_success: False if the rating says that the answer in words was wrong.
    """

    target: int | None = None
    citation_probability: float = 0.0
    top_probability: float = 0.0
    retrieval_success: bool | None = None
    generation_success: bool | None = None

    def compute_reference_probability(self, rank: int) -> float:
        """Return the probability that a rating without citations refers to the passage of this rank, from 1."""
        return self.top_probability / rank if rank <= RATED_PASSAGES else 0.0


def find_meaning(rating: Rating, reason: str | None, *, has_citations: bool) -> RatingMeaning:
    """Return the effect of a combination; the table in docs/feedback.md has a line for each.

    Raises:
        ValueError: the combination has no meaning.
    """
    if rating == "withdrawn":
        if reason is not None or has_citations:
            raise ValueError("a rating that is taken back has neither citations nor a reason")
        return RatingMeaning()
    if rating == "up":
        if reason in REASONS:
            raise ValueError(f"{reason!r} is a reason for a thumb down")
        return (
            RatingMeaning(target=1, citation_probability=1.0)
            if has_citations
            else RatingMeaning(target=1, top_probability=FIRST_PASSAGE_PROBABILITY)
        )
    return _DOWN.get(reason or "", (_WEAK, _WEAK))[has_citations]


_WEAK = RatingMeaning(
    target=0, citation_probability=NEAREST_SENTENCE_PROBABILITY, top_probability=NEAREST_SENTENCE_PROBABILITY
)
_WRONG_ANSWER = RatingMeaning(generation_success=False)
_MISSING = RatingMeaning(retrieval_success=False)
_DOWN = {
    "wrong_answer": (_WRONG_ANSWER, _WRONG_ANSWER),
    "missing": (_MISSING, _MISSING),
    "irrelevant": (
        RatingMeaning(target=0, top_probability=1.0, retrieval_success=False),
        RatingMeaning(target=0, citation_probability=1.0),
    ),
    "outdated": (_WEAK, RatingMeaning(target=0, citation_probability=1.0)),
}
"""Reason of a thumb down -> its effect without citations, and with them."""


def denies_answer(verdict: LoggedVerdict) -> bool:
    """Whether the verdict says that the answer was not enough, and supports no sentence.

    It says that evidence is missing, or looked at all that was selected, or is a thumb down without a known reason.
    """
    if verdict.supports or verdict.likely:
        return False
    plain = verdict.rating == "down" and verdict.reason not in REASONS
    return verdict.retrieval_success is False or not verdict.partial or plain
