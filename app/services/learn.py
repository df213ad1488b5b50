"""Learning from verdicts: accept an event once, apply it once, in one transaction with its audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import structlog

from app.core import kalman
from app.errors import UnavailableError, is_out_of_reach
from app.services import replay
from app.services.attribution import Attribution
from app.services.evolve import EvolveService
from app.services.prior import RankingPrior
from app.storage import collections, experience, feedback, memories, passages, weights
from app.storage.database import Database, Writer
from app.storage.feedback import PendingEvent
from app.storage.memories import AuditRow, Memory
from app.storage.weights import WeightTerm

log = structlog.get_logger(__name__)

RECALL = "recall"
WEIGHTS = "weights"
KEYS = "keys"
# Support, perplexity, update count and completeness of a sentence nobody judged for a question.
UNKNOWN = (0.0, 1.0, 0, False)

Targets = Mapping[int, Mapping[int, int]]
"""Event -> sentence -> y, see ``replay.targets_of``."""


@dataclass(frozen=True, slots=True)
class Noise:
    """The filter's constants: R_pos, R_neg and Q (GAM-RAG, Appendix C).

    The other two are for ablations: ``fixed_gain`` moves every state by the same share whatever its perplexity,
    ``frozen`` names scopes ("task", "time", "recall", "weights", "keys") that verdicts leave alone.
    """

    positive: float
    negative: float
    process: float
    fixed_gain: float | None = None
    frozen: frozenset[str] = frozenset()

    def of(self, target: int, confidence: float, perplexity: float = 1.0) -> float:
        """Observation noise of a verdict: R over the judge's confidence, which lies in (0, 1]."""
        if self.fixed_gain is not None:  # the R at which K = π / (π + R) is the fixed gain
            return perplexity * (1.0 - self.fixed_gain) / self.fixed_gain
        return (self.positive if target else self.negative) / confidence


class LearnService:
    """Applies accepted verdicts to memories and supports; what the feedback worker runs."""

    def __init__(
        self,
        database: Database,
        noise: Noise,
        prior: RankingPrior,
        attribution: Attribution,
        evolve: EvolveService,
        *,
        max_attempts: int,
    ) -> None:
        self._database = database
        self._attribution = attribution
        self._evolve = evolve
        self._prior = prior
        self._noise = noise
        self._max_attempts = max_attempts

    def apply(self, collection_id: int, events: Sequence[int]) -> int:
        """Apply those of the events that still wait, all at once; how many there were.

        If the batch fails for anything but a lost database, its events are tried one by one, so that one that
        cannot be applied, or not in the time a statement has, is found, noted and in the end parked, and holds
        nobody else back.

        Raises:
            UnavailableError: Postgres is out of reach; the events keep waiting.
        """
        try:
            return self._apply(collection_id, events)
        except Exception as error:
            if is_out_of_reach(error):
                raise
            if len(events) > 1:
                return sum(self.apply(collection_id, [event]) for event in sorted(events))
            log.exception("event not applied", event_id=events[0])
            with self._database.write() as writer:
                reason = f"{type(error).__name__}: {error}"
                feedback.record_failure(writer, collection_id, events[0], reason, self._max_attempts)
            return 0

    def apply_overdue(self, age_seconds: float, limit: int) -> int:
        """Apply events whose wake-up was lost; how many there were."""
        with self._database.read() as reader:
            overdue = feedback.overdue(reader, age_seconds, limit)
        by_collection: dict[int, list[int]] = {}
        for collection_id, event in overdue:
            by_collection.setdefault(collection_id, []).append(event)
        return sum(self._apply_apart(collection_id, waiting) for collection_id, waiting in by_collection.items())

    def _apply_apart(self, collection_id: int, events: Sequence[int]) -> int:
        """Apply one collection's events; what is wrong with it does not keep the others waiting."""
        try:
            return self.apply(collection_id, events)
        except UnavailableError:
            raise
        except Exception:
            log.exception("collection not learned", collection_id=collection_id)
            return 0

    def _apply(self, collection_id: int, events: Sequence[int]) -> int:
        units = {} if KEYS in self._noise.frozen else self._attribution.prepare(collection_id, events)
        with self._database.write() as writer:
            if not collections.keep(writer, collection_id):
                return 0
            collections.lock_learning(writer, collection_id, alone=False)
            pending = feedback.lock_pending(writer, collection_id, events)
            if not pending:
                return 0
            targets = {event.id: replay.targets_of(event.verdict, event.activated) for event in pending}
            application = _Application(writer, collection_id, self._noise, pending, targets)
            questions, audit = application.run()
            memories.record(writer, collection_id, audit)
            if units:
                self._attribution.credit(writer, collection_id, pending, targets, units)
            if WEIGHTS not in self._noise.frozen:
                terms = self._weight_terms(writer, collection_id, pending, targets)
                if terms:
                    weights.add(writer, collection_id, self._prior.name, terms)
            feedback.mark_applied(writer, collection_id, {event.id: questions[event.id] for event in pending})
        for event in pending:
            log.info("feedback applied", event_id=event.id, rows=sum(row.event_id == event.id for row in audit))
        if units:
            self._evolve_if_due(collection_id)
        return len(pending)

    def _evolve_if_due(self, collection_id: int) -> None:
        """Let the keys evolve if these events made it due; if that fails they stay due, and the events applied."""
        try:
            self._evolve.evolve_if_due(collection_id)
        except UnavailableError as error:
            log.warning("keys not evolved", collection_id=collection_id, error=error.detail)
        except Exception:
            log.exception("keys not evolved", collection_id=collection_id)

    def _weight_terms(
        self, writer: Writer, collection_id: int, events: Sequence[PendingEvent], targets: Targets
    ) -> list[WeightTerm]:
        """What each event says of the ranking; nothing if it compares no two ranked passages."""
        judged = sorted({sentence for event in events if event.ranked for sentence in targets[event.id]})
        holders = passages.sentences_by_id(writer, collection_id, judged)
        terms = []
        for event in events:
            if not event.ranked or event.features is None:
                continue
            named = {s: (holders[s].passage_id, y) for s, y in targets[event.id].items() if s in holders}
            noise = self._noise.positive / float(event.verdict["confidence"])
            seen = replay.observation(
                event.ranked,
                event.features,
                list(named.values()),
                event.verdict,
                prior=self._prior.prior,
                noise=noise,
            )
            if seen is not None:
                terms.append(WeightTerm(event.id, seen.evidence, noise, seen.surprise))
        return terms


