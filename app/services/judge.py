"""The judge: an LLM that says which sentences of recent unjudged episodes helped, and posts feedback."""

import threading

import structlog

from app.errors import LlmError, LlmNotConfiguredError, NotFoundError, UnavailableError
from app.providers.llm import Llm
from app.services.feedback import FeedbackService, Named, Verdict
from app.storage import collections, episodes, passages
from app.storage.database import Database
from app.storage.episodes import StoredEpisode

log = structlog.get_logger(__name__)

EPISODES_PER_ROUND = 50


class JudgeService:
    """Judges episodes until stopped; an episode is judged once, whoever else judges as well."""

    def __init__(
        self,
        database: Database,
        feedback: FeedbackService,
        llm: Llm | None,
        *,
        name: str,
        interval_seconds: float,
        window_hours: float,
    ) -> None:
        self._database = database
        self._feedback = feedback
        self._llm = llm
        self._name = name
        self._interval_seconds = interval_seconds
        self._window_hours = window_hours
        self._stopping = threading.Event()

    def stop(self) -> None:
        """Finish the episode in hand and return from ``run``."""
        self._stopping.set()

    def run(self, collection: str, *, once: bool) -> int:
        """Judge what is there, then, unless ``once``, what comes; how many episodes were judged.

        Raises:
            LlmNotConfiguredError: no endpoint is configured.
            NotFoundError: there is no such collection, and ``once``.
            LlmError: the endpoint failed, and ``once``.
        """
        if self._llm is None:
            raise LlmNotConfiguredError("engram judge needs ENGRAM_LLM_BASE_URL to be set.")
        judged = 0
        while not self._stopping.is_set():
            try:
                found = self._round(collection, self._llm)
            except (LlmError, UnavailableError, NotFoundError) as error:
                if once:
                    raise
                log.warning("judge waits", error=error.detail)
                found = 0
            judged += found
            if not found:
                if once:
                    break
                self._stopping.wait(self._interval_seconds)
        return judged

    def _round(self, collection: str, llm: Llm) -> int:
        with self._database.read() as reader:
            target = collections.find(reader, collection)
            waiting = episodes.unjudged(reader, target.id, self._window_hours, EPISODES_PER_ROUND)
        judged = 0
        for episode in waiting:
            if self._stopping.is_set():
                break
            self._judge(collection, target.id, episode, llm)
            judged += 1
        return judged

    def _judge(self, collection: str, collection_id: int, episode: StoredEpisode, llm: Llm) -> None:
        with self._database.read() as reader:
            sentences = passages.sentences_by_id(reader, collection_id, episode.activated)
        shown = [(key, sentences[key].text) for key in episode.activated if key in sentences]
        judgement = llm.judge_support(episode.question, shown)
        rejected = [key for key in judgement.judged if key not in judgement.supporting]
        verdict = Verdict(
            query_id=episode.id,
            collection=collection,
            supporting=[Named(key) for key in judgement.supporting],
            rejected=[Named(key) for key in rejected],
            partial=True,
            retrieval_success=bool(judgement.supporting),
            judge=self._name,
            confidence=1.0 if judgement.confidence is None else max(0.01, judgement.confidence),
        )
        self._feedback.accept(verdict, f"{self._name}:{episode.id}")
