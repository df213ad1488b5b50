"""Passage keys in revocations, verifications and changes of vectors, and their end with the log."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from engram.services.revocation.derived_state import DerivedState, Report
from engram.services.revocation.verification_findings import Findings
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log import stored_outcomes
from engram.storage.revocation.copied_rows import Copy
from engram.wings.published.services.attribution import Attribution
from engram.wings.published.services.key_evolution import KeyEvolutionService
from engram.wings.published.services.verify_keys import verify_keys
from engram.wings.published.storage import copied_keys, evolved_keys, key_evidence_log, key_generations

VERIFIED = 200
"""Passages whose keys are compared or copied at a time: bounds memory."""
REBASED = 1_000
"""Passages whose keys are computed at a time after a change of encoder."""


class DerivedKeys(DerivedState):
    """Credits of expansion units, and the evolved keys that are composed of them.

    Args:
        attribution: returns the service that credits units.
        evolution: returns the service that composes keys.
    """

    verified_tables = ("key_credit", "expansion_memory", "passage_key", "evolved_posting")
    counted_tables = ("key_credit", "passage_key")

    def __init__(
        self, attribution: Callable[[], Attribution], evolution: Callable[[], KeyEvolutionService]
    ) -> None:
        self._attribution = attribution
        self._evolution = evolution

    def copy_events(self, writer: Writer, copy: Copy, events: Sequence[int]) -> None:
        """Copy evidence, units and credits of these verdicts."""
        copied_keys.copy_evidence(writer, copy, events)

    def copy(self, writer: Writer, copy: Copy, restored: Sequence[int], report: Report) -> bool:
        """Have the generation of that moment serve.

        What was due then is not: the copy stays as it is until told. A rollback leaves no date, so another
        generation may have served.
        """
        copied_keys.copy_generations(writer, copy)
        copied_keys.settle_restored(writer, copy, restored)
        self._attribution().name_units(writer, copy.target, copied_keys.list_credited_units(writer, copy, restored))
        copied_keys.count_generations(writer, copy)
        generation, is_certain = _find_serving_generation(writer, copy)
        key_generations.go_to(writer, copy.target, generation)
        if copied_keys.has_keys(writer, copy):
            evolved_keys.lock(writer, copy.target)
            evolved_keys.set_progress(
                writer, copy.target, replace(self._attribution().count_batches(writer, copy.target), due=None)
            )
            total, composed = copied_keys.count_keyed(writer, copy), 0
            report("keys", 0, total)
            for passages in _read_pages(writer, copy.target, VERIFIED):
                self._evolution().recompose(writer, copy.target, passages)
                composed += len(passages)
                report("keys", composed, total)
        return is_certain

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
        """Remove what evolved keys were made of."""
        return key_generations.delete_all(writer, collection_id)


def _read_pages(reader: Reader, collection_id: int, size: int) -> Iterator[list[int]]:
    """Yield passages that verdicts credited units to, in id order, ``size`` at a time."""
    after = 0
    while page := key_evidence_log.list_keyed_passages(reader, collection_id, after, size):
        yield page
        after = page[-1]


def _find_serving_generation(reader: Reader, copy: Copy) -> tuple[int, bool]:
    """The generation of the source that served then, and whether no other can have.

    Known is which generations were made by then, and from which one the next was made, or which one serves now.
    That somebody rolled back and forth between two evolutions cannot be told, and is not thought of.
    """
    before = None
    serving = key_generations.get_serving_number(reader, copy.source)
    while page := key_generations.page(reader, copy.source, before, VERIFIED):
        for generation in page:  # the latest first
            if generation.created_at <= copy.until:
                return serving, serving == generation.number
            serving = generation.parent
        before = page[-1].number
    return 0, True
