"""Learning from verdicts: accept an event once, apply it once, in one transaction with its audit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import structlog

from app.core import kalman
from app.core.caps import with_word
from app.core.kalman import Floats, MemoryUpdate, SupportUpdate
from app.errors import UnavailableError, is_out_of_reach
from app.services import replay
from app.services.attribution import Attribution
from app.services.evolve import EvolveService
from app.services.prior import RankingPrior
from app.storage import collections, experience, feedback, judges, memories, passages, weights
from app.storage.database import Database, Writer
from app.storage.experience import Support
from app.storage.feedback import PendingEvent
from app.storage.judges import JudgeSettings
from app.storage.memories import AuditRow, Memory
from app.storage.weights import WeightTerm

log = structlog.get_logger(__name__)

RECALL = "recall"
WEIGHTS = "weights"
KEYS = "keys"

CONSTANTS = ("positive", "negative", "process", "share", "contested", "comparisons")

Targets = Mapping[int, Mapping[int, int]]
"""Event -> sentence -> y, see ``replay.targets_of``."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How far verdicts move what is learned: the filter's constants, and caps per judge and day (``core.caps``).

    Attributes:
        positive, negative, process: R_pos, R_neg and Q (GAM-RAG, Appendix C).
        share: of the distance to what its verdicts say, how much a judge may close of one memory, in [0, 1].
        contested: the same where its verdict goes against what other judges said, in [0, 1].
        comparisons: verdicts of a judge that may teach the ranking; None: all.
        fixed_gain: for ablations: moves every state by the same share whatever its perplexity.
        frozen: for ablations: scopes ("task", "time", "recall", "weights", "keys") that verdicts leave alone.
    """

    positive: float
    negative: float
    process: float
    share: float = 1.0
    contested: float = 1.0
    comparisons: int | None = None
    fixed_gain: float | None = None
    frozen: frozenset[str] = frozenset()

    def by(self, judge: JudgeSettings | None) -> "Noise":
        """That of a judge for which some of it is set otherwise."""
        return self if judge is None else replace(self, **judge.said())

    def constants(self) -> dict[str, float | int | None]:
        """What a replay has to know of it."""
        return {name: getattr(self, name) for name in CONSTANTS}

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
                parked = feedback.record_failure(writer, collection_id, events[0], reason, self._max_attempts)
            if parked:
                log.error("feedback parked", collection_id=collection_id, event_id=events[0], reason=reason)
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
            set_for = judges.find(writer, collection_id, {event.judge for event in pending})
            noises = {event.id: self._noise.by(set_for.get(event.judge)) for event in pending}
            application = _Application(writer, collection_id, noises, pending, targets)
            questions, audit = application.run()
            memories.record(writer, collection_id, audit)
            if units:
                self._attribution.credit(writer, collection_id, pending, targets, units)
            if WEIGHTS not in self._noise.frozen:
                terms = self._weight_terms(writer, collection_id, pending, targets, noises)
                if terms:
                    weights.add(writer, collection_id, self._prior.name, terms)
            constants = {event: noise.constants() for event, noise in noises.items()}
            feedback.mark_applied(
                writer, collection_id, {event.id: questions[event.id] for event in pending}, constants
            )
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
        self,
        writer: Writer,
        collection_id: int,
        events: Sequence[PendingEvent],
        targets: Targets,
        noises: Mapping[int, Noise],
    ) -> list[WeightTerm]:
        """What each event says of the ranking; nothing if it compares no two ranked passages."""
        judged = sorted({sentence for event in events if event.ranked for sentence in targets[event.id]})
        holders = passages.sentences_by_id(writer, collection_id, judged)
        terms = []
        for event in events:
            if not event.ranked or event.features is None:
                continue
            named = {s: (holders[s].passage_id, y) for s, y in targets[event.id].items() if s in holders}
            noise = noises[event.id].positive / float(event.verdict["confidence"])
            seen = replay.observation(
                event.ranked,
                event.features,
                list(named.values()),
                event.verdict,
                prior=self._prior.prior,
                noise=noise,
            )
            if seen is not None:
                cap = noises[event.id].comparisons
                terms.append(WeightTerm(event.id, event.judge, event.day, cap, seen.evidence, noise, seen.surprise))
        return terms


@dataclass(frozen=True, slots=True)
class _Judged:
    """What a verdict says of a sentence, and what the question knew of it before."""

    target: int
    support: Support


@dataclass(frozen=True, slots=True)
class _Observed:
    """What an event says of n states, before they move; all (n,)."""

    targets: Floats
    perplexities: Floats
    noise: Floats
    most: Floats


class _Application:
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
                s: _Judged(y, supports.get((question, s)) or Support(question, s))
                for s, y in sorted(self._targets[event.id].items())
                if s in alive
            }
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
        judged: Mapping[int, _Judged],
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
        self, event: PendingEvent, supports: dict[tuple[int, int], Support], judged: Mapping[int, _Judged]
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
        complete = not event.verdict["partial"] and event.verdict.get("retrieval_success") is not False
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
        self, event: PendingEvent, said: Sequence[_Judged], states: Sequence[Memory | Support]
    ) -> _Observed:
        """What the event says of states, those of the sentences ``said``, and how far it may move each."""
        noise = self._noises[event.id]
        confidence = float(event.verdict["confidence"])
        perplexities = [state.perplexity for state in states]
        return _Observed(
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
        said: Sequence[_Judged],
        observed: _Observed,
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
