"""Tuning as its users see it: what was tried, what serves, a new attempt, and changes of what serves."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from uuid import UUID

import structlog

from engram.context.errors import (
    EmbeddingSpaceMismatchError,
    EmbeddingUnavailableError,
    InvalidRequestError,
    NotFoundError,
)
from engram.core.auth.access_keys import READ
from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.idempotent_jobs import open_job
from engram.storage.corpus import collections, current_vectors
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Reader, Writer
from engram.wings.tuning.services.derived_tuning import queue_attempt, withdraw_generations
from engram.wings.tuning.services.lending import choose_loan, may_lend
from engram.wings.tuning.services.tuning_job import TUNE
from engram.wings.tuning.storage import tuning_generations
from engram.wings.tuning.storage.tuning_generations import EncoderGeneration, Progress

log = structlog.get_logger(__name__)

FIRST_QUESTIONS = 40
"""Judged questions from which on a collection is tuned by itself: two of each need that acceptance asks for."""
GROWTH = 1.5
"""So many times the judged questions of the last attempt make the next one due."""
SWEEP_SECONDS = 600.0
"""How often collections are looked through for what is due."""
COLLECTIONS = 1_000
"""Collections that are read at a time."""


@dataclass(frozen=True, slots=True)
class TuningStanding:
    """The state of a collection's tuning.

    Attributes:
        is_on: whether it is tuned by itself, and may serve.
        can_tune: whether this process can tune its encoder; False while its server is away.
        serving: the generation that serves; 0: the encoder as it is.
        judged_count: judged questions.
        due_count: judged questions at which the next attempt comes by itself; None: it never does.
        generations: attempts, the latest first.
        lenders: generation -> collection that it was borrowed from, of those that the caller may read.
    """

    collection: str
    is_on: bool
    can_tune: bool
    serving: int
    judged_count: int
    due_count: int | None
    generations: Sequence[EncoderGeneration]
    lenders: Mapping[int, str]


class TuningService:
    """Shows, requests and takes back generations of tuned question encoders."""

    def __init__(self, database: Database, encoder: Callable[[], Encoder]) -> None:
        self._database = database
        self._encoder = encoder
        self._sweep_due = 0.0

    def load_standing(self, scope: Scope, before: int | None = None, limit: int = 20) -> TuningStanding:
        """Load where the tuning stands, with ``limit`` generations before number ``before``."""
        target = scope.collection
        can_tune = self._can_tune(target)
        with self._database.snapshot() as reader:
            progress = tuning_generations.load_progress(reader, target.id)
            generations = tuning_generations.load_page(reader, target.id, before, limit)
            return TuningStanding(
                target.name,
                progress.is_on,
                can_tune,
                tuning_generations.find_serving(reader, target.id),
                progress.judged_count,
                find_due_count(progress) if can_tune and progress.is_on else None,
                generations,
                _name_lenders(reader, scope, generations),
            )

    def request(self, scope: Scope, lender: Scope | None = None) -> UUID:
        """Queue a job that learns a generation now, or borrows the one that serves another collection.

        Raises:
            GoneError: the collection was deleted meanwhile.
            EncoderNotTunableError: its encoder cannot be tuned.
            InvalidRequestError: its tuning is off, or nothing can be borrowed.
            ConflictError: such a job is open.
        """
        self._encoder().choose_question_tuning(scope.collection)
        with self._database.read() as reader:
            if not tuning_generations.load_progress(reader, scope.collection.id).is_on:
                raise _build_off_error(scope.collection)
            loan = None if lender is None else choose_loan(reader, lender.collection, scope.collection)
        return open_job(self._database, scope, TUNE, {} if loan is None else asdict(loan), None)

    def change(
        self, scope: Scope, *, is_on: bool | None = None, withdrawn: int | None = None, serving: int | None = None
    ) -> None:
        """Change the tuning of a collection, all at once or not at all. What is None stays.

        Args:
            is_on: True has the last generation serve; False has none serve.
            withdrawn: the generation whose adapter is removed. If it serves, the last one before it serves.
            serving: the generation that serves until the next one is accepted; 0: the encoder as it is.

        Raises:
            GoneError: the collection was deleted meanwhile.
            InvalidRequestError: a generation has no adapter or is of another encoder, or tuning is off.
        """
        target = scope.collection
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, target.id):
                raise collections.build_gone_error(target.name)
            collections.lock_learning(writer, target.id, exclusive=True)
            if is_on is not None:
                tuning_generations.set_switch(writer, target.id, is_on=is_on)
                number = tuning_generations.find_last_usable(writer, target.id) if is_on else 0
                current_vectors.serve_question_generation(writer, target.id, number)
            if withdrawn is not None:
                chosen = tuning_generations.find(writer, target.id, withdrawn)
                if problem := _find_lack(chosen):
                    raise _build_number_error(target, withdrawn, problem)
                withdraw_generations(writer, target.id, [withdrawn])
            if serving is not None:
                _serve(writer, target, serving)
        log.info("tuning changed", collection=target.name, is_on=is_on, withdrawn=withdrawn, serving=serving)

    def sweep(self, should_stop: Callable[[], bool]) -> None:
        """Do what ``withdraw_exposed`` and ``queue_due`` do, every ten minutes."""
        began = time.monotonic()
        if began < self._sweep_due:
            return
        self.withdraw_exposed(should_stop)
        self._sweep_due = began + SWEEP_SECONDS
        self.queue_due(should_stop)

    def withdraw_exposed(self, should_stop: Callable[[], bool]) -> None:
        """Withdraw, in all collections, what passages with readers taught and what is lent no more."""
        self._for_each_collection(self._withdraw_exposed, should_stop)

    def queue_due(self, should_stop: Callable[[], bool]) -> None:
        """Queue the attempts that are due, in all collections that this process can tune."""
        self._for_each_collection(self._queue_if_due, should_stop)

    def _for_each_collection(self, step: Callable[[Collection], None], should_stop: Callable[[], bool]) -> None:
        """Do a step for each collection but copies of past moments; log failures, and go on."""
        after = ("", 0)
        while not should_stop():
            with self._database.read() as reader:
                page = collections.list_of_all_tenants(reader, after, COLLECTIONS)
            if not page:
                return
            for collection in page:
                if should_stop():
                    return
                if collection.past is not None:
                    continue
                try:
                    step(collection)
                except Exception:
                    log.exception("tuning of a collection not looked after", collection=collection.name)
            after = (page[-1].name, page[-1].id)

    def _withdraw_exposed(self, collection: Collection) -> None:
        with self._database.read() as reader:
            exposed = tuning_generations.find_exposed(reader, collection.id)
            exposed += [
                one.number
                for one in tuning_generations.list_all(reader, collection.id)
                if one.usable and one.loan is not None and not may_lend(reader, one.loan)
            ]
        if not exposed:
            return
        with self._database.write() as writer:
            if collections.lock_against_deletion(writer, collection.id):
                collections.lock_learning(writer, collection.id, exclusive=True)
                withdraw_generations(writer, collection.id, exposed)
        reason = "passages have readers by now, or it is lent no more"
        log.info("tuning withdrawn", reason=reason, collection=collection.name, generations=exposed)

    def _queue_if_due(self, collection: Collection) -> None:
        with self._database.read() as reader:
            progress = tuning_generations.load_progress(reader, collection.id)
        is_due = progress.is_on and progress.judged_count >= find_due_count(progress)
        if not is_due or not self._can_tune(collection):
            return
        with self._database.write() as writer:
            if collections.lock_against_deletion(writer, collection.id):
                queue_attempt(writer, collection.id)

    def _can_tune(self, collection: Collection) -> bool:
        """Whether this process can tune the collection's encoder now. It may reach a server."""
        try:
            return self._encoder().find_question_tuning(collection) is not None
        except (EmbeddingSpaceMismatchError, EmbeddingUnavailableError):
            return False


