"""The job that learns or borrows a generation: a snapshot, a process to try it in, one transaction at the end."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import structlog

from engram.services.encoders.encoder import Encoder
from engram.services.jobs.work import JobKind, Work
from engram.storage.corpus import collections, current_vectors
from engram.storage.database import Database, Writer
from engram.storage.jobs.jobs import Job
from engram.wings.tuning.core.acceptance import DEFAULT_RULE, Acceptance, AcceptanceRule, Gain, find_needs
from engram.wings.tuning.core.learn_adapter import DEFAULT_OPTIONS, TuningOptions
from engram.wings.tuning.services.learning_process import (
    LearningLimitError,
    LearningStoppedError,
    learn_in_subprocess,
)
from engram.wings.tuning.services.lending import LentAdapter, load_lent, may_lend
from engram.wings.tuning.services.training_input import (
    LoggedSamples,
    build_training_input,
    format_key,
    load_samples,
)
from engram.wings.tuning.storage import tuning_generations, tuning_samples
from engram.wings.tuning.storage.tuning_generations import Loan

log = structlog.get_logger(__name__)

TUNE = JobKind("tune", "tuning", single=True)
ROUNDS = 3
"""Times that a generation is learned anew because some of its samples were taken back meanwhile."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """The outcome of learning: an adapter if it was accepted, and the decision in words and figures."""

    adapter: bytes | None
    accepted: bool
    reason: str
    figures: Mapping[str, Any]


class TuningJob:
    """Learns generations of taught question encoders."""

    def __init__(
        self,
        database: Database,
        encoder: Callable[[], Encoder],
        options: TuningOptions = DEFAULT_OPTIONS,
        rule: AcceptanceRule = DEFAULT_RULE,
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._options = options
        self._rule = rule

    def run(self, work: Work) -> None:
        """Learn from the log as it stands, or borrow, decide, and store the generation; it serves if accepted.

        Raises:
            GoneError: the collection was deleted meanwhile.
            EncoderNotTunableError: its encoder cannot be tuned.
            RuntimeError: what it learned from was taken back during each round.
        """
        if self._finish_if_off(work):
            return
        loan = Loan(**work.job.payload) if work.job.payload else None
        for _ in range(ROUNDS):
            with self._database.snapshot() as reader:
                collection = collections.load_by_id(reader, work.job.collection_id)
                samples = load_samples(reader, collection)
                lent = None if loan is None else load_lent(reader, loan, samples)
            if loan is not None and lent is None:
                self._finish_without_loan(work)
                return
            try:
                attempt = self._learn(samples, lent, work.must_stop)
            except LearningStoppedError:
                return
            with self._database.write() as writer:
                if self._store(writer, work, samples, attempt, loan):
                    return
            log.info("samples taken back while they were learned from, once more", collection=collection.name)
        raise RuntimeError(f"samples were taken back during each of {ROUNDS} attempts to learn from them")

    def _finish_if_off(self, work: Work) -> bool:
        """Close the job without an attempt if the collection's tuning was switched off since it was queued."""
        with self._database.write() as writer:
            work.lock(writer)
            if tuning_generations.load_progress(writer, work.job.collection_id).is_on:
                return False
            work.finish(writer, {"generation": None, "accepted": False, "reason": "not learned: tuning is off"})
            return True

    def _finish_without_loan(self, work: Work) -> None:
        with self._database.write() as writer:
            work.lock(writer)
            reason = "not used: the other collection lends its generation no more"
            work.finish(writer, {"generation": None, "accepted": False, "reason": reason})

    def let_go(self, writer: Writer, job: Job) -> None:
        """Do nothing: a generation is stored by the last transaction alone."""

    def _learn(self, samples: LoggedSamples, lent: LentAdapter | None, should_stop: Callable[[], bool]) -> _Attempt:
        """Learn an adapter, or take the one that is lent, and try it, with no transaction open.

        Raises:
            LearningStoppedError: ``should_stop`` said so.
        """
        tuning = self._encoder().choose_question_tuning(samples.collection)
        needs = len(np.unique(find_needs([one.supported for one in samples.questions])))
        least = max(1, self._rule.least_needs)
        if needs < least:
            outcome = "not learned" if lent is None else "not used"
            return _Attempt(None, False, f"{outcome}: verdicts on {needs} needs, of {least} at least", {})
        training = build_training_input(tuning, samples, self._options, self._rule)
        if lent is not None:
            training = replace(training, lent=lent.adapter, known=frozenset(map(format_key, lent.known)))
        try:
            trial = learn_in_subprocess(training, should_stop)
        except LearningLimitError as error:
            return _Attempt(None, False, f"not learned: it {error}", {})
        acceptance = trial.acceptance
        content = trial.adapter.to_bytes() if acceptance.accepted else None
        return _Attempt(content, acceptance.accepted, acceptance.reason, describe_figures(acceptance))

    def _store(
        self, writer: Writer, work: Work, samples: LoggedSamples, attempt: _Attempt, loan: Loan | None
    ) -> bool:
        """Store the attempt, and have it serve if it was accepted.

        False, and nothing is stored, if meanwhile a verdict was revoked or anonymised, one of its passages got
        readers, the encoder was exchanged, or the other collection lends no more.
        """
        target = samples.collection
        if loan is not None:
            # First, as a withdrawal holds the lender's row when it asks for the lock of the borrower's learning.
            tuning_generations.lock_loan(writer, loan)
            if not may_lend(writer, loan):
                return False
        work.lock(writer)
        collections.lock_learning(writer, target.id, exclusive=True)
        questions = [one.id for one in samples.questions]
        if not set(samples.events).issubset(tuning_samples.list_events(writer, target.id, questions)):
            return False
        if tuning_samples.concern_hidden_passages(writer, target.id, questions):
            return False
        now = collections.load_by_id(writer, target.id)
        if now.encoder_fingerprint != target.encoder_fingerprint:
            return False
        number = tuning_generations.add(
            writer,
            target.id,
            adapter=attempt.adapter,
            encoder_fingerprint=target.encoder_fingerprint,
            accepted=attempt.accepted,
            reason=attempt.reason,
            figures=attempt.figures,
            judged_count=samples.judged_count,
            question_count=len(samples.questions),
            events=[event.id for event in samples.events],
            loan=loan,
        )
        serves = attempt.accepted and tuning_generations.load_progress(writer, target.id).is_on
        if serves:
            current_vectors.serve_question_generation(writer, target.id, number)
        work.finish(writer, {"generation": number, "accepted": attempt.accepted, "reason": attempt.reason})
        log.info("question encoder tuned", collection=target.name, generation=number, decision=attempt.reason)
        return True


def describe_figures(acceptance: Acceptance) -> dict[str, Any]:
    """Figures of a decision as they are stored: gains of the groups, and the share of places that was kept."""
    return {
        "all": _describe_gain(acceptance.all),
        "others": _describe_gain(acceptance.others),
        "sharing": _describe_gain(acceptance.sharing),
        "recall": _describe_gain(acceptance.recall),
        "overlap": acceptance.overlap,
    }


def _describe_gain(gain: Gain) -> dict[str, Any]:
    """A gain; its error is None where it is unknown, which JSON has no number for."""
    return asdict(gain) | {"error": None if np.isinf(gain.error) else gain.error}
