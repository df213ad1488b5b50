"""The way of a verdict: into the log, perhaps applied at once, and back as a receipt."""

import time
from collections.abc import Callable
from dataclasses import replace

from engram.context import tenancy
from engram.services.auth.scope import Scope
from engram.services.verdict.learn import VerdictLearner
from engram.services.verdict.log import VerdictLog
from engram.services.verdict.receipt import FindKeyEffect, Receipt, read_receipt
from engram.services.verdict.verdict import Verdict
from engram.storage.corpus import collections
from engram.storage.corpus.collections import VERDICT
from engram.storage.database import Database
from engram.storage.feedback_log import feedback_events, logged_verdicts
from engram.storage.feedback_log.feedback_events import VerdictEvent

WAIT_SECONDS = 10.0
"""How long a caller waits for its verdict to be applied."""
POLL_SECONDS = 0.02
RatingReplacement = Callable[[Scope, VerdictEvent], int]
"""Revokes the judge's earlier ratings of the answer in favour of this one; returns how many there were."""


class VerdictService:
    """Takes verdicts from the door to their receipts, and reads receipts."""

    def __init__(
        self,
        database: Database,
        log: VerdictLog,
        learner: VerdictLearner,
        replace_ratings: RatingReplacement,
        find_key_effect: FindKeyEffect | None = None,
    ) -> None:
        self._database = database
        self._log = log
        self._learner = learner
        self._replace_ratings = replace_ratings
        self._find_key_effect = find_key_effect

    def accept(self, verdict: Verdict, key: str, *, wait: bool = False) -> Receipt:
        """Store the verdict under its Idempotency-Key and have it applied, here if ``wait``.

        The same verdict again gets the first receipt.

        Raises:
            As ``VerdictLog.store_now``.
        """
        return self.follow_up(verdict, self._log.store_now(verdict, key, announced=not wait), wait=wait)

    def follow_up(self, verdict: Verdict, event: VerdictEvent, *, wait: bool) -> Receipt:
        """Do what follows once the verdict is stored: a rating replaces earlier ones, and ``wait`` applies it here.

        A call that broke off before is made good by its repetition under the same key.
        """
        if verdict.rating is not None:
            self._replace_ratings(verdict.scope, event)
        return self._wait_until_applied(event) if wait else Receipt(event)

    def read(self, scope: Scope, event_id: int) -> Receipt:
        """Read the receipt of an event that has its verdict, with what it changed so far.

        Raises:
            NotFoundError: there is no such event, or it is not for this principal to see.
        """
        target = scope.collection
        with self._database.read() as reader:
            event = feedback_events.find(reader, target.id, event_id)
            if event is None or not scope.sees(event.principal):
                raise collections.build_missing_resource_error(VERDICT, event_id)
            verdict = logged_verdicts.read(reader, target.id, [event_id])[event_id]
            return read_receipt(reader, replace(event, logged=verdict), self._find_key_effect)

    def _wait_until_applied(self, event: VerdictEvent) -> Receipt:
        """Apply the event here, or wait for the worker that holds it."""
        collection_id = event.collection_id
        deadline = time.monotonic() + WAIT_SECONDS
        while event.status == "pending" and time.monotonic() < deadline:
            with tenancy.allow_all_readers():  # what it teaches does not depend on who waits for it
                applied = self._learner.apply(collection_id, [event.id])
            if not applied:
                time.sleep(POLL_SECONDS)
            with self._database.read() as reader:
                event = feedback_events.find(reader, collection_id, event.id) or event
        with self._database.read() as reader:
            return read_receipt(reader, event, self._find_key_effect)
