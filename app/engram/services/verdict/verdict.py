"""A judge's verdict as it comes in, with the names that the judge knows."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from uuid import UUID

from engram.core.learning.logged_verdict import Expansion
from engram.core.learning.ratings import Rating
from engram.services.auth.scope import Scope

NOT_HASHED = ("scope", "on_session", "rating", "cited", "reason")
"""Fields that ``compute_hash`` leaves out, or adds where they are set. A session sets ``on_session`` itself.

A new field would change all hashes: name it here, and add it in ``compute_hash`` only where it is set.
"""


@dataclass(frozen=True, slots=True)
class NamedSentence:
    """A sentence named by id, or by its passage and its text.

    ``examined``: of a rejected one, with what probability the judge looked at it, in [0.01, 1].
    """

    sentence_id: int | None = None
    passage_id: str | None = None
    text: str | None = None
    examined: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Verdict of a judge on one episode.

    Attributes:
        supporting: sentences that helped, retrieved or not.
        rejected: sentences that did not.
        missed: evidence that retrieval did not return.
        partial: leave activated sentences that are not named alone, instead of counting them as rejected.
            The API says the opposite, ``claims_all``.
        retrieval_success, generation_success: whether the evidence was found, whether the answer was right.
        generation_score: how good the answer was, in [0, 1], where the judge leaves the decision to Engram.
        supporting_passages: passages that helped as a whole, by external id; their keys learn from it. Of each that
            has no supporting sentence, the sentence nearest to the question that is no heading counts as a likely
            support; their other sentences that are not named are left alone.
        expansions: query expansions, for key evolution.
        judge: who it says judged; None: whose key it came with.
        confidence: in [0.01, 1]; divides the observation noise.
        on_session: see ``LoggedVerdict``.
        rating: thumb under the answer, see ``core.learning.ratings``; stands for all of the above but ``judge`` and
            ``confidence``.
        cited: sentences that a rated answer used; one without sentence id and text stands for its whole passage.
        reason: of a rating; one of ``REASONS``, or free text.
    """

    query_id: UUID
    scope: Scope
    supporting: Sequence[NamedSentence] = ()
    rejected: Sequence[NamedSentence] = ()
    missed: Sequence[NamedSentence] = ()
    partial: bool = False
    retrieval_success: bool | None = None
    generation_success: bool | None = None
    generation_score: float | None = None
    supporting_passages: Sequence[str] = ()
    expansions: Sequence[Expansion] = ()
    judge: str | None = None
    confidence: float = 1.0
    on_session: bool = False
    rating: Rating | None = None
    cited: Sequence[NamedSentence] = ()
    reason: str | None = None

    @property
    def author(self) -> str:
        """Name of the principal that the log says brought it. A thumb is the caller's own, whomever it asks for."""
        principal = self.scope.principal
        return principal.name if self.rating is None else principal.caller or principal.name

    @property
    def claims_success(self) -> bool:
        """Whether it says that retrieval or generation succeeded, so that passage keys learn without validation."""
        return bool(self.retrieval_success or self.generation_success or self.generation_score is not None)

    @property
    def named(self) -> list[NamedSentence]:
        """All sentences it names, for and against."""
        return [*self.supporting, *self.rejected, *self.missed, *self.cited_sentences]

    @property
    def named_passages(self) -> list[str]:
        """External ids of all passages it names as a whole."""
        return [*self.supporting_passages, *self.cited_passages]

    @property
    def cited_sentences(self) -> list[NamedSentence]:
        """The cited sentences."""
        return [one for one in self.cited if one.sentence_id is not None or one.text is not None]

    @property
    def cited_passages(self) -> list[str]:
        """External ids of the passages that are cited as a whole."""
        return [one.passage_id for one in self.cited if one.passage_id is not None and one.text is None]

    def compute_hash(self) -> bytes:
        """Return the hash that recognises a repeated verdict under its key."""
        content = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in NOT_HASHED}
        if self.rating is not None:
            content["rating"] = {"rating": self.rating, "cited": self.cited, "reason": self.reason}
        return hashlib.sha256(json.dumps(content, default=_convert_value).encode()).digest()


def _convert_value(value: object) -> object:
    """Convert values that JSON lacks."""
    return asdict(value) if isinstance(value, NamedSentence | Expansion) else str(value)
