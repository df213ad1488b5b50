"""Reranking of the best candidates within a time budget, and the fallback without it."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from engram.core.ranking.reranking import to_log_odds
from engram.providers.reranker import Reranker, RerankerError
from engram.services.question.query import Fallback
from engram.storage.corpus.passages import StoredPassage
from engram.telemetry.stages import stage

log = structlog.get_logger(__name__)

TEXT_CHARACTERS = 4_000
"""Characters of a passage that the reranker reads."""
FAILURES = 3
"""Failures in a row after which it is left alone for a while."""
PAUSE_SECONDS = 10.0
PAUSED = "It failed several times in a row and is left alone for some seconds."


class PassageReranker:
    """Asks the reranker about the best candidates, within a time budget; safe to share between threads."""

    def __init__(
        self,
        reranker: Reranker,
        *,
        candidates: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask this one.

        Args:
            candidates: most passages that it reads for one question.
            seconds: for one question.
            clock: seconds that only grow.
        """
        self._reranker = reranker
        self.candidates = candidates
        self._seconds = seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._failures = 0
        self._until = 0.0

    def rerank(
        self, question: str, passages: Sequence[tuple[int, StoredPassage]]
    ) -> Mapping[int, float] | Fallback:
        """Passage -> log odds, of passages given by id; a warning if there are none in time.

        No transaction may be open.
        """
        if not passages:
            return {}
        with self._lock:
            if self._clock() < self._until:
                return Fallback("not-reranked", PAUSED)
        texts = [_text(passage) for _, passage in passages]
        try:
            with stage("rerank"):
                odds = to_log_odds(self._reranker.score(question, texts, self._seconds))
        except (RerankerError, ValueError) as error:
            self._note_failure(str(error))
            return Fallback("not-reranked", str(error))
        with self._lock:
            self._failures = 0
        return dict(zip((one for one, _ in passages), odds, strict=True))

    def _note_failure(self, reason: str) -> None:
        with self._lock:
            self._failures += 1
            paused = self._failures >= FAILURES
            if paused:
                self._failures, self._until = 0, self._clock() + PAUSE_SECONDS
        log.warning("ranked without the reranker", reason=reason, paused=paused)


def _text(passage: StoredPassage) -> str:
    return "\n".join(part for part in (passage.title, passage.text) if part)[:TEXT_CHARACTERS]
