"""Tuning as its users see it: what was tried, what serves, a new attempt, the way back, and the switch."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID, uuid4

import structlog

from engram.context.errors import InvalidRequestError
from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.services.jobs.idempotent_jobs import open_job
from engram.storage.corpus import collections, current_vectors
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database
from engram.storage.jobs import jobs
from engram.wings.tuning.services.derived_tuning import withdraw_generations
from engram.wings.tuning.services.tuning_job import TUNE
from engram.wings.tuning.storage import tuning_generations
from engram.wings.tuning.storage.tuning_generations import Generation, Progress

log = structlog.get_logger(__name__)

FIRST_QUESTIONS = 40
"""Judged questions from which on a collection is tuned by itself: two of each need that acceptance asks for."""
GROWTH = 1.5
"""So many times the judged questions of the last attempt make the next one due."""
COLLECTIONS = 1_000
"""Collections that are read at a time."""


@dataclass(frozen=True, slots=True)
class TuningStanding:
    """Where the tuning of a collection stands.

    Attributes:
        is_on: whether it is tuned by itself, and may serve.
        can_tune: whether this process can tune its encoder.
        serving: the generation that serves; 0: the encoder as it is.
        judged_count: judged questions.
        due_count: judged questions at which the next attempt comes by itself; None: it never does.
        generations: attempts, the latest first.
    """

    collection: str
    is_on: bool
    can_tune: bool
    serving: int
    judged_count: int
    due_count: int | None
    generations: Sequence[Generation]


class TuningService:
    """Shows, requests and takes back generations of tuned question encoders."""

    def __init__(self, database: Database, encoder: Callable[[], Encoder]) -> None:
        self._database = database
        self._encoder = encoder

    def load_standing(self, scope: Scope, before: int | None = None, limit: int = 20) -> TuningStanding:
        """Load where the tuning stands, with ``limit`` generations before number ``before``."""
        target = scope.collection
        can_tune = self._encoder().find_question_tuning(target) is not None
        with self._database.snapshot() as reader:
            progress = tuning_generations.load_progress(reader, target.id)
            return TuningStanding(
                target.name,
                progress.is_on,
                can_tune,
                tuning_generations.find_serving(reader, target.id),
                progress.judged_count,
                find_due_count(progress) if can_tune and progress.is_on else None,
                tuning_generations.load_page(reader, target.id, before, limit),
            )

    def request(self, scope: Scope) -> UUID:
        """Queue a job that learns a generation now.

        Raises:
            GoneError: the collection was deleted meanwhile.
            EncoderNotTunableError: its encoder cannot be tuned.
            InvalidRequestError: its tuning is off.
            ConflictError: such a job is open.
        """
        self._encoder().choose_question_tuning(scope.collection)
        with self._database.read() as reader:
            progress = tuning_generations.load_progress(reader, scope.collection.id)
        if not progress.is_on:
            raise _build_off_error(scope.collection)
        return open_job(self._database, scope, TUNE, {}, None)

    def roll_back(self, scope: Scope, number: int) -> None:
        """Have generation ``number`` serve, 0 for the encoder as it is, until the next one is accepted.

        Raises:
            GoneError: the collection was deleted meanwhile.
            InvalidRequestError: the generation cannot serve, or tuning is off.
        """
        target = scope.collection
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, target.id):
                raise collections.build_gone_error(target.name)
            collections.lock_learning(writer, target.id, exclusive=True)
            if number:
                if not tuning_generations.load_progress(writer, target.id).is_on:
                    raise _build_off_error(target)
                chosen = tuning_generations.find(writer, target.id, number)
                now = collections.load_by_id(writer, target.id)
                if problem := _find_problem(chosen, now):
                    raise InvalidRequestError(f"Generation {number} of {target.name!r} {problem}.")
            current_vectors.serve_question_generation(writer, target.id, number)
        log.info("question encoder rolled back", collection=target.name, generation=number)

    def switch(self, scope: Scope, *, is_on: bool) -> None:
        """Switch the tuning on, and have the last generation serve, or off, and have none serve.

        Raises:
            GoneError: the collection was deleted meanwhile.
        """
        target = scope.collection
        with self._database.write() as writer:
            if not collections.lock_against_deletion(writer, target.id):
                raise collections.build_gone_error(target.name)
            collections.lock_learning(writer, target.id, exclusive=True)
            tuning_generations.set_switch(writer, target.id, is_on=is_on)
            number = tuning_generations.find_last_usable(writer, target.id) if is_on else 0
            current_vectors.serve_question_generation(writer, target.id, number)
        log.info("tuning switched", collection=target.name, is_on=is_on)

    def maintain(self, should_stop: Callable[[], bool]) -> None:
        """Withdraw what passages that got readers taught, and queue attempts that are due, in all collections.

        A collection is left out if it is a copy of a past moment, or this process cannot tune its encoder.
        """
        after = ("", 0)
        while not should_stop():
            with self._database.read() as reader:
                page = collections.list_of_all_tenants(reader, after, COLLECTIONS)
            if not page:
                return
            for collection in page:
                if should_stop():
                    return
                if collection.past is None:
                    self._maintain_one(collection)
            after = (page[-1].name, page[-1].id)

    def _maintain_one(self, collection: Collection) -> None:
        with self._database.read() as reader:
            progress = tuning_generations.load_progress(reader, collection.id)
            exposed = tuning_generations.find_exposed(reader, collection.id)
        if exposed:
            self._withdraw(collection, exposed)
        due = find_due_count(progress)
        if not progress.is_on or progress.judged_count < due or not self._can_tune(collection):
            return
        with self._database.write() as writer:
            if collections.lock_against_deletion(writer, collection.id):
                jobs.add(
                    writer, collection.id, uuid4(), kind=TUNE.name, lane=TUNE.lane, single=TUNE.single, payload={}
                )

    def _withdraw(self, collection: Collection, numbers: Sequence[int]) -> None:
        with self._database.write() as writer:
            if collections.lock_against_deletion(writer, collection.id):
                collections.lock_learning(writer, collection.id, exclusive=True)
                withdraw_generations(writer, collection.id, numbers)
        log.info("tuning withdrawn: passages have readers by now", collection=collection.name, generations=numbers)

    def _can_tune(self, collection: Collection) -> bool:
        encoder = self._encoder()
        return (
            collection.encoder_fingerprint in encoder.fingerprints
            and encoder.find_question_tuning(collection) is not None
        )


def find_due_count(progress: Progress) -> int:
    """Judged questions from which on an attempt is due."""
    return (
        FIRST_QUESTIONS if progress.last_count is None else max(FIRST_QUESTIONS, int(GROWTH * progress.last_count))
    )


def _find_problem(chosen: Generation | None, collection: Collection) -> str | None:
    """Why a generation cannot serve a collection, or None."""
    if chosen is None:
        return "does not exist"
    if not chosen.usable:
        return "was withdrawn" if chosen.withdrawn_at is not None else "was not used, so its adapter was not kept"
    if chosen.encoder_fingerprint != collection.encoder_fingerprint:
        return "belongs to another encoder"
    return None


def _build_off_error(collection: Collection) -> InvalidRequestError:
    return InvalidRequestError(f"Tuning of {collection.name!r} is off; switch it on first (`engram tuning --on`).")
