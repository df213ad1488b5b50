"""Explanations of sentence memories: their first and present vectors, and the events that moved them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from engram.context.errors import NotFoundError
from engram.core.learning.states import Vector
from engram.services.auth.scope import Scope
from engram.services.encoders.encoder import Encoder
from engram.storage.corpus import current_vectors
from engram.storage.database import Database
from engram.wings.why.core.influence import compute_similarity_after
from engram.wings.why.storage import sentence_history, standing_memories
from engram.wings.why.storage.sentence_history import FoundSentence, MemoryMoveRow, QuestionSupport
from engram.wings.why.storage.standing_memories import StoredMemory

SUPPORTS = 100
"""Questions that are shown of a sentence, those it supports most surely."""


@dataclass(frozen=True, slots=True)
class ChannelView:
    """A channel of a sentence's memory as it stands.

    Attributes:
        base_similarity, similarity: cosine of what it began as, and of it, with the text asked for, if any.
    """

    channel: str
    perplexity: float
    update_count: int
    base_similarity: float | None
    similarity: float | None


@dataclass(frozen=True, slots=True)
class MemoryMove:
    """Effect of one event on one channel, "task", "time" or "recall".

    ``similarity_before`` and ``similarity_after`` are cosines of memory and question as they were then; for
    "recall" they are the support, which is what stands for a similarity there.

    Attributes:
        target: y, 1 for a verdict that supports the sentence, else 0.
        similarity_now: the same of the memory as it stands; None for "recall".
    """

    channel: str
    target: int
    gain: float
    residual: float
    perplexity_before: float
    perplexity_after: float
    similarity_before: float
    similarity_after: float
    similarity_now: float | None


@dataclass(frozen=True, slots=True)
class SentenceEvent:
    """An event that counts and what it did to a sentence; ``sequence`` is its place in the order of application."""

    sequence: int
    event_id: int
    judge: str
    query_id: UUID
    question: str
    applied_at: datetime
    moves: Sequence[MemoryMove]


@dataclass(frozen=True, slots=True)
class SentenceView:
    """Memory of a sentence, with a page of its events.

    Attributes:
        supports: ``SUPPORTS`` at most, of ``support_count``.
        next_after: sequence to go on after; None at the end.
    """

    sentence: FoundSentence
    collection: str
    channels: Sequence[ChannelView]
    supports: Sequence[QuestionSupport]
    support_count: int
    events: Sequence[SentenceEvent]
    next_after: int | None


class ExplanationService:
    """Reads learned state and changes none of it."""

    def __init__(self, database: Database, encoder: Encoder) -> None:
        self._database = database
        self._encoder = encoder

    def memories(self, scope: Scope, sentences: Sequence[int]) -> dict[int, dict[str, StoredMemory]]:
        """Sentence -> channel ("task", "time") -> its memory; sentences that do not exist are left out."""
        with self._database.read() as reader:
            memories = standing_memories.load_standing(reader, scope.collection.id, sentences)
        states: dict[int, dict[str, StoredMemory]] = {}
        for state in memories:
            states.setdefault(state.sentence_id, {})[state.channel] = state
        return states

    def sentence(
        self, scope: Scope, sentence: int, query: str | None = None, *, after: int = 0, limit: int = 100
    ) -> SentenceView:
        """Show the memory of a sentence and the next ``limit`` events after ``after`` that moved it.

        Args:
            query: a text to tell how near the memory is to.
            after: sequence of the last event seen.

        Raises:
            NotFoundError: there is no such sentence.
            EmbeddingSpaceMismatchError: there is a ``query``, and the collection's vectors are of another encoder.
        """
        target = scope.collection
        towards = None if query is None else self.direction(scope, query)
        with self._database.snapshot() as reader:
            if towards is not None:
                current_vectors.check_space(reader, target)
            sentence_row = sentence_history.load_sentence(reader, target.id, sentence)
            if sentence_row is None:
                raise NotFoundError(f"There is no sentence {sentence} in collection {target.name!r}.")
            standing = standing_memories.load_standing(reader, target.id, [sentence])
            supports, support_count = sentence_history.supports(reader, target.id, sentence, SUPPORTS)
            rows = sentence_history.moves(reader, target.id, sentence, after, limit + 1)
        events = [_event(list(group)) for _, group in groupby(rows, key=lambda row: row.sequence)]
        page = events[:limit]
        return SentenceView(
            sentence=sentence_row,
            collection=target.name,
            channels=[_channel(state, towards) for state in standing],
            supports=supports,
            support_count=support_count,
            events=page,
            next_after=page[-1].sequence if len(events) > limit else None,
        )

    def direction(self, scope: Scope, question: str) -> Vector:
        """The unit vector, (d,), along which verdicts on a question move the collection's task memories.

        Raises:
            InvalidRequestError: the question has too many tokens.
            EmbeddingSpaceMismatchError: the collection's vectors are of another encoder.
        """
        self._encoder.check_question(question)
        vector: Vector = self._encoder.embed_questions(scope.collection, [question])[0]
        return vector


def _channel(state: StoredMemory, towards: Vector | None) -> ChannelView:
    return ChannelView(
        channel=state.channel,
        perplexity=state.perplexity,
        update_count=state.update_count,
        base_similarity=None if towards is None else float(state.base @ towards),
        similarity=None if towards is None else float(state.vector @ towards),
    )


def _event(rows: Sequence[MemoryMoveRow]) -> SentenceEvent:
    first = rows[0]
    return SentenceEvent(
        first.sequence,
        first.event_id,
        first.judge,
        first.query_id,
        first.question,
        first.applied_at,
        [_move(row) for row in rows],
    )


def _move(row: MemoryMoveRow) -> MemoryMove:
    """The audit says what the prediction was, y - residual, and that says all of what the step did along it."""
    before = row.target - row.residual
    recall = row.channel == "recall"
    return MemoryMove(
        channel=row.channel,
        target=row.target,
        gain=row.gain,
        residual=row.residual,
        perplexity_before=row.perplexity_before,
        perplexity_after=row.perplexity_after,
        similarity_before=before,
        similarity_after=before + row.gain * row.residual
        if recall
        else compute_similarity_after(before, row.gain, row.residual),
        similarity_now=row.similarity_now,
    )