def _name_lenders(reader: Reader, scope: Scope, generations: Sequence[EncoderGeneration]) -> dict[int, str]:
    """Return generation -> collection that it was borrowed from, of those that the caller may read."""
    names: dict[int, str] = {}
    for one in generations:
        if one.loan is None:
            continue
        try:
            lender = collections.load_by_id(reader, one.loan.lender_id)
        except NotFoundError:
            continue  # it was deleted
        if replace(scope, collection=lender).is_allowed(READ):
            names[one.number] = lender.name
    return names


def _serve(writer: Writer, target: Collection, number: int) -> None:
    """Have a generation serve; 0: the encoder as it is.

    Raises:
        InvalidRequestError: it has no adapter, is of another encoder, or tuning is off.
    """
    if number:
        if not tuning_generations.load_progress(writer, target.id).is_on:
            raise _build_off_error(target)
        chosen = tuning_generations.find(writer, target.id, number)
        if problem := _find_problem(chosen, collections.load_by_id(writer, target.id)):
            raise _build_number_error(target, number, problem)
    current_vectors.serve_question_generation(writer, target.id, number)


def find_due_count(progress: Progress) -> int:
    """Judged questions from which on an attempt is due."""
    return (
        FIRST_QUESTIONS if progress.last_count is None else max(FIRST_QUESTIONS, int(GROWTH * progress.last_count))
    )


def _find_lack(chosen: EncoderGeneration | None) -> str | None:
    """Why a generation has no adapter; None if it has one."""
    if chosen is None:
        return "does not exist"
    if chosen.usable:
        return None
    return "was withdrawn" if chosen.withdrawn_at is not None else "was not used, so its adapter was not kept"


def _find_problem(chosen: EncoderGeneration | None, collection: Collection) -> str | None:
    """Why a generation cannot serve a collection; None if it can."""
    if chosen is not None and chosen.usable and chosen.encoder_fingerprint != collection.encoder_fingerprint:
        return "belongs to another encoder"
    return _find_lack(chosen)


def _build_number_error(collection: Collection, number: int, problem: str) -> InvalidRequestError:
    return InvalidRequestError(f"Generation {number} of {collection.name!r} {problem}.")


def _build_off_error(collection: Collection) -> InvalidRequestError:
    return InvalidRequestError(f"Tuning of {collection.name!r} is off; switch it on first (`engram tuning --on`).")
