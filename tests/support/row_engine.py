"""The row-wise engine, an oracle for the column-wise one: one event after the other, one state at a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engram.core.learning import kalman, sufficiency_memory
from engram.core.learning.caps import JudgeStatements, add_statement, compute_allowed_gain, is_contested
from engram.core.learning.sentence_acceptance import compute_acceptance_noise, update_acceptance
from engram.core.learning.states import (
    CHANNELS,
    RECALL,
    TASK,
    Audit,
    Event,
    JudgedText,
    Support,
    Vector,
)
from engram.core.learning.steps import LabelledEvent
from engram.wings.published.core.memory_filter import normalise_directions, update_memories
from engram.wings.published.core.memory_states import SentenceMemory


@dataclass(frozen=True)
class SentenceObservation:
    """Observation of a text of a sentence by an event: y of GAM-RAG, Eq. 10, and its noise R > 0 of Eq. 11."""

    event: Event
    sentence_id: int
    target: int
    observation_noise: float
    text: JudgedText

    @property
    def noise(self) -> float:
        """The noise, the higher the less the sentence is like the text that was judged."""
        return self.observation_noise / self.text.likeness

    def audit(self, channel: str, gain: float, residual: float, before: float, after: float) -> Audit:
        """The audit of the state that it moved, by perplexity ``before`` and ``after``."""
        return Audit(
            self.event.id,
            self.sentence_id,
            channel,
            self.target,
            self.observation_noise,
            gain,
            residual,
            before,
            after,
            self.event.process_noise,
            self.text.revision,
            self.text.likeness,
        )


@dataclass
class RowEngine:
    """States by key, moved by each event that is applied.

    Attributes:
        memories: (sentence, channel) -> memory.
        supports: (question, sentence) -> support.
        audit: a row for each state and event, in the order of events.
        contested: events that contradict what other judges said of a sentence.
    """

    memories: dict[tuple[int, str], SentenceMemory]
    supports: dict[tuple[int, int], Support]
    audit: list[Audit]
    contested: set[int]

    @classmethod
    def begun(cls, bases: Mapping[tuple[int, str], Vector]) -> "RowEngine":
        """Begin with memories that no event moved."""
        return cls({key: SentenceMemory(*key, vector) for key, vector in bases.items()}, {}, [], set())

    def apply(self, statement: LabelledEvent, directions: Mapping[str, Vector]) -> None:
        """Apply one event to all states that it names.

        Args:
            directions: channel -> vector that its memories move along.
        """
        event = statement.event
        for sentence in sorted(statement.targets):
            if (sentence, TASK) not in self.memories:
                continue
            target = statement.targets[sentence]
            text = statement.texts.get(sentence, JudgedText())
            observation = SentenceObservation(event, sentence, target, statement.observation_noise(sentence), text)
            support = self.supports.get((event.question_id, sentence), Support(event.question_id, sentence))
            said = support.statements[text.revision] if text.revision < len(support.statements) else ()
            if is_contested(said, event.judge, target):
                self.contested.add(event.id)
            for channel in CHANNELS:
                if (sentence, channel) in self.memories and channel in directions:
                    memory, row = move_memory(
                        self.memories[sentence, channel],
                        said,
                        observation,
                        directions[channel],
                    )
                    self.memories[sentence, channel] = memory
                    self.audit.append(row)
            self.supports[event.question_id, sentence], row = move_support(support, said, observation)
            self.audit.append(row)

    def list_touched(self) -> dict[tuple[int, str], SentenceMemory]:
        """The memories that an event moved."""
        return {key: memory for key, memory in self.memories.items() if memory.update_count}


def apply_by_rows(
    events: Sequence[tuple[LabelledEvent, Mapping[str, Vector]]], bases: Mapping[tuple[int, str], Vector]
) -> RowEngine:
    """Apply events, each with its directions, in their order, from nothing."""
    engine = RowEngine.begun(bases)
    for event, directions in events:
        engine.apply(event, directions)
    return engine


def move_memory(
    memory: SentenceMemory, said: JudgeStatements, observation: SentenceObservation, direction: Vector
) -> tuple[SentenceMemory, Audit]:
    """Move a memory by one observation.

    Args:
        said: what judges said before of its sentence, for the event's question.
    """
    event = observation.event
    update = update_memories(
        memory.vector[None],
        np.array([memory.perplexity]),
        normalise_directions(direction[None]),
        np.array([float(observation.target)]),
        np.array([observation.noise]),
        np.array([event.process_noise]),
        most=np.array([_most(memory, said, observation)]),
    )
    gain, perplexity = float(update.gains[0]), float(update.perplexities[0])
    moved = replace(
        memory,
        vector=update.vectors[0],
        perplexity=perplexity,
        update_count=memory.update_count + 1,
        gain_budget=memory.gain_budget.start_day(event.day).spend(event.judge, gain),
    )
    residual = float(update.residuals[0])
    return moved, observation.audit(memory.channel, gain, residual, memory.perplexity, perplexity)


def move_support(
    support: Support, said: JudgeStatements, observation: SentenceObservation
) -> tuple[Support, Audit]:
    """Move a support by one observation; ``said``: what judges said before of the same text."""
    event, revision = observation.event, observation.text.revision
    texts = [*support.statements, *[()] * (revision + 1 - len(support.statements))]
    texts[revision] = add_statement(said, event.judge, observation.target)
    target = np.array([float(observation.target)])
    update = kalman.update_supports(
        np.array([support.support]),
        np.array([support.perplexity]),
        target,
        np.array([observation.noise]),
        np.array([event.process_noise]),
        most=np.array([_most(support, said, observation)]),
    )
    acceptance = update_acceptance(
        np.array([support.acceptance]),
        np.array([support.perplexity]),
        targets=target,
        gains=update.gains,
        noise=compute_acceptance_noise(np.array([observation.observation_noise]), np.array([event.noise]))
        / observation.text.likeness,
        caps=np.array([event.share]),
    )
    answered, sufficiency = sufficiency_memory.update_sufficiency(
        np.array([support.answered]),
        np.array([support.sufficiency]),
        targets=target,
        gains=update.gains,
        judged=np.array([event.sufficiency], dtype=np.float64) * observation.text.likeness,
        complete=np.array([event.complete]),
    )
    gain, perplexity = float(update.gains[0]), float(update.perplexities[0])
    moved = replace(
        support,
        support=float(update.supports[0]),
        perplexity=perplexity,
        acceptance=float(acceptance[0]),
        update_count=support.update_count + 1,
        complete=event.complete,
        gain_budget=support.gain_budget.start_day(event.day).spend(event.judge, gain),
        statements=tuple(texts),
        answered=float(answered[0]),
        sufficiency=float(sufficiency[0]),
    )
    residual = float(update.residuals[0])
    return moved, observation.audit(RECALL, gain, residual, support.perplexity, perplexity)


def _most(state: SentenceMemory | Support, said: JudgeStatements, observation: SentenceObservation) -> float:
    event: Event = observation.event
    return compute_allowed_gain(
        state.gain_budget.start_day(event.day),
        said,
        event.judge,
        observation.target,
        share=event.share,
        contested_share=event.contested_share,
    )
