"""What a batch of verdicts moves: sentence memories, and how well sentences support the questions asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from app.core import kalman
from app.core.caps import contested, with_word
from app.core.kalman import Floats, MemoryUpdate, SupportUpdate
from app.services.learning.noise import Noise
from app.services.log import replay
from app.storage.database import Writer
from app.storage.learning import experience, memories
from app.storage.learning.experience import Support
from app.storage.learning.memories import AuditRow, Memory
from app.storage.log.feedback import PendingEvent, Vector

RECALL = "recall"

Targets = Mapping[int, Mapping[int, int]]
"""Event -> sentence -> y, see ``LoggedVerdict.targets``."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a verdict says of a sentence, and what the question knew of it before."""

    target: int
    support: Support


@dataclass(frozen=True, slots=True)
class Observed:
    """What an event says of n states, before they move; all (n,)."""

    targets: Floats
    perplexities: Floats
    noise: Floats
    most: Floats


class Batch:
    """One batch: lock everything in order, update in memory event by event, write once.

    Locks are taken in the same order by everyone, questions by hash and then sentences by id, so two batches
    that share state wait for each other instead of deadlocking.
    """

    def __init__(
        self,
        writer: Writer,
        collection_id: int,
        noises: Mapping[int, Noise],
        events: Sequence[PendingEvent],
        targets: Targets,
    ) -> None:
        self._writer = writer
        self._collection_id = collection_id
        self._noises = noises
        self._events = events
        self._targets = targets
        self.contested: set[int] = set()
        """Events that go against what other judges said of a sentence, once it has run."""

    def run(self) -> tuple[dict[int, int], list[AuditRow]]:
        """Move every state the events speak of; event -> the question that it taught, and what moved."""
        questions = self._lock_questions()
        states = self._lock_memories()
        alive = {sentence for sentence, _ in states}
        taught = sorted(set(questions.values()))
        known = experience.supports_of(self._writer, self._collection_id, taught, sorted(alive))
        supports = {(support.question_id, support.sentence_id): support for support in known}
        touched: set[tuple[int, int]] = set()
        audit: list[AuditRow] = []
        for event in self._events:
            question = questions[event.id]
            judged = {
                s: Judged(y, supports.get((question, s)) or Support(question, s))
                for s, y in sorted(self._targets[event.id].items())
                if s in alive
            }
            if any(contested(one.support.said, event.judge, one.target) for one in judged.values()):
                self.contested.add(event.id)
            audit += self._move_memories(event, states, judged, "task", event.embedding)
            if event.time_embedding is not None:
                audit += self._move_memories(event, states, judged, "time", event.time_embedding)
            moved = self._move_supports(event, supports, judged)
            touched.update((question, row.sentence_id) for row in moved)
            audit += moved
        memories.store(self._writer, self._collection_id, list(states.values()))
        experience.store_supports(self._writer, self._collection_id, [supports[at] for at in sorted(touched)])
        return questions, audit

    def _lock_questions(self) -> dict[int, int]:
        hashed = {event.id: replay.question_hash(event.question) for event in self._events}
        first: dict[bytes, tuple[str, Vector]] = {}
        for event in self._events:
            first.setdefault(hashed[event.id], (event.question, event.embedding))
        locked = experience.lock_questions(self._writer, self._collection_id, first)
        return {event: locked[key] for event, key in hashed.items()}

    def _lock_memories(self) -> dict[tuple[int, str], Memory]:
        judged = {sentence for targets in self._targets.values() for sentence in targets}
        timed = {
            sentence
            for event in self._events
            if event.time_embedding is not None
            for sentence in self._targets[event.id]
        }
        locked = memories.lock(self._writer, self._collection_id, sorted(judged), sorted(timed))
        return {(memory.sentence_id, memory.channel): memory for memory in locked}

    def _move_memories(
        self,
        event: PendingEvent,
        states: dict[tuple[int, str], Memory],
        judged: Mapping[int, Judged],
        channel: str,
        direction: np.ndarray,
    ) -> list[AuditRow]:
        noise = self._noises[event.id]
        held = [sentence for sentence in judged if (sentence, channel) in states]
        if not held or channel in noise.frozen:
            return []
        before = [states[sentence, channel] for sentence in held]
        said = [judged[sentence] for sentence in held]
        observed = self._observed(event, said, before)
        update = kalman.update_memories(
            np.stack([memory.vector for memory in before]),
            observed.perplexities,
            direction,
            observed.targets,
            observed.noise,
            noise.process,
            most=observed.most,
        )
        for at, memory in enumerate(before):
            states[memory.sentence_id, channel] = replace(
                memory,
                vector=update.vectors[at],
                perplexity=float(update.perplexities[at]),
                update_count=memory.update_count + 1,
                pulled=memory.pulled.on(event.day).after(event.judge, float(update.gains[at])),
            )
        return self._rows(event, channel, said, observed, update)

    def _move_supports(
        self, event: PendingEvent, supports: dict[tuple[int, int], Support], judged: Mapping[int, Judged]
    ) -> list[AuditRow]:
        """The question's own state.

        A rejection counts also where nothing ever supported the sentence: it recalls nothing, but the surer the
        state, the less a later verdict that errs can move it.
        """
        noise = self._noises[event.id]
        if not judged or RECALL in noise.frozen:
            return []
        said = list(judged.values())
        before = [one.support for one in said]
        observed = self._observed(event, said, before)
        update = kalman.update_supports(
            np.array([support.support for support in before]),
            observed.perplexities,
            observed.targets,
            observed.noise,
            noise.process,
            most=observed.most,
        )
        complete = event.verdict.complete
        for at, support in enumerate(before):
            supports[support.question_id, support.sentence_id] = replace(
                support,
                support=float(update.supports[at]),
                perplexity=float(update.perplexities[at]),
                update_count=support.update_count + 1,
                complete=complete,
                pulled=support.pulled.on(event.day).after(event.judge, float(update.gains[at])),
                said=with_word(support.said, event.judge, said[at].target),
            )
        return self._rows(event, RECALL, said, observed, update)

    def _observed(
        self, event: PendingEvent, said: Sequence[Judged], states: Sequence[Memory | Support]
    ) -> Observed:
        """What the event says of states, those of the sentences ``said``, and how far it may move each."""
        noise = self._noises[event.id]
        confidence = event.verdict.confidence
        perplexities = [state.perplexity for state in states]
        return Observed(
            targets=np.array([float(one.target) for one in said]),
            perplexities=np.array(perplexities),
            noise=np.array(
                [noise.of(one.target, confidence, pi) for one, pi in zip(said, perplexities, strict=True)]
            ),
            most=np.array(
                [
                    replay.most_of(
                        state.pulled.on(event.day),
                        one.support.said,
                        event.judge,
                        one.target,
                        noise.share,
                        noise.contested,
                    )
                    for one, state in zip(said, states, strict=True)
                ]
            ),
        )

    def _rows(
        self,
        event: PendingEvent,
        channel: str,
        said: Sequence[Judged],
        observed: Observed,
        update: MemoryUpdate | SupportUpdate,
    ) -> list[AuditRow]:
        return [
            AuditRow(
                event.id,
                one.support.sentence_id,
                channel,
                one.target,
                float(observed.noise[at]),
                float(update.gains[at]),
                float(update.residuals[at]),
                float(observed.perplexities[at]),
                float(update.perplexities[at]),
                self._noises[event.id].process,
            )
            for at, one in enumerate(said)
        ]
