"""Retrieval by profiles that wings bring, in place of the core's hops and ranking."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from engram.context.errors import InvalidRequestError
from engram.core.ranking.profiles import DEFAULT, Profile
from engram.core.ranking.propagation import Floats, ReachedSentences
from engram.storage.database import Reader
from engram.storage.question.query_focus import Focus


@dataclass(frozen=True, slots=True)
class Retriever:
    """Retrieval by a profile that a wing brings.

    Attributes:
        profile: its constants; it ranks by no features.
        find_linked_sentences: makes a hop, see ``graph_hops.find_linked_sentences``.
        find_all_sentences: makes the hop of a question without entities, see ``graph_hops.find_all_sentences``.
        score_passages: scores passages by the cosine of each one's key and the question, and by the sentences that
            each hop reached, with their scores, (n,).
    """

    profile: Profile
    find_linked_sentences: Callable[
        [Reader, Focus, Mapping[int, float], Sequence[int], Sequence[int] | None], ReachedSentences
    ]
    find_all_sentences: Callable[[Reader, Focus, Sequence[int] | None, Sequence[int]], ReachedSentences]
    score_passages: Callable[[Mapping[int, float], Sequence[tuple[ReachedSentences, Floats]]], dict[int, float]]


@dataclass(frozen=True, slots=True)
class Retrievers:
    """Retrieval of the profiles that wings bring.

    Attributes:
        present: of the wings that are on.
        absent: profile -> the wing that brings it and is off.
    """

    present: Sequence[Retriever] = ()
    absent: Mapping[str, str] = field(default_factory=dict)

    def find(self, profile: str) -> Retriever | None:
        """Find who retrieves by a profile; None for the core's.

        Raises:
            InvalidRequestError: the wing that brings the profile is off.
        """
        if profile == DEFAULT.name:
            return None
        for retriever in self.present:
            if retriever.profile.name == profile:
                return retriever
        raise InvalidRequestError(
            f"Profile {profile!r}: the wing {self.absent[profile]!r} brings it and is off. "
            "ENGRAM_WINGS says which wings are on."
        )

    def find_profile(self, name: str) -> Profile:
        """Find the constants of a profile.

        Raises:
            InvalidRequestError: the wing that brings the profile is off.
        """
        retriever = self.find(name)
        return DEFAULT if retriever is None else retriever.profile
