"""The constants of a retrieval: ``DEFAULT`` has ours, wings bring others."""

from dataclasses import dataclass
from typing import Literal

ProfileName = Literal["paper", "default"]


@dataclass(frozen=True, slots=True)
class Policy:
    """The learned state that a query reads, and how far it counts.

    Attributes:
        evolved_keys: whether a graph search finds passages by evolved keys (ERM). Strategies that search by keys
            alone always do.
        gated: weight what is learned by its certainty. False, for the evaluation only: all of it counts in full.
    """

    evolved_keys: bool = True
    gated: bool = True


@dataclass(frozen=True, slots=True)
class Profile:
    """Constants of one query's retrieval.

    Attributes:
        name: recorded on the episode.
        max_hops: I, hops at most.
        sentences_per_hop: K_S, sentences selected per hop.
        entities_per_hop: K_E, entities that lead the next hop.
        rare_first: the next hop starts from entities that no hop started from yet, rare ones first.
        ranked_sentences: reached sentences per hop whose passages are ranked, best first.
        ranked_passages: passages nearest to the question, by either key, that are ranked, reached or not; at least
            top_k are.
        policy: how far memories count.
        recalls: whether past questions' verdicts activate sentences.
        collapses: passages with nearly the text of a better one are left out of an answer, unless the query or the
            setting says otherwise.
    """

    name: ProfileName
    max_hops: int
    sentences_per_hop: int
    entities_per_hop: int
    rare_first: bool
    ranked_sentences: int
    ranked_passages: int
    policy: Policy
    recalls: bool
    collapses: bool


DEFAULT = Profile(
    name="default",
    max_hops=3,
    sentences_per_hop=5,
    entities_per_hop=10,
    rare_first=True,
    ranked_sentences=100,
    ranked_passages=50,
    policy=Policy(evolved_keys=False),
    recalls=True,
    collapses=True,
)
