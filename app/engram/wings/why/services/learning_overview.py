"""Overview of a collection's learning, and a preview of it without one verdict. Nothing is changed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, islice

from engram.core.learning import state_replay as core
from engram.core.learning.state_replay import Step
from engram.core.learning.states import PERPLEXITY_BEFORE_VERDICTS, RECALL, SUPPORT_BEFORE_VERDICTS
from engram.services.auth.scope import Scope
from engram.services.feedback_log import log_replay
from engram.storage.corpus import collections
from engram.storage.corpus.collections import VERDICT
from engram.storage.database import Database, Reader
from engram.storage.feedback_log import audit_rows, feedback_events
from engram.wings.published.core.memory_replay import replay_memories
from engram.wings.published.services import memory_rewriting
from engram.wings.published.storage import memory_history
from engram.wings.why.storage import learning_history
from engram.wings.why.storage.learning_history import MovedState, Span

PARTS = 60
"""Into which the time is divided."""
SENTENCES = 100
"""Of a verdict, whose states are computed without it: bounds time."""
STEPS = 4_000
"""Of all these states, that are read: bounds time and memory."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Counts after a verdict was applied.

    Attributes:
        verdicts, states: that there were by then.
        perplexity: the mean of the memories that verdicts moved, in [0, 1]; None where none was.
    """

    at: datetime
    verdicts: int
    states: int
    perplexity: float | None


@dataclass(frozen=True, slots=True)
class LearningSummary:
    """Learning of a collection up to a moment, by the counting verdicts.

    Attributes:
        course: in order of time, ``PARTS`` moments at most.
        memories: those moved last, the latest first.
    """

    verdicts: int
    states: int
    perplexity: float | None
    course: Sequence[Moment]
    memories: Sequence[MovedState]


@dataclass(frozen=True, slots=True)
class StateWithout:
    """A state as it stands, and as it would stand without a verdict.

    Attributes:
        channel: "task" or "time", a memory; "recall", the support of the verdict's question.
        likeness, without_likeness: cosine of the memory with the verdict's question, or the time it asks for; of
            "recall" the support.
    """

    sentence_id: int
    text: str
    passage_id: str
    title: str | None
    channel: str
    perplexity: float
    without_perplexity: float
    likeness: float
    without_likeness: float


@dataclass(frozen=True, slots=True)
class RevocationPreview:
    """Effects of revoking a verdict.

    Attributes:
        states: none of a verdict that is not applied; of the first ``SENTENCES`` sentences that it speaks of.
        cut: whether there are more.
        models: "sufficiency", "reranker" and "round", those whose weights would lose its term.
    """

    event_id: int
    judge: str
    status: str
    states: Sequence[StateWithout]
    cut: bool
    models: Sequence[str]


class LearningOverviewService:
    """Reads the log as a whole."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def summarise_learning(self, scope: Scope, until: datetime | None, limit: int) -> LearningSummary:
        """Summarise the learning until ``until``, None for now, with at most ``limit`` memories."""
        target = scope.collection.id
        with self._database.snapshot() as reader:
            course = _course(learning_history.spans(reader, target, until, PARTS))
            memories = learning_history.list_moved_states(reader, target, until, limit)
        last = course[-1] if course else None
        return LearningSummary(
            verdicts=last.verdicts if last else 0,
            states=last.states if last else 0,
            perplexity=last.perplexity if last else None,
            course=course,
            memories=memories,
        )

    def preview_revocation(self, scope: Scope, event_id: int) -> RevocationPreview:
        """Preview the revocation of the event.

        Raises:
            NotFoundError: there is no such event, or it is not for this principal to see.
        """
        target = scope.collection
        with self._database.snapshot() as reader:
            event = feedback_events.find(reader, target.id, event_id)
            if event is None or not scope.sees(event.principal):
                raise collections.build_missing_resource_error(VERDICT, event_id)
            sentences = sorted(
                {row.sentence_id for row in audit_rows.read(reader, target.id, [event_id])[event_id]}
            )
            states, cut = _compute_states_without(reader, target.id, event_id, sentences[:SENTENCES])
            models = learning_history.list_taught_models(reader, target.id, event_id)
        return RevocationPreview(
            event_id, event.judge, event.status, states, cut or len(sentences) > SENTENCES, models
        )


def _course(spans: Sequence[Span]) -> list[Moment]:
    """Sums from the beginning; a state that is new starts from perplexity 1."""
    verdicts = accumulate(span.verdicts for span in spans)
    states = accumulate(span.states for span in spans)
    changes = accumulate(span.change for span in spans)
    return [
        Moment(span.ended_at, count, moved, 1 + change / moved if moved else None)
        for span, count, moved, change in zip(spans, verdicts, states, changes, strict=True)
    ]


def _compute_states_without(
    reader: Reader, collection_id: int, event_id: int, sentences: Sequence[int]
) -> tuple[list[StateWithout], bool]:
    """The states that the event moved, as they are and without it; and whether some were too much to read."""
    names = learning_history.find_names(reader, collection_id, sentences)
    alive = sorted(names)
    moves, more = _read(memory_rewriting.read_steps(reader, collection_id, alive) if alive else ())
    own = [step for step in moves if step.event.id == event_id]
    directions = {step.recorded.channel: step.direction for step in own}
    bases = memory_history.load_bases(reader, collection_id, alive) if alive else {}
    begun = {
        (sentence, channel): (1.0, float(bases[sentence, channel] @ direction))
        for sentence in alive
        for channel, direction in directions.items()
        if direction is not None and (sentence, channel) in bases
    }
    states_without: dict[tuple[int, str], dict[int | None, tuple[float, float]]] = {}
    for done in replay_memories(bases, moves, {event_id}):
        memory, direction = done.state, directions.get(done.state.channel)
        if direction is not None:
            ways = states_without.setdefault((memory.sentence_id, memory.channel), {})
            ways[done.without] = (memory.perplexity, float(memory.vector @ direction))
    questions = sorted({step.event.question_id for step in own})
    words, further = _read(log_replay.support_steps(reader, collection_id, questions, alive) if questions else ())
    for support in core.replay_supports(words, {event_id}):
        state = support.state
        ways = states_without.setdefault((state.sentence_id, RECALL), {})
        ways[support.without] = (state.perplexity, state.support)
    touched = {(step.recorded.sentence_id, step.recorded.channel) for step in [*moves, *words]
               if step.event.id == event_id}  # fmt: skip
    begun |= {(sentence, RECALL): (PERPLEXITY_BEFORE_VERDICTS, SUPPORT_BEFORE_VERDICTS) for sentence in alive}
    states = []
    for sentence, channel in sorted(states_without.keys() & touched):
        ways = states_without[sentence, channel]
        now = ways[None]
        without = ways.get(event_id, begun.get((sentence, channel), (1.0, 0.0)))
        name = names[sentence]
        states.append(
            StateWithout(
                sentence, name.text, name.passage_id, name.title, channel, now[0], without[0], now[1], without[1]
            )
        )
    return states, more or further


def _read(steps: Iterable[Step]) -> tuple[list[Step], bool]:
    """Read as many steps as fit, without those of a last sentence that may have more."""
    read = list(islice(steps, STEPS + 1))
    if len(read) <= STEPS:
        return read, False
    last = read[-1].recorded.sentence_id
    return [step for step in read if step.recorded.sentence_id != last], True
