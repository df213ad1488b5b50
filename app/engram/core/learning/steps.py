"""Steps of learning: apply a batch of verdicts to the supports of all sentences that they name.

Applying them together gives the bits that applying one after the other gives. All of it is in columns, because a
batch names thousands of states.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from engram.core.learning.caps import Ids, TextStatements
from engram.core.learning.observations import Observations, add_text_judgements, move_supports
from engram.core.learning.state_rows import SupportRows
from engram.core.learning.states import AUDITED, RECALL, AuditRows, Event, JudgedText


@dataclass(frozen=True, slots=True)
class LabelledEvent:
    """A verdict as the filter applies it: the event, and the label of each sentence.

    Attributes:
        targets: sentence -> y. A sentence that was deleted is left alone.
        probabilities: sentence -> probability that the event says something of it, in (0, 1]; 1 for others. R is
            divided by it: silence says less about a sentence that perhaps nobody saw, and so does the support of a
            whole passage, of which another sentence may have helped.
        texts: sentence -> the text that was judged, of those that were revised.
    """

    event: Event
    targets: Mapping[int, int]
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
        return self.event.noise[self.targets[sentence]] / probability


@dataclass(frozen=True, slots=True)
class BatchObservations:
    """Observations of a batch of events.

    Attributes:
        events: the batch, in the order of application.
        supports: the given supports, and new ones for what had none, by question and sentence.
        observations: of ``supports``, one for each event and sentence.
        statements: judges' last words on each text of each support's sentence, after the batch.
        contested: events that contradict what other judges said of a sentence.
    """

    events: Sequence[LabelledEvent]
    supports: SupportRows
    observations: Observations
    statements: Sequence[TextStatements]
    contested: frozenset[int]


@dataclass(frozen=True, slots=True)
class MovedSupports:
    """Supports that events moved.

    Attributes:
        supports: as the last event that moved them left them, by question and sentence.
        audit: a row for each support and event.
        observed: what moved them.
    """

    supports: SupportRows
    audit: AuditRows
    observed: BatchObservations


LearningRule = Callable[[Sequence[LabelledEvent], Collection[int], SupportRows], MovedSupports]
"""Rule by which events move supports: ``apply_events``, or another one to compare it with."""


def apply_events(
    events: Sequence[LabelledEvent], sentences: Collection[int], supports: SupportRows
) -> MovedSupports:
    """Apply events in the given order to all supports that they name.

    A rejection counts also where nothing ever supported the sentence: it recalls nothing, but the surer the state,
    the less a later verdict that errs can move it.

    Args:
        sentences: those that exist; others are left alone.
        supports: a question and a sentence that have none here begin a new one.

    Raises:
        ValueError: a value is out of its range.
    """
    observed = observe_supports(events, sentences, supports)
    return MovedSupports(*move_supports(observed.supports, observed.observations, observed.statements), observed)


def observe_supports(
    labelled: Sequence[LabelledEvent], existing: Collection[int], supports: SupportRows
) -> BatchObservations:
    """Make the observations of events, in the given order: see ``apply_events``.

    Raises:
        ValueError: an examination probability is out of its range.
    """
    existing = frozenset(existing)
    events = [one.event for one in labelled]
    named = [sorted(one.targets.keys() & existing) for one in labelled]
    pairs = list(zip(labelled, named, strict=True))
    at_event = np.repeat(np.arange(len(labelled)), [len(own) for own in named])
    sentences = [sentence for own in named for sentence in own]
    targets = [one.targets[sentence] for one, own in pairs for sentence in own]
    probabilities = np.ones(len(sentences))
    if any(one.probabilities for one in labelled):
        named_probabilities = (one.probabilities.get(sentence, 1.0) for one, own in pairs for sentence in own)
        probabilities = np.fromiter(named_probabilities, np.float64, len(sentences))
    if np.any(~((probabilities > 0.0) & (probabilities <= 1.0))):
        raise ValueError("an examination probability must lie in (0, 1]")
    unrevised = JudgedText()
    texts = [one.texts.get(sentence, unrevised) for one, own in pairs for sentence in own]
    revisions = [text.revision for text in texts]
    noise = np.array([event.noise for event in events]).reshape(-1, 2)[at_event, _ids(targets)]

    questions = [events[at].question_id for at in at_event.tolist()]
    keys = list(zip(questions, sentences, strict=True))
    supports = supports.merge(SupportRows.build_initial(sorted(set(keys) - _places(supports).keys())))
    place_of = _places(supports)
    states, spoken_statements = [place_of[key] for key in keys], [*supports.statements]
    judges = [events[at].judge for at in at_event.tolist()]
    observations = Observations(
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
    contested = frozenset(events[at].id for at in at_event[observations.opposed].tolist())
    return BatchObservations(labelled, supports, observations, spoken_statements, contested)


def _places(supports: SupportRows) -> dict[tuple[int, int], int]:
    """(Question, sentence) -> place."""
    keys = zip(supports.question_ids.tolist(), supports.sentence_ids.tolist(), strict=True)
    return {key: place for place, key in enumerate(keys)}


def _ids(values: Iterable[int]) -> Ids:
    return np.fromiter(values, np.int64)
