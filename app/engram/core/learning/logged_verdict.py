"""A verdict as the log keeps it: with every sentence and passage it names as an id."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

NEAREST_SENTENCE_PROBABILITY = 0.5
"""Probability that the sentence of a helpful passage that is nearest to the question is one that helped.

Measured, it is so for .50 of the relevant passages of timeqa_human, and for .73 or .74 of those of 2wiki, hotpotqa
and musique, by 120 questions of each.
"""


GENERATION_THRESHOLD = 0.5
"""Generation score from which on an answer counts as right, where the verdict does not say."""


@dataclass(frozen=True, slots=True)
class Expansion:
    """A query expansion that came with a verdict, for key evolution: how it was made, and what it says."""

    method: str
    text: str


@dataclass(frozen=True, slots=True)
class LikelySupport:
    """The sentence that stands for a passage that helped as a whole.

    Attributes:
        probability: that it is one of the sentences that helped, in (0, 1].
    """

    sentence_id: int
    probability: float

    def __post_init__(self) -> None:
        if not 0.0 < self.probability <= 1.0:
            raise ValueError("the probability that a sentence helped must lie in (0, 1]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedVerdict:
    """Verdict of a judge on an answered query.

    Attributes:
        supports: sentences that helped, in id order, ``missed`` ones included.
        rejects: sentences that did not, in id order.
        missed: of the supported sentences, those that retrieval did not return.
        partial: sentences that were selected and are not named are left alone, instead of counting as rejected.
        retrieval_success, generation_success: whether the evidence was found, whether the answer was right; None
            where the verdict does not say.
        generation_score: how good the answer was, in [0, 1].
        passages: passages that helped as a whole, in id order.
        spared: all their sentences; not judged unless they are in ``likely``, ``supports`` or ``rejects``.
        likely: of these, those that most likely did, in id order; of a passage with a supported sentence, none.
        expansions: query expansions, for the keys, in the order in which they came.
        confidence: in (0, 1]; divides the observation noise.
        examined: for each of ``rejects`` the probability that the judge looked at it, in (0, 1]; empty: 1 for all.
        on_session: whether it judges all of a session by the session's own question.
        rating: thumb that the verdict was made of, see ``ratings``; None where sentences were judged.
        reason: that came with the rating.
    """

    supports: tuple[int, ...] = ()
    rejects: tuple[int, ...] = ()
    missed: tuple[int, ...] = ()
    partial: bool = False
    retrieval_success: bool | None = None
    generation_success: bool | None = None
    generation_score: float | None = None
    passages: tuple[int, ...] = ()
    spared: tuple[int, ...] = ()
    likely: tuple[LikelySupport, ...] = ()
    expansions: tuple[Expansion, ...] = ()
    confidence: float = 1.0
    examined: tuple[float, ...] = ()
    on_session: bool = False
    rating: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        if self.examined and len(self.examined) != len(self.rejects):
            raise ValueError("each rejected sentence has an examination probability, or none has")
        if not all(0.0 < probability <= 1.0 for probability in self.examined):
            raise ValueError("an examination probability must lie in (0, 1]")

    @property
    def source(self) -> Literal["sentences", "click", "rating", "session"]:
        """The kind of source of the verdict. It is not stored, but follows from other fields."""
        if self.on_session:
            return "session"
        if self.rating is not None:
            return "rating"
        return "click" if self.partial and self.examined else "sentences"

    @property
    def examinations(self) -> dict[int, float]:
        """Sentence -> probability that the judge looked at it. All others were looked at for certain."""
        return dict(zip(self.rejects, self.examined, strict=True)) if self.examined else {}

    @property
    def probabilities(self) -> dict[int, float]:
        """Sentence -> probability that the verdict says something about it; 1 for all others that it names.

        A rejection says something if the judge looked at the sentence, a likely support if the sentence helped.
        """
        return self.examinations | {one.sentence_id: one.probability for one in self.likely}

    @property
    def complete(self) -> bool:
        """Whether it claims to name all the evidence that there is."""
        return not self.partial and self.retrieval_success is not False

    def is_answer_right(self, threshold: float = GENERATION_THRESHOLD) -> bool:
        """Whether the answer was right: by the verdict's word, else by its score, which reaches ``threshold``."""
        if self.generation_success is not None:
            return self.generation_success
        return self.generation_score is not None and self.generation_score >= threshold

    def targets(self, activated: Sequence[int]) -> dict[int, int]:
        """Sentence -> label y (GAM-RAG, Eq. 10): supported 1, rejected 0, activated but not named 0 unless partial.

        Of a passage that helped as a whole it is not known which sentences did: only the likely one counts as
        supported, and the others are left alone.
        """
        spared = set(self.spared)
        targets = {} if self.partial else {sentence: 0 for sentence in activated if sentence not in spared}
        targets.update(dict.fromkeys((one.sentence_id for one in self.likely), 1))
        targets.update(dict.fromkeys(self.rejects, 0))
        targets.update(dict.fromkeys(self.supports, 1))
        return targets

    def passage_targets(self, named: Iterable[tuple[int, int]]) -> dict[int, int]:
        """Passage -> y: 1 if it helped as a whole or by a sentence, 0 if it is named by rejected ones alone.

        Args:
            named: (passage, y) of the sentences that it speaks of, see ``targets``.
        """
        targets = dict.fromkeys(self.passages, 1)
        for passage, target in named:
            targets[passage] = max(target, targets.get(passage, 0))
        return targets

    def passage_examinations(self, holders: Mapping[int, int]) -> dict[int, float]:
        """Return, for each passage with a named sentence, the probability that the judge looked at it.

        It is the largest of its sentences' probabilities. An empty result means that all passages were looked at
        for certain.

        Args:
            holders: sentence -> its passage, of the sentences that the verdict names.
        """
        probability_by_sentence = self.examinations
        if not probability_by_sentence:
            return {}
        probability_by_passage: dict[int, float] = {}
        for sentence, passage in holders.items():
            probability_by_passage[passage] = max(
                probability_by_sentence.get(sentence, 1.0), probability_by_passage.get(passage, 0.0)
            )
        return probability_by_passage
