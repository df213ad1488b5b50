"""Revoking verdicts: what was learned becomes what it would be if they had never come.

Only states that a revoked event touched are computed anew, from what they began as and the events that are left:
see ``replay``. A revoked event stays in the log with its verdict; a later verdict may say the same again.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

import structlog

from engram.context import tenancy
from engram.context.errors import InvalidRequestError
from engram.core.auth.access_keys import MODERATE
from engram.core.learning.state_rows import SupportRows
from engram.core.learning.states import RECALL
from engram.services.auth.scope import Scope
from engram.services.feedback_log import log_replay
from engram.services.jobs.idempotent_jobs import JobStart, open_job
from engram.services.jobs.job_kinds import REVOCATION
from engram.services.jobs.work import Work
from engram.services.revocation.derived_state import DerivedState
from engram.storage.corpus import collections
from engram.storage.corpus.collections import VERDICT
from engram.storage.database import Database, Writer
from engram.storage.feedback_log import audit_rows, feedback_events, replay_history
from engram.storage.feedback_log.feedback_events import VerdictEvent
from engram.storage.jobs.jobs import Job
from engram.storage.learning import learned_weights, question_supports
from engram.storage.learning.learned_weights import Days
from engram.storage.revocation import revocations
from engram.storage.revocation.revocations import VerdictFilter

log = structlog.get_logger(__name__)

BATCH = 100
"""Events that one transaction revokes; learning in their collection waits for it, so it must end within seconds."""
CHUNK = 200
"""Questions whose states are computed and written together: bounds memory."""


class RevocationService:
    """Takes verdicts back, one at a time or by jobs that a worker runs."""

    def __init__(
        self, database: Database, derived_states: Sequence[DerivedState] = (), *, batch_size: int = BATCH
    ) -> None:
        self._database = database
        self._derived = derived_states
        self._batch_size = batch_size

    def revoke(self, scope: Scope, event_id: int) -> VerdictEvent:
        """Revoke one event, applied or not; one that is revoked already stays as it is.

        Raises:
            NotFoundError: there is no such event, or it is not for this principal to see.
            ForbiddenError: another brought it, and the principal does not moderate.
        """
        target = scope.collection
        missing = collections.build_missing_resource_error(VERDICT, event_id)
        if not scope.is_allowed(MODERATE):
            with self._database.read() as reader:
                event = feedback_events.find(reader, target.id, event_id)
            if event is None or not scope.sees(event.principal):
                raise missing
            if event.principal != scope.principal.name:
                scope.need(MODERATE, "To revoke what another brought")
        with tenancy.allow_all_readers(), self._database.write() as writer:
            revoked = self.take_back(writer, target.id, [event_id])
            event = feedback_events.find(writer, target.id, event_id)
        if event is None:
            raise missing
        if revoked:
            log.info("feedback revoked", event_id=event_id, judge=event.judge)
        return event

    def replace_ratings(self, scope: Scope, event: VerdictEvent) -> int:
        """Revoke the judge's earlier ratings of an answer in favour of this one; how many there were.

        Repeated, it revokes nothing that came after the event.
        """
        collection_id = scope.collection.id
        principal = None if scope.is_allowed(MODERATE) else event.principal
        with tenancy.allow_all_readers(), self._database.read() as reader:
            earlier = feedback_events.list_earlier_ratings(
                reader, collection_id, event.query_id, event.judge, event.id, principal
            )
        if not earlier:
            return 0
        with tenancy.allow_all_readers(), self._database.write() as writer:
            revoked = len(self.take_back(writer, collection_id, earlier))
        log.info("ratings replaced", event_id=event.id, judge=event.judge, revoked=revoked)
        return revoked

    def request(
        self,
        scope: Scope,
        judge: str | None = None,
        since: datetime | None = None,
        before: datetime | None = None,
        key: str | None = None,
    ) -> UUID:
        """Queue a job that revokes all verdicts accepted so far that match; the first one of a repeated key.

        Verdicts that wait are revoked at once and are never applied.

        Args:
            judge: only this judge's.
            since, before: only those received from ``since`` on and before ``before``.
            key: the Idempotency-Key, if there is one.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
            InvalidRequestError: the time span is empty.
            IdempotencyConflictError: the key was used before with another request.
        """
        if since is not None and before is not None and since >= before:
            raise InvalidRequestError("'from' must come before 'to'.")
        criteria = VerdictFilter(judge, since, before)

        def begin(writer: Writer, collection_id: int) -> JobStart:
            begun = revocations.begin(writer, collection_id, criteria)
            return JobStart({"last": begun.last}, received=begun.at_once + begun.remaining, updated=begun.at_once)

        return open_job(self._database, scope, REVOCATION, criteria.as_json(), key, begin)

    def run(self, work: Work) -> None:
        """Revoke batch after batch, each in a transaction that leaves what is learned without its verdicts."""
        while not (work.finished or work.should_stop()):
            with self._database.write() as writer:
                self._run_batch(writer, work)

    def let_go(self, writer: Writer, job: Job) -> None:
        """Do nothing: verdicts that are not revoked yet go on counting."""

    def _run_batch(self, writer: Writer, work: Work) -> None:
        """Revoke the job's next verdicts, or close it, counting what others revoked meanwhile."""
        collection_id = work.job.collection_id
        current = work.lock(writer)
        batch = revocations.list_next(writer, collection_id, current.payload, current.position, self._batch_size)
        if batch:
            work.advance(writer, updated=len(self.take_back(writer, collection_id, batch)), position=batch[-1])
        else:
            work.advance(writer, unchanged=current.waiting)
            work.finish(writer)

    def take_back(self, writer: Writer, collection_id: int, events: Sequence[int]) -> list[int]:
        """Revoke those of the events that are not yet; which.

        Locks are taken in the order in which a worker takes them: the collection, the right to learn, events,
        sentences, rows of wings, weights. While it lasts, no event of the collection is applied.
        """
        if not collections.lock_against_deletion(writer, collection_id):
            return []
        collections.lock_learning(writer, collection_id, exclusive=True)
        status_by_event = feedback_events.lock_unrevoked(writer, collection_id, events)
        feedback_events.mark_revoked(writer, collection_id, list(status_by_event))
        applied = [event for event, status in status_by_event.items() if status == "applied"]
        if applied:
            questions = question_supports.find_questions(writer, collection_id, applied)
            sentences = audit_rows.withdraw(writer, collection_id, applied, [RECALL])
            question_supports.hold_sentences(writer, collection_id, sentences)
            days = _replay_questions(writer, collection_id, questions)
            for state in self._derived:
                state.withdraw(writer, collection_id, applied)
            days |= learned_weights.withdraw(writer, collection_id, applied)
            for believed in learned_weights.settle(writer, collection_id, days):
                learned_weights.replace(
                    writer, collection_id, believed, log_replay.belief(writer, collection_id, believed)
                )
        return list(status_by_event)


