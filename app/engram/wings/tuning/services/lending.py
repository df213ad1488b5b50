"""Generations that a collection borrows from another one of its tenant.

What the lender's own verdicts taught it is tried on the borrower's verdicts. A borrowed generation goes with the
one that it was borrowed from, and so with each verdict behind that. A collection that has or had passages with
readers lends nothing.
"""

from dataclasses import dataclass

from engram.context.errors import InvalidRequestError
from engram.core.learning.states import question_hash
from engram.storage.corpus import current_vectors, reader_sets
from engram.storage.corpus.collections import Collection
from engram.storage.database import Reader
from engram.wings.tuning.core.learn_adapter import Adapter
from engram.wings.tuning.services.training_input import LoggedSamples
from engram.wings.tuning.storage import tuning_generations, tuning_samples
from engram.wings.tuning.storage.tuning_generations import Loan


@dataclass(frozen=True, slots=True)
class LentAdapter:
    """The adapter of another collection.

    Attributes:
        known: ids of the borrower's judged questions that the lender judged too, or whose evidence it has.
    """

    adapter: Adapter
    known: frozenset[int]


def choose_loan(reader: Reader, lender: Collection, borrower: Collection) -> Loan:
    """Choose the generation that the lender lends: the one that serves it.

    Raises:
        InvalidRequestError: it lends none, or the borrower has no use for it.
    """
    number = tuning_generations.find_serving(reader, lender.id)
    problem = None
    if lender.id == borrower.id:
        problem = "A collection cannot begin with its own adapter."
    elif lender.encoder_fingerprint != borrower.encoder_fingerprint:
        problem = f"{lender.name!r} and {borrower.name!r} have different encoders."
    elif reader_sets.is_bound(reader, lender.id):
        problem = f"{lender.name!r} has or had passages with readers, so what it learned stays there."
    elif number == 0:
        problem = f"No generation serves {lender.name!r}."
    elif not may_lend(reader, Loan(lender.id, number)):
        problem = f"The generation that serves {lender.name!r} is borrowed itself."
    elif serving := tuning_generations.find_serving(reader, borrower.id):
        problem = f"Generation {serving} serves {borrower.name!r} already; go back to 0 first."
    if problem is not None:
        raise InvalidRequestError(problem)
    return Loan(lender.id, number)


def may_lend(reader: Reader, loan: Loan) -> bool:
    """Whether a generation may be borrowed, or stay so."""
    lent = tuning_generations.find(reader, loan.lender_id, loan.number)
    is_own = lent is not None and lent.usable and lent.loan is None
    is_there = current_vectors.find_current(reader, loan.lender_id) is not None
    return is_own and is_there and not reader_sets.is_bound(reader, loan.lender_id)


def load_lent(reader: Reader, loan: Loan, samples: LoggedSamples) -> LentAdapter | None:
    """Load a lent adapter on the snapshot of the borrower's samples; None if it is not lent any more."""
    stored = tuning_generations.load_adapter(reader, loan.lender_id, loan.number)
    target = samples.collection
    if stored is None or stored.encoder_fingerprint != target.encoder_fingerprint or not may_lend(reader, loan):
        return None
    question_hashes = {one.id: question_hash(one.text) for one in samples.questions}
    judged = tuning_samples.find_judged_hashes(reader, loan.lender_id, list(question_hashes.values()))
    supported = sorted({passage for one in samples.questions for passage in one.supported})
    text_hashes = tuning_samples.load_text_hashes(reader, target.id, supported)
    held = tuning_samples.find_text_hashes(reader, loan.lender_id, sorted(set(text_hashes.values())))
    known = frozenset(
        one.id
        for one in samples.questions
        if question_hashes[one.id] in judged or any(text_hashes[passage] in held for passage in one.supported)
    )
    return LentAdapter(Adapter.from_bytes(stored.content), known)
