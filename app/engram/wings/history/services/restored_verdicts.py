"""Verdicts that counted at a past moment and were revoked since: what the revocation removed of them, derived anew.

Their noises and caps are those by which they were applied. Terms of weights are taken from today's prior, and
effects of wings are repeated by today's rules on the copied passages.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.core.learning.states import RECALL, Audit, AuditRows, JudgedText, question_hash
from engram.services.effects.question_memory_effect import label_event
from engram.services.effects.weight_effect import WeightPriors, compute_terms, place_events
from engram.services.verdict.learn import BatchEffect, PrepareEffect, VerdictBatch
from engram.storage.corpus import collections, sentence_revisions
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Reader, Writer
from engram.storage.feedback_log import audit_rows, feedback_events, stored_outcomes
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning import learned_weights
from engram.storage.learning.learned_weights import Days
from engram.storage.revocation.copied_rows import Copy
from engram.wings.history.storage import copied_log
from engram.wings.history.storage.copied_log import RevokedSince

BATCH = 50
"""Verdicts, with up to some thousands of audit rows each, that are derived at a time."""


@dataclass(frozen=True, slots=True)
class RestoredVerdicts:
    """Counts of restored rows.

    Attributes:
        events: in the order in which they were applied.
        questions_gone: question that they taught -> text hash, of those that the source has no more.
        days: of those that say something of a model's weights.
    """

    events: Sequence[int]
    questions_gone: Mapping[int, bytes]
    days: Days


@dataclass(frozen=True, slots=True)
class PreparedEffects:
    """Effects of wings, prepared for the verdicts that were revoked since.

    Attributes:
        events: these verdicts, in the order of application.
    """

    events: Sequence[int]
    effects: Sequence[BatchEffect]

    def fit(self, reader: Reader, source: Collection, until: datetime) -> bool:
        """Whether they are still for the verdicts of the source and for its vectors."""
        events = [event.id for event in copied_log.list_revoked_since(reader, source.id, until)]
        return events == self.events and {effect.space for effect in self.effects} <= {None, source.space}


class VerdictRestorer:
    """Derives what such verdicts did; gains and perplexities are left to the replay that follows.

    Args:
        priors_of: as of ``WeightEffect``.
        effects: of wings, which are repeated.
    """

    def __init__(self, database: Database, priors_of: WeightPriors, effects: Sequence[PrepareEffect]) -> None:
        self._database = database
        self._priors_of = priors_of
        self._effects = effects

    def prepare(self, source: int, until: datetime) -> PreparedEffects:
        """Prepare effects of wings, which may embed texts; no transaction is open meanwhile.

        Raises:
            NotFoundError: the source is gone.
            EmbeddingSpaceMismatchError: a text has to be embedded, by an encoder that is not here.
        """
        with self._database.read() as reader:
            events = [event.id for event in copied_log.list_revoked_since(reader, source, until)]
        effects = [prepare(source, events) for prepare in self._effects] if events else []
        return PreparedEffects(events, [effect for effect in effects if not effect.follows_log])

    def run(self, writer: Writer, copy: Copy, prepared: PreparedEffects) -> RestoredVerdicts:
        """Have the verdicts that wait in the copy count, with all that they did but gains and perplexities."""
        events = copied_log.list_revoked_since(writer, copy.source, copy.until)
        questions, gone = _questions(writer, copy, events)
        days = Days()
        for at in range(0, len(events), BATCH):
            some = events[at : at + BATCH]
            constants = {event.id: event.constants for event in some}
            pending = feedback_events.lock_pending(writer, copy.target, list(constants))
            audit_rows.record(writer, copy.target, _audit(writer, copy, pending, constants, questions))
            batch = VerdictBatch(collections.load_by_id(writer, copy.target), pending, constants)
            for effect in prepared.effects:
                effect.lock(writer, batch)
                effect.load(writer, batch)
                effect.change(writer, batch)
                effect.record(writer, batch)
            placed = place_events(writer, copy.target, pending, constants)
            taught = compute_terms(self._priors_of(batch.collection.corpus_kind), placed, constants)
            for believed, terms in taught.items():
                learned_weights.add(writer, copy.target, believed, terms)
                days.update((believed, term.judge, term.day) for term in terms)
            copied_log.settle_restored(writer, copy, {event.id: questions[event.id] for event in some})
        return RestoredVerdicts([event.id for event in events], gone, days)


def _questions(
    reader: Reader, copy: Copy, events: Sequence[RevokedSince]
) -> tuple[dict[int, int], dict[int, bytes]]:
    """Event -> the question it taught, and those that the source has no more -> text hash.

    A question whose last verdict was revoked goes, and comes back under another id when it is taught again.
    """
    hashes = {event.id: question_hash(event.question) for event in events}
    known_hashes = copied_log.questions_by_hash(reader, copy.source, sorted(set(hashes.values())))
    ids = dict(known_hashes)
    for event in events:
        ids.setdefault(hashes[event.id], event.question_id)
    removed = {question: digest for digest, question in ids.items() if digest not in known_hashes}
    return {event: ids[digest] for event, digest in hashes.items()}, removed


def _audit(
    reader: Reader,
    copy: Copy,
    events: Sequence[PendingEvent],
    constants: Mapping[int, NoiseAndCaps],
    questions: Mapping[int, int],
) -> AuditRows:
    """Return the events' audits of existing sentences, with gains left for the replay."""
    named = sorted({sentence for event in events for sentence in event.targets})
    alive = stored_outcomes.find_existing(reader, copy.target, named)
    revisions = sentence_revisions.load(reader, copy.target, sorted(alive))
    rows: list[Audit] = []
    for event in events:
        labelled = label_event(event, questions[event.id], constants[event.id], revisions)
        rows += [
            Audit(
                event_id=event.id,
                sentence_id=sentence,
                channel=RECALL,
                target=target,
                observation_noise=labelled.observation_noise(sentence),
                gain=0.0,
                residual=0.0,
                perplexity_before=1.0,
                perplexity_after=1.0,
                process_noise=labelled.event.process_noise,
                revision=labelled.texts.get(sentence, JudgedText()).revision,
            )
            for sentence, target in sorted(labelled.targets.items())
            if sentence in alive
        ]
    return AuditRows.from_rows(rows)
