"""The judge: an LLM that says which sentences of recent unjudged episodes helped, and posts feedback."""

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from uuid import UUID

import structlog

from engram.context.errors import (
    IdempotencyConflictError,
    InvalidRequestError,
    LlmError,
    LlmNotConfiguredError,
    LlmRefusalError,
    NotFoundError,
    UnavailableError,
    UnfitModelError,
)
from engram.providers.llm import Llm
from engram.services.auth.scope import Scope
from engram.services.judges.judge_exam import ModelExam
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.services.verdict.verdict_service import VerdictService
from engram.storage.corpus import passages
from engram.storage.database import Database, Reader
from engram.storage.question import episodes
from engram.storage.question.episodes import StoredEpisode

log = structlog.get_logger(__name__)

EPISODES_PER_ROUND = 50
"""Of one collection, before it is another's turn."""
MOST_REFUSALS = 3
"""Refusals and unusable replies after which an episode is left unjudged."""
FAILURES_IN_A_ROW = 3
"""Failures of the endpoint after which a round ends: the endpoint is away, and no single episode is at fault."""


@dataclass(slots=True)
class _JudgedRound:
    """The outcome of a round.

    Attributes:
        judged: episodes that were judged.
        failed: episode -> how the LLM failed on it.
        endpoint_is_away: whether the round ended because the endpoint is away.
    """

    judged: int = 0
    failed: dict[UUID, str] = field(default_factory=dict)
    endpoint_is_away: bool = False


class EpisodeJudge:
    """Judges episodes until stopped; an episode is judged once, whoever else judges as well."""

    def __init__(
        self,
        database: Database,
        verdicts: VerdictService,
        llm: Llm | None,
        *,
        name: str,
        interval_seconds: float,
        window_hours: float,
        exam: ModelExam,
    ) -> None:
        """``exam``: what the model has to pass before its first verdict."""
        self._database = database
        self._verdicts = verdicts
        self._llm = llm
        self._name = name
        self._interval_seconds = interval_seconds
        self._window_hours = window_hours
        self._stopping = threading.Event()
        self._exam = exam

    def stop(self) -> None:
        """Finish the episode in hand and return from ``run``."""
        self._stopping.set()

    def run(self, resolve: Callable[[], Sequence[Scope]], *, once: bool) -> int:
        """Judge waiting episodes of collections in turn, then, unless ``once``, new ones; how many were judged.

        Args:
            resolve: returns the scopes. Called for each round, as a collection may be made later, or made anew.

        Raises:
            LlmNotConfiguredError: no endpoint is configured.
            UnfitModelError: the model failed the control questions.
            NotFoundError: there is no such collection, and ``once``.
            LlmError: ``once``, and some episodes could not be judged; the others are.
        """
        if self._llm is None:
            raise LlmNotConfiguredError("engram judge needs ENGRAM_LLM_BASE_URL to be set.")
        if once:
            return self._pass(resolve, self._llm)
        judged = 0
        while not self._stopping.is_set():
            try:
                progress = self._take_turns(resolve(), self._llm, frozenset())
            except UnfitModelError:
                raise
            except (LlmError, UnavailableError, NotFoundError) as error:
                log.warning("judge waits", error=error.detail)
                self._stopping.wait(self._interval_seconds)
                continue
            judged += progress.judged
            if not progress.judged:
                self._stopping.wait(self._interval_seconds)
        return judged

    def _pass(self, resolve: Callable[[], Sequence[Scope]], llm: Llm) -> int:
        """Try each waiting episode once."""
        judged = 0
        failed: dict[UUID, str] = {}
        while not self._stopping.is_set():
            progress = self._take_turns(resolve(), llm, failed.keys())
            judged += progress.judged
            failed |= progress.failed
            if progress.endpoint_is_away or not (progress.judged or progress.failed):
                break
        if failed:
            raise LlmError(
                f"{judged} episodes judged; {len(failed)} could not be. The last of them: {[*failed.values()][-1]}"
            )
        return judged

    def _take_turns(self, scopes: Sequence[Scope], llm: Llm, tried: Collection[UUID]) -> _JudgedRound:
        """A round of each collection, until the endpoint is away."""
        total = _JudgedRound()
        for scope in scopes:
            progress = self._round(scope, llm, tried)
            total.judged += progress.judged
            total.failed |= progress.failed
            total.endpoint_is_away = progress.endpoint_is_away
            if self._stopping.is_set() or total.endpoint_is_away:
                break
        return total

    def _round(self, scope: Scope, llm: Llm, tried: Collection[UUID]) -> _JudgedRound:
        """Judge a page of waiting episodes, without those that were ``tried``."""
        collection_id = scope.collection.id
        with self._database.read() as reader:
            waiting = episodes.list_unjudged(
                reader, collection_id, self._window_hours, EPISODES_PER_ROUND, most_refusals=MOST_REFUSALS
            )
        waiting = [episode for episode in waiting if episode.id not in tried]
        if waiting:
            self._exam.require()
        progress, in_a_row = _JudgedRound(), 0
        for episode in waiting:
            if self._stopping.is_set():
                break
            try:
                progress.judged += self._judge(scope, episode, llm)
                in_a_row = 0
            except LlmError as error:
                refused = isinstance(error, LlmRefusalError)
                log.warning("episode not judged", query_id=str(episode.id), refused=refused, error=error.detail)
                with self._database.write() as writer:
                    episodes.count_judge_failure(writer, collection_id, episode.id, refused=refused)
                progress.failed[episode.id] = error.detail
                in_a_row = 0 if refused else in_a_row + 1
            if in_a_row >= FAILURES_IN_A_ROW:
                progress.endpoint_is_away = True
                break
        return progress

    def _judge(self, scope: Scope, episode: StoredEpisode, llm: Llm) -> bool:
        """Ask the model to judge the episode, and store its verdict; return whether it was stored."""
        collection_id = scope.collection.id
        with self._database.read() as reader:
            if episodes.find(reader, collection_id, episode.id).judged:
                return False
            sentences = _load_shown_sentences(reader, collection_id, episode)
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
            self._verdicts.accept(verdict, f"{self._name}:{episode.id}")
        except IdempotencyConflictError:
            log.info("episode judged by another judge meanwhile", query_id=str(episode.id))
            return False
        except InvalidRequestError as error:
            log.info("evidence changed while it was judged", query_id=str(episode.id), reason=error.detail)
            return False
        return True


def _load_shown_sentences(reader: Reader, collection_id: int, episode: StoredEpisode) -> list[tuple[int, str]]:
    """Load the sentences to judge that still exist: those that hops selected, and those shown of explored passages.

    A plain search selects none, so all sentences of the passages that it found are judged.
    """
    if episode.strategy == "graph":
        hits = zip(episode.shown, episode.answer["passages"], strict=True)
        explored = [hit for passage, hit in hits if passage in episode.explored]
        named = [*episode.activated, *(row["sentence_id"] for hit in explored for row in hit["sentences"])]
        sentences = passages.sentences_by_id(reader, collection_id, named)
        return [(key, sentences[key].text) for key in named if key in sentences]
    ids = episode.shown
    ordered = sorted(passages.list_sentences(reader, collection_id, ids), key=lambda row: ids.index(row.passage_id))
    return [(sentence.id, sentence.text) for sentence in ordered]