class _Application:
    """One batch: lock everything in order, update in memory event by event, write once.

    Locks are taken in the same order by everyone, questions by hash and then sentences by id, so two batches
    that share state wait for each other instead of deadlocking.
    """

    def __init__(
        self, writer: Writer, collection_id: int, noise: Noise, events: Sequence[PendingEvent], targets: Targets
    ) -> None:
        self._writer = writer
        self._collection_id = collection_id
        self._noise = noise
        self._events = events
        self._targets = targets

    def run(self) -> tuple[dict[int, int], list[AuditRow]]:
        """Move every state the events speak of; event -> the question that it taught, and what moved."""
        questions = self._lock_questions()
        states = self._lock_memories()
        alive = {sentence for sentence, _ in states}
        supports = {
            question: experience.supports_of(self._writer, self._collection_id, question, sorted(alive))
            for question in set(questions.values())
        }
        touched: set[tuple[int, int]] = set()
        audit: list[AuditRow] = []
        for event in self._events:
            confidence = float(event.verdict["confidence"])
            targets = {s: y for s, y in self._targets[event.id].items() if s in alive}
            audit += self._move_memories(event, states, targets, confidence, "task", event.embedding)
            if event.time_embedding is not None:
                audit += self._move_memories(event, states, targets, confidence, "time", event.time_embedding)
            question = questions[event.id]
            moved = self._move_supports(event, supports[question], targets, confidence)
            touched.update((question, row.sentence_id) for row in moved)
            audit += moved
        memories.store(self._writer, self._collection_id, list(states.values()))
        for question in sorted(supports):
            rows = [(s, *supports[question][s]) for q, s in sorted(touched) if q == question]
            if rows:
                experience.store_supports(self._writer, self._collection_id, question, rows)
        return questions, audit

    def _lock_questions(self) -> dict[int, int]:
        hashed = ((replay.question_hash(event.question), event) for event in self._events)
        keyed = sorted(hashed, key=lambda pair: pair[0])
        return {
            event.id: experience.lock_question(
                self._writer, self._collection_id, key, event.question, event.embedding
            )
            for key, event in keyed
        }

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
        targets: Mapping[int, int],
        confidence: float,
        channel: str,
        direction: np.ndarray,
    ) -> list[AuditRow]:
        judged = [sentence for sentence in sorted(targets) if (sentence, channel) in states]
        if not judged or channel in self._noise.frozen:
            return []
        before = [states[sentence, channel] for sentence in judged]
        noise = np.array([self._noise.of(targets[m.sentence_id], confidence, m.perplexity) for m in before])
        update = kalman.update_memories(
            np.stack([memory.vector for memory in before]),
            np.array([memory.perplexity for memory in before]),
            direction,
            np.array([float(targets[sentence]) for sentence in judged]),
            noise,
            self._noise.process,
        )
        for at, memory in enumerate(before):
            states[memory.sentence_id, channel] = replace(
                memory,
                vector=update.vectors[at],
                perplexity=float(update.perplexities[at]),
                update_count=memory.update_count + 1,
            )
        return [
            AuditRow(
                event.id,
                memory.sentence_id,
                channel,
                targets[memory.sentence_id],
                float(noise[at]),
                float(update.gains[at]),
                float(update.residuals[at]),
                memory.perplexity,
                float(update.perplexities[at]),
                self._noise.process,
            )
            for at, memory in enumerate(before)
        ]

    def _move_supports(
        self,
        event: PendingEvent,
        known: dict[int, tuple[float, float, int, bool]],
        targets: Mapping[int, int],
        confidence: float,
    ) -> list[AuditRow]:
        """The question's own state.

        A rejection counts also where nothing ever supported the sentence: it recalls nothing, but the surer the
        state, the less a later verdict that errs can move it.
        """
        judged = sorted(targets)
        if not judged or RECALL in self._noise.frozen:
            return []
        before = [known.get(sentence, UNKNOWN) for sentence in judged]
        noise = np.array(
            [self._noise.of(targets[s], confidence, state[1]) for s, state in zip(judged, before, strict=True)]
        )
        update = kalman.update_supports(
            np.array([state[0] for state in before]),
            np.array([state[1] for state in before]),
            np.array([float(targets[sentence]) for sentence in judged]),
            noise,
            self._noise.process,
        )
        complete = not event.verdict["partial"] and event.verdict.get("retrieval_success") is not False
        rows = []
        for at, sentence in enumerate(judged):
            perplexity = float(update.perplexities[at])
            known[sentence] = (float(update.supports[at]), perplexity, before[at][2] + 1, complete)
            rows.append(
                AuditRow(
                    event.id,
                    sentence,
                    RECALL,
                    targets[sentence],
                    float(noise[at]),
                    float(update.gains[at]),
                    float(update.residuals[at]),
                    before[at][1],
                    perplexity,
                    self._noise.process,
                )
            )
        return rows
