"""Verdicts that counted at a past moment and were revoked since: what the revocation removed of them, derived anew.

Their noises and caps are those by which they were applied. Terms of weights are taken from today's
prior, and expansions are validated by today's rules on the copied passages. The evolution that took such expansions
in is known by its date: it is the first one after the verdict was applied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from engram.core.filter.constants import FilterConstants
from engram.core.filter.logged_verdict import Expansion
from engram.core.filter.states import (
    RECALL,
    TIME,
    Audit,
    AuditRows,
    question_hash,
)
from engram.services.effects.memory_effect import build_statement
from engram.services.effects.weight_effect import WeightEffect
from engram.services.passage_keys.attribution import Attribution, Units, text_hash
from engram.storage.corpus import collections
from engram.storage.database import Reader, Writer
from engram.storage.feedback_log import feedback_events, stored_outcomes
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.learning import learned_weights, sentence_memories
from engram.storage.learning.learned_weights import Days
from engram.storage.passage_keys import key_credits
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


class VerdictRestorer:
    """Derives what such verdicts did; gains and perplexities are left to the replay that follows."""

    def __init__(self, weights: WeightEffect, attribution: Attribution) -> None:
        self._weights = weights
        self._attribution = attribution

    def units(
        self, reader: Reader, source: int, until: datetime, known: Units
    ) -> tuple[Units, Mapping[bytes, Expansion]]:
        """The expansion units that are needed, and the expansions of those neither stored nor ``known``."""
        wanted: dict[bytes, Expansion] = {}
        for event in copied_log.list_revoked_since(reader, source, until):
            for expansion in event.expansions:
                wanted.setdefault(text_hash(expansion.text), expansion)
        units = {**known, **key_credits.load_units(reader, source, list(wanted))}
        return units, {digest: expansion for digest, expansion in wanted.items() if digest not in units}

    def run(self, writer: Writer, copy: Copy, units: Units) -> RestoredVerdicts:
        """Have the verdicts that wait in the copy count, with all that they did but gains and perplexities."""
        events = copied_log.list_revoked_since(writer, copy.source, copy.until)
        questions, gone = _questions(writer, copy, events)
        days = Days()
        for at in range(0, len(events), BATCH):
            some = events[at : at + BATCH]
            constants = {event.id: event.constants for event in some}
            pending = feedback_events.lock_pending(writer, copy.target, list(constants))
            sentence_memories.record(writer, copy.target, _audit(writer, copy, pending, constants, questions))
            if any(event.verdict.expansions for event in pending):
                credited_events = [event for event in pending if not constants[event.id].is_new]
                self._attribution.credit(writer, copy.target, credited_events, units)
            kind = collections.load_by_id(writer, copy.target).corpus_kind
            placed = self._weights.place(writer, copy.target, pending, constants)
            taught = self._weights.compute_terms(kind, placed, constants)
            for believed, terms in taught.items():
                learned_weights.add(writer, copy.target, believed, terms)
                days.update((believed, term.judge, term.day) for term in terms)
            copied_log.settle_restored(writer, copy, {event.id: questions[event.id] for event in some})
        credited = copied_log.list_credited_units(writer, copy, [event.id for event in events])
        self._attribution.name_units(writer, copy.target, credited)
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
    constants: Mapping[int, FilterConstants],
    questions: Mapping[int, int],
) -> AuditRows:
    """Return the events' audits of existing sentences, with gains left for the replay."""
    named = sorted({sentence for event in events for sentence in event.targets})
    alive = stored_outcomes.find_existing(reader, copy.target, named)
    dated = copied_log.find_dated_sentences(reader, copy, sorted(alive))
    rows: list[Audit] = []
    for event in events:
        statement = build_statement(event, questions[event.id], constants[event.id])
        for sentence, target in sorted(statement.targets.items()):
            if sentence in alive:
                noise = statement.observation_noise(sentence)
                channels = [channel for channel in statement.directions if channel != TIME or sentence in dated]
                rows += [
                    Audit(
                        event_id=event.id,
                        sentence_id=sentence,
                        channel=channel,
                        target=target,
                        observation_noise=noise,
                        gain=0.0,
                        residual=0.0,
                        perplexity_before=1.0,
                        perplexity_after=1.0,
                        process_noise=statement.event.process_noise,
                    )
                    for channel in (RECALL, *channels)
                ]
    return AuditRows.from_rows(rows)
