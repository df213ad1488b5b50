"""Validation of a verdict's expansions: the correctness gate of ERM, Eq. 4."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from engram.core.learning.logged_verdict import GENERATION_THRESHOLD, LoggedVerdict
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.wings.published.core.paper_profile import PAPER

Gate = Literal["retrieval", "generation", "none"]

GATE_TOP_K = 50
"""Passages of the expanded question among which a supported one validates it, where the verdict does not say."""
CREDITED_PASSAGES = 10
"""Passages that the published rule credits: the best for the expanded query."""


class Validation(NamedTuple):
    """Result of a validation.

    Attributes:
        gate: success that validates the expansions; "none": they are not validated.
        credited: passages to which they may be credited.
    """

    gate: Gate
    credited: Sequence[int]


class ExpansionValidation:
    """Validates expansions by the success of their expanded query.

    Args:
        gate_top_k: the rule for retrieval success where the verdict does not say: a supported passage is among so
            many that the expanded query retrieves. 0: without the verdict's word there is none.
        generation_threshold: the rule for generation success: the verdict's generation score reaches this, in
            [0, 1].
    """

    def __init__(self, gate_top_k: int, generation_threshold: float = GENERATION_THRESHOLD) -> None:
        self._gate_top_k = gate_top_k
        self._generation_threshold = generation_threshold

    def gate(self, verdict: LoggedVerdict, *, is_retrieved: bool) -> Gate:
        """Return the success that validates the expansions of a verdict.

        Args:
            is_retrieved: a supported passage is among those that the rule looks at.
        """
        by_rule = verdict.retrieval_success is None and is_retrieved
        if verdict.retrieval_success or by_rule:
            return "retrieval"
        return "generation" if verdict.is_answer_right(self._generation_threshold) else "none"

    def depth(self, event: PendingEvent, supported: Sequence[int]) -> int:
        """Return how many passages of the expanded query ``validate`` needs."""
        is_open = event.verdict.retrieval_success is None and len(supported) > 0
        return max(
            self._gate_top_k if is_open else 0,
            CREDITED_PASSAGES if event.profile == PAPER.name else 0,
        )

    def validate(self, event: PendingEvent, supported: Sequence[int], retrieved: Sequence[int]) -> Validation:
        """Validate the expansions of an event.

        Args:
            supported: passages that the verdict supports.
            retrieved: passages that the expanded query retrieves, best first, as many as ``depth`` says.
        """
        is_retrieved = not set(retrieved[: self._gate_top_k]).isdisjoint(supported)
        gate = self.gate(event.verdict, is_retrieved=is_retrieved)
        if gate == "none":
            return Validation(gate, [])
        return Validation(gate, retrieved[:CREDITED_PASSAGES] if event.profile == PAPER.name else supported)
