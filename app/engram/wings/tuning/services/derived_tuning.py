"""Generations of tuned question encoders in revocations, verifications and resets."""

import time
from collections.abc import Mapping, Sequence
from uuid import uuid4

from engram.services.revocation.derived_state import DerivedState
from engram.services.revocation.verification_findings import Findings
from engram.storage.corpus import collections
from engram.storage.database import Reader, Writer
from engram.storage.jobs import jobs
from engram.wings.tuning.services.lending import may_lend
from engram.wings.tuning.services.tuning_job import TUNE
from engram.wings.tuning.storage import tuning_generations

BORROWER_SECONDS = 5.0
"""How long a withdrawal waits for the learning of collections that borrowed."""
_POLL_SECONDS = 0.1


class DerivedTuning(DerivedState):
    """Generations follow the verdicts that they list. A copy of a past moment begins without any."""

    verified_tables: Sequence[str] = ("tuning_generation",)

    def withdraw(self, writer: Writer, collection_id: int, events: Sequence[int]) -> None:
        """Withdraw the generations that list one of the verdicts, and queue a job that learns anew."""
        withdraw_generations(
            writer, collection_id, tuning_generations.list_generations_of(writer, collection_id, events)
        )

    def verify(self, reader: Reader, collection_id: int, findings: Findings) -> None:
        """Check the generations: each that can serve lists all its verdicts, and each of these counts.

        The one that serves belongs to the collection's encoder.
        """
        serving = tuning_generations.find_serving(reader, collection_id)
        fingerprint = collections.load_by_id(reader, collection_id).encoder_fingerprint
        usable: set[int] = set()
        for one in tuning_generations.list_all(reader, collection_id):
            findings.add(
                "tuning_generation", one.number, one.usable, one.encoder_fingerprint, one.accepted, one.reason
            )
            name = f"generation {one.number}"
            if not one.usable:
                continue
            usable.add(one.number)
            if wrong := tuning_generations.list_wrong_verdicts(reader, collection_id, one.number):
                findings.differs(
                    "tuning_generation", name, f"was taught by verdict {wrong[0]}, which does not count"
                )
            listed = tuning_generations.count_verdicts(reader, collection_id, one.number)
            if listed != one.verdict_count:
                findings.differs(
                    "tuning_generation", name, f"lists {listed} verdicts, and was taught by {one.verdict_count}"
                )
            if one.loan is not None and not may_lend(reader, one.loan):
                findings.differs("tuning_generation", name, "was borrowed, and is lent no more")
            if one.number == serving and one.encoder_fingerprint != fingerprint:
                findings.differs("tuning_generation", name, "serves, and belongs to another encoder")
        if serving and serving not in usable:
            findings.differs("tuning_generation", f"generation {serving}", "serves, and has no adapter")

    def clear(self, writer: Writer, collection_id: int) -> Mapping[str, int]:
        """Remove all generations with the log, and have those that others borrowed withdrawn."""
        numbers = [one.number for one in tuning_generations.list_all(writer, collection_id) if one.usable]
        _withdraw_borrowed(writer, collection_id, numbers)
        return {"tuning_generation": tuning_generations.delete_all(writer, collection_id)}


def withdraw_generations(writer: Writer, collection_id: int, numbers: Sequence[int]) -> None:
    """Withdraw these generations with those borrowed of them, and queue a job that learns anew if tuning is on.

    Whoever calls it holds ``collections.lock_learning`` exclusively.
    """
    if not numbers:
        return
    tuning_generations.withdraw(writer, collection_id, numbers)
    _withdraw_borrowed(writer, collection_id, numbers)
    if tuning_generations.load_progress(writer, collection_id).is_on:
        queue_attempt(writer, collection_id)


def _withdraw_borrowed(writer: Writer, lender_id: int, numbers: Sequence[int]) -> None:
    """Withdraw what other collections borrowed of these generations. None of it is lent on.

    Collections that borrow from each other could wait for each other. So what one borrowed that goes on learning is
    left to ``TuningService.withdraw_exposed``.
    """
    ends = time.monotonic() + BORROWER_SECONDS
    for borrower, borrowed in tuning_generations.list_borrowed(writer, lender_id, numbers).items():
        while not (is_locked := collections.try_lock_learning(writer, borrower)) and time.monotonic() < ends:
            time.sleep(_POLL_SECONDS)
        if is_locked:
            withdraw_generations(writer, borrower, borrowed)


def queue_attempt(writer: Writer, collection_id: int) -> None:
    """Queue a job that learns a generation, unless the collection has one open."""
    jobs.add(writer, collection_id, uuid4(), kind=TUNE.name, lane=TUNE.lane, single=TUNE.single, payload={})