def replay_sentence_supports(writer: Writer, collection_id: int, sentences: Sequence[int]) -> None:
    """Make what these sentences support what the events that count make of their texts now.

    Sentences that are there again need it too: verdicts applied in their absence taught nothing of them.
    """
    questions = replay_history.find_questions_about(writer, collection_id, sentences)
    for at in range(0, len(questions), CHUNK):
        chunk = questions[at : at + CHUNK]
        replayed_supports = list(log_replay.supports(writer, collection_id, chunk, sentences))
        audit_rows.rewrite(
            writer, collection_id, [row for replayed in replayed_supports for row in replayed.corrected]
        )
        question_supports.store_supports(
            writer, collection_id, SupportRows.from_rows([replayed.state for replayed in replayed_supports])
        )


def _replay_questions(writer: Writer, collection_id: int, touched: Mapping[int, Sequence[int]]) -> Days:
    """Make what these questions, each with sentences, recall what the events that are left make it.

    Returns:
        Whose terms of weights are contested no more.
    """
    questions, days = list(touched), Days()
    for at in range(0, len(questions), CHUNK):
        chunk = questions[at : at + CHUNK]
        first_questions = replay_history.find_first_questions(writer, collection_id, chunk)
        question_supports.put_questions(
            writer,
            collection_id,
            {question: (first.text, first.embedding) for question, first in first_questions.items()},
            [question for question in chunk if question not in first_questions],
        )
        concerned = {(question, sentence) for question in first_questions for sentence in touched[question]}
        sentences = sorted({sentence for _, sentence in concerned})
        replayed_supports = [
            replayed
            for replayed in log_replay.supports(writer, collection_id, list(first_questions), sentences)
            if (replayed.state.question_id, replayed.state.sentence_id) in concerned
        ]
        against = log_replay.find_opposing_events(writer, collection_id, chunk)
        days |= learned_weights.contest(writer, collection_id, chunk, against)
        audit_rows.rewrite(
            writer, collection_id, [row for replayed in replayed_supports for row in replayed.corrected]
        )
        states = {(replayed.state.question_id, replayed.state.sentence_id) for replayed in replayed_supports}
        question_supports.replace_supports(
            writer,
            collection_id,
            SupportRows.from_rows([replayed.state for replayed in replayed_supports]),
            sorted(concerned - states),
        )
    return days
