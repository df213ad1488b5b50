"""Ratings: a judge has one rating of an answer, and each replaces the one before it."""

from engram.services.auth.scope import Scope
from engram.services.learning.feedback_service import FeedbackService, Receipt
from engram.services.learning.incoming_verdict import Verdict
from engram.services.learning.verdict_intake import AcceptedVerdict
from engram.services.revocation.revocation_service import RevocationService


class RatingService:
    """Accepts ratings and revokes those that they replace."""

    def __init__(self, feedback: FeedbackService, revoke: RevocationService) -> None:
        self._feedback = feedback
        self._revoke = revoke

    def rate(self, scope: Scope, verdict: Verdict, key: str, *, wait: bool = False) -> Receipt:
        """Store the rating once under its key, revoke the judge's earlier ones, and apply it here if ``wait``.

        A call that broke off between the two is made good by its repetition under the same key.

        Raises:
            As ``Intake.accept``.
        """
        receipt = self._feedback.accept(verdict, key)
        self._revoke.replace_ratings(scope, receipt.event)
        return self._feedback.apply_event(AcceptedVerdict(scope.collection.id, receipt.event)) if wait else receipt
