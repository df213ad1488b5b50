"""Passage keys in revocations, verifications and changes of vectors, and their end with the log."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from engram.services.passage_keys.attribution import Attribution
from engram.services.passage_keys.key_evolution import KeyEvolutionService
from engram.services.revocation.derived_state import DerivedState
from engram.services.revocation.verification_findings import Findings
from engram.services.revocation.verify_keys import verify_keys
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log import stored_outcomes
from engram.storage.passage_keys import key_evidence_log, key_generations

VERIFIED = 200
"""Passages whose keys are compared at a time: bounds memory."""
REBASED = 1_000
"""Passages whose keys are computed at a time after a change of encoder."""


class DerivedKeys(DerivedState):
    """Credits of expansion units, and the evolved keys that are composed of them.

    Args:
        attribution: returns the service that credits units.
        evolution: returns the service that composes keys.
    """

    verified_tables = ("key_credit", "expansion_memory", "passage_key", "evolved_posting")

    def __init__(
        self, attribution: Callable[[], Attribution], evolution: Callable[[], KeyEvolutionService]
    ) -> None:
        self._attribution = attribution
        self._evolution = evolution

    def withdraw(self, writer: Writer, collection_id: int, events: Sequence[int]) -> None:
        """Take the events out of credits, and compose the keys that they had changed anew."""
        changed = self._attribution().withdraw(writer, collection_id, events)
        self._evolution().recompose(writer, collection_id, changed)

    def rebase(self, writer: Writer, collection_id: int, passages: Sequence[int]) -> None:
        """Compute gains, expansion memories and evolved keys of these passages anew."""
        self._evolution().rebase(writer, collection_id, passages)

    def follow_encoder(self, writer: Writer, collection_id: int) -> None:
        """Compute gains, expansion memories and evolved keys of all credited passages anew."""
        for passages in _read_pages(writer, collection_id, REBASED):
            self._evolution().rebase(writer, collection_id, passages)

    def verify(self, reader: Reader, collection_id: int, findings: Findings) -> None:
        """Compare credits, expansion memories and evolved keys with a replay of the credited verdicts."""
        for event, status in stored_outcomes.list_left_behind(reader, collection_id, "key_evidence", findings.most):
            findings.differs("key_evidence", f"event {event}", f"is {status}, and should have left nothing")
        evolution = self._evolution()
        try:
            rules = evolution.load_serving_rules(reader, collection_id)
        except (TypeError, ValueError) as error:
            findings.differs("key_generation", "the one that serves", f"has rules that cannot be read: {error}")
            return
        for passages in _read_pages(reader, collection_id, VERIFIED):
            verify_keys(reader, collection_id, passages, rules, evolution.capacity, findings)

    def clear(self, writer: Writer, collection_id: int) -> Mapping[str, int]:
        """Remove evolved keys with all that made them; base keys serve."""
        return key_generations.delete_all(writer, collection_id)


def _read_pages(reader: Reader, collection_id: int, size: int) -> Iterator[list[int]]:
    """Yield passages that verdicts credited units to, in id order, ``size`` at a time."""
    after = 0
    while page := key_evidence_log.list_keyed_passages(reader, collection_id, after, size):
        yield page
        after = page[-1]
