"""Steps of learning: apply a batch of verdicts to all states that they name.

Applying them together gives the bits that applying one after the other gives. All of it is in columns, because a
batch names thousands of states.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from engram.core.filter.caps import TextStatements
from engram.core.filter.gain_budget import Ids
from engram.core.filter.observations import (
    Directions,
    Observations,
    add_text_judgements,
    move_memories,
    move_supports,
)
from engram.core.filter.state_rows import MemoryRows, SupportRows
from engram.core.filter.states import AUDITED, CHANNELS, RECALL, TASK, AuditRows, Event, JudgedText, Vector

NO_PLACE = -1


@dataclass(frozen=True, slots=True)
class LabelledEvent:
    """A verdict as the filter applies it: the event, and the label of each sentence.

    Attributes:
        targets: sentence -> y. A sentence without a task memory was deleted and is left alone.
        directions: channel -> vector that its memories move along, (d,); a channel without one is left alone.
        noise: R of a rejection, and R of a support.
        probabilities: sentence -> probability that the event says something of it, in (0, 1]; 1 for others. R is
            divided by it: silence says less about a sentence that perhaps nobody saw, and so does the support of a
            whole passage, of which another sentence may have helped.
        texts: sentence -> the text that was judged, of those that were revised.
    """

    event: Event
    targets: Mapping[int, int]
    directions: Mapping[str, Vector]
    noise: tuple[float, float]
    probabilities: Mapping[int, float] = field(default_factory=dict)
    texts: Mapping[int, JudgedText] = field(default_factory=dict)

    def observation_noise(self, sentence: int) -> float:
        """Return R of what the event says of a sentence, above 0.

        Raises:
            ValueError: the sentence's probability is out of its range.
        """
        probability = self.probabilities.get(sentence, 1.0)
        if not 0.0 < probability <= 1.0:
            raise ValueError("an examination probability must lie in (0, 1]")
        return self.noise[self.targets[sentence]] / probability


@dataclass(frozen=True, slots=True)
class BatchObservations:
    """Observations of a batch of events.

    Attributes:
        memory_observations: observations of the memories, along ``directions``.
        supports: the given supports, and new ones for what had none, by question and sentence.
        support_observations: observations of ``supports``.
        statements: judges' last words on each text of each support's sentence, after the batch.
        contested: events that contradict what other judges said of a sentence.
    """

    memory_observations: Observations
    directions: Directions
    supports: SupportRows
    support_observations: Observations
    statements: Sequence[TextStatements]
    contested: frozenset[int]


@dataclass(frozen=True, slots=True)
class MovedStates:
    """States that events moved.

    Attributes:
        memories: the states after the last event that moved them, in the order given.
        supports: the same, by question and sentence.
        audit: a row for each state and event.
        contested: events that contradict what other judges said of a sentence.
    """

    memories: MemoryRows
    supports: SupportRows
    audit: AuditRows
    contested: frozenset[int]


LearningRule = Callable[[Sequence[LabelledEvent], MemoryRows, SupportRows], MovedStates]
"""Rule by which events move states: ``apply_statements``, or another one to compare it with."""


def apply_statements(
    statements: Sequence[LabelledEvent], memories: MemoryRows, supports: SupportRows
) -> MovedStates:
    """Apply events in the given order to all states that they name.

    A rejection counts also where nothing ever supported the sentence: it recalls nothing, but the surer the state,
    the less a later verdict that errs can move it.

    Args:
        supports: a question and a sentence that have none here begin a new one.

    Raises:
        ValueError: a value is out of its range.
    """
    return apply_observations(build_observations(statements, memories, supports), memories)


def apply_observations(observed: BatchObservations, memories: MemoryRows) -> MovedStates:
    """Move the states that a batch observes.

    Args:
        memories: those that ``build_observations`` was called with.

    Raises:
        ValueError: a value is out of its range.
    """
    moved_memories, memory_audit = move_memories(memories, observed.memory_observations, observed.directions)
    moved_supports, support_audit = move_supports(
        observed.supports, observed.support_observations, observed.statements
    )
    audit = AuditRows.concatenate([memory_audit, support_audit])
    return MovedStates(moved_memories, moved_supports, audit, observed.contested)


def build_observations(
    statements: Sequence[LabelledEvent], memories: MemoryRows, supports: SupportRows
) -> BatchObservations:
    """Make the observations of events, in the given order: see ``apply_statements``.

    Raises:
        ValueError: an examination probability is out of its range.
    """
    places: tuple[dict[int, int], ...] = tuple({} for _ in CHANNELS)
    for at, (sentence, channel) in enumerate(
        zip(memories.sentence_ids.tolist(), memories.channels.tolist(), strict=True)
    ):
        places[channel][sentence] = at
    events = [statement.event for statement in statements]
    named = [sorted(statement.targets.keys() & places[CHANNELS.index(TASK)].keys()) for statement in statements]
    pairs = list(zip(statements, named, strict=True))
    at_event = np.repeat(np.arange(len(statements)), [len(own) for own in named])
    sentences = [sentence for own in named for sentence in own]
    targets = [statement.targets[sentence] for statement, own in pairs for sentence in own]
    probabilities = np.ones(len(sentences))
    if any(statement.probabilities for statement in statements):
        named_probabilities = (statement.probabilities.get(one, 1.0) for statement, own in pairs for one in own)
        probabilities = np.fromiter(named_probabilities, np.float64, len(sentences))
    if np.any(~((probabilities > 0.0) & (probabilities <= 1.0))):
        raise ValueError("an examination probability must lie in (0, 1]")
    unrevised = JudgedText()
    texts = [statement.texts.get(sentence, unrevised) for statement, own in pairs for sentence in own]
    revisions = [text.revision for text in texts]
    noise = np.array([statement.noise for statement in statements]).reshape(-1, 2)[at_event, _ids(targets)]

    questions = [events[at].question_id for at in at_event.tolist()]
    keys = list(zip(questions, sentences, strict=True))
    supports = supports.merge(SupportRows.build_initial(sorted(set(keys) - _places(supports).keys())))
    place_of = _places(supports)
    states, spoken_statements = [place_of[key] for key in keys], [*supports.statements]
    judges = [events[at].judge for at in at_event.tolist()]
    support_observations = Observations(
        events=events,
        event_places=at_event,
        states=_ids(states),
        sentence_ids=_ids(sentences),
        channels=np.full(len(sentences), AUDITED.index(RECALL)),
        targets=_ids(targets),
        noise=noise / probabilities,
        revisions=_ids(revisions),
        likeness=np.array([text.likeness for text in texts], dtype=np.float64),
        opposed=add_text_judgements(spoken_statements, states, revisions, judges, targets),
    )
    contested = {events[at].id for at in at_event[support_observations.opposed].tolist()}
    return BatchObservations(
        *_build_memory_observations(statements, support_observations, places),
        supports,
        support_observations,
        spoken_statements,
        frozenset(contested),
    )


def _build_memory_observations(
    statements: Sequence[LabelledEvent], judged: Observations, places: Sequence[Mapping[int, int]]
) -> tuple[Observations, Directions]:
    """Build the observations of memories.

    Args:
        judged: a row for each event and sentence.
        places: for each channel: sentence -> place of its memory.
    """
    directions: list[Vector] = []
    rows_judged, states, channels, rows = list[Ids](), list[Ids](), list[Ids](), list[Ids]()
    for channel, there in zip(CHANNELS, places, strict=True):
        row_of = np.full(len(statements), NO_PLACE)
        for at, statement in enumerate(statements):
            if channel in statement.directions:
                row_of[at] = len(directions)
                directions.append(statement.directions[channel])
        own = _ids(there.get(sentence, NO_PLACE) for sentence in judged.sentence_ids.tolist())
        row = row_of[judged.event_places]
        moving = np.flatnonzero((own != NO_PLACE) & (row != NO_PLACE))
        rows_judged.append(moving)
        states.append(own[moving])
        channels.append(np.full(len(moving), AUDITED.index(channel)))
        rows.append(row[moving])
    moving_rows = np.concatenate(rows_judged)
    observed = replace(judged.select(moving_rows), states=np.concatenate(states), channels=np.concatenate(channels))
    return observed, Directions(directions, np.concatenate(rows))


def _places(supports: SupportRows) -> dict[tuple[int, int], int]:
    """(Question, sentence) -> place."""
    keys = zip(supports.question_ids.tolist(), supports.sentence_ids.tolist(), strict=True)
    return {key: place for place, key in enumerate(keys)}


def _ids(values: Iterable[int]) -> Ids:
    return np.fromiter(values, np.int64)
