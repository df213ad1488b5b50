"""The judge: an LLM that says which sentences of recent unjudged episodes helped, and posts feedback."""

import threading
from collections import Counter
from collections.abc import Callable
from uuid import UUID

import structlog

from engram.context.errors import (
    IdempotencyConflictError,
    InvalidRequestError,
    LlmError,
    LlmNotConfiguredError,
    NotFoundError,
    UnavailableError,
)
from engram.providers.llm import Llm
from engram.services.auth.scope import Scope
from engram.services.learning.feedback_service import FeedbackService
from engram.services.learning.incoming_verdict import NamedSentence, Verdict
from engram.storage.corpus import passages
from engram.storage.database import Database, Reader
from engram.storage.retrieval import episodes
from engram.storage.retrieval.episodes import StoredEpisode

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
        self._failures: Counter[UUID] = Counter()

    def stop(self) -> None:
        """Finish the episode in hand and return from ``run``."""
        self._stopping.set()

    def run(self, resolve: Callable[[], Scope], *, once: bool) -> int:
        """Judge what is there, then, unless ``once``, what comes; how many episodes were judged.

        Args:
            resolve: asked anew for each round, as the collection may be yet to come, or be made again.

        Raises:
            LlmNotConfiguredError: no endpoint is configured.
            NotFoundError: there is no such collection, and ``once``.
            LlmError: the endpoint failed, and ``once``; without it the episode waits behind the others.
        """
        if self._llm is None:
            raise LlmNotConfiguredError("engram judge needs ENGRAM_LLM_BASE_URL to be set.")
        judged = 0
        while not self._stopping.is_set():
            try:
                judged_count = self._round(resolve(), self._llm)
            except (LlmError, UnavailableError, NotFoundError) as error:
                if once:
                    raise
                log.warning("judge waits", error=error.detail)
                judged_count = 0
            judged += judged_count
            if not judged_count:
                if once:
                    break
                self._stopping.wait(self._interval_seconds)
        return judged

    def _round(self, scope: Scope, llm: Llm) -> int:
        with self._database.read() as reader:
            waiting = episodes.unjudged(reader, scope.collection.id, self._window_hours, EPISODES_PER_ROUND)
        judged = 0
        for episode in sorted(waiting, key=lambda episode: self._failures[episode.id]):
            if self._stopping.is_set():
                break
            try:
                judged += self._judge(scope, episode, llm)
            except LlmError:
                self._failures[episode.id] += 1
                raise
            self._failures.pop(episode.id, None)
        return judged

    def _judge(self, scope: Scope, episode: StoredEpisode, llm: Llm) -> bool:
        """Whether this judged the episode; the sentences are those that are still there."""
        collection_id = scope.collection.id
        with self._database.read() as reader:
            if episodes.find(reader, collection_id, episode.id).judged:
                return False
            sentences = _shown_sentences(reader, collection_id, episode)
        judgement = llm.judge_support(episode.question, sentences)
        rejected = [key for key in judgement.judged if key not in judgement.supporting]
        verdict = Verdict(
            query_id=episode.id,
            scope=scope,
            supporting=[NamedSentence(key) for key in judgement.supporting],
            rejected=[NamedSentence(key) for key in rejected],
            partial=True,
            retrieval_success=bool(judgement.supporting),
            judge=self._name,
            confidence=1.0 if judgement.confidence is None else max(0.01, judgement.confidence),
        )
        try:
            self._feedback.accept(verdict, f"{self._name}:{episode.id}")
        except IdempotencyConflictError:
            log.info("episode judged by another judge meanwhile", query_id=str(episode.id))
            return False
        except InvalidRequestError as error:
            log.info("evidence changed while it was judged", query_id=str(episode.id), reason=error.detail)
            return False
        return True


def _shown_sentences(reader: Reader, collection_id: int, episode: StoredEpisode) -> list[tuple[int, str]]:
    """The sentences to judge that are still there: those that hops selected, and what was shown of the explored.

    A plain search selects none, so all sentences of the passages that it found are judged.
    """
    if episode.strategy == "graph":
        hits = zip(episode.shown, episode.answer["passages"], strict=True)
        explored = [hit for passage, hit in hits if passage in episode.explored]
        named = [*episode.activated, *(row["sentence_id"] for hit in explored for row in hit["sentences"])]
        sentences = passages.sentences_by_id(reader, collection_id, named)
        return [(key, sentences[key].text) for key in named if key in sentences]
    ids = episode.shown
    ordered = sorted(passages.sentences_of(reader, collection_id, ids), key=lambda row: ids.index(row.passage_id))
    return [(sentence.id, sentence.text) for sentence in ordered]
