"""Attribution of a verdict's expansions to passage keys: correctness gate, credit, progress (ERM, 4.1-4.3)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from engram.core.learning.logged_verdict import Expansion
from engram.core.passage_keys import query_vector
from engram.providers.language import question_terms
from engram.services.encoders.encoder import Encoder
from engram.storage.corpus import collections, passages
from engram.storage.corpus.collections import Collection
from engram.storage.database import Database, Reader, Writer
from engram.storage.feedback_log import logged_verdicts
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.question import passages_by_key
from engram.storage.question.query_focus import GraphLimits, Vector
from engram.wings.published.core import evolution as core
from engram.wings.published.core.evolution import KeyRules, Saturation
from engram.wings.published.services.expansion_validation import ExpansionValidation
from engram.wings.published.services.learning_setting import is_taught
from engram.wings.published.storage import evolved_keys, key_credits, key_evidence_log
from engram.wings.published.storage.evolved_keys import EvolutionProgress
from engram.wings.published.storage.key_credits import Credit, ExpansionEvidence, Unit

Units = Mapping[bytes, Unit]


@dataclass(frozen=True, slots=True)
class KeyLearning:
    """The constants by which verdicts move keys.

    Attributes:
        rules: how keys are composed.
        batch_events: validated events that make a batch.
        patience: P, stale batches in a row that mean saturation.
        margin: ρ in [0, 1).
        most_waiting: validated events that may wait; then keys evolve, saturated or not.
    """

    rules: KeyRules
    batch_events: int
    patience: int
    margin: float
    most_waiting: int


@dataclass(frozen=True, slots=True)
class _EventUnits:
    """The units that an event brings, at least one."""

    event: PendingEvent
    units: Sequence[Unit]

    @property
    def vectors(self) -> Vector:
        """The units' embeddings, (m, d)."""
        return np.stack([unit.embedding for unit in self.units])


@dataclass(frozen=True, slots=True)
class PreparedUnits:
    """Expansion units of some events.

    Attributes:
        units: by text hash.
        space: that their vectors are of; None: there are none.
        is_taught: false where the events bring some, and the keys of the collection do not learn.
    """

    units: Units
    space: int | None
    is_taught: bool = True


class Attribution:
    """Turns the expansions of verdicts into credits and memories, in the transaction that applies the verdicts.

    Statements are made for all events of a batch at once. What each comes to is as if it were alone: base keys do
    not move meanwhile, and every number is computed event by event.
    """

    def __init__(
        self,
        database: Database,
        encoder: Encoder,
        limits: GraphLimits,
        learning: KeyLearning,
        validation: ExpansionValidation,
    ) -> None:
        self._database = database
        self._encoder = encoder
        self._limits = limits
        self._learning = learning
        self._validation = validation

    def prepare(self, collection_id: int, events: Sequence[int]) -> PreparedUnits:
        """The expansion units of these events, embedded where they are new; no transaction is open meanwhile.

        Raises:
            NotFoundError: the collection is gone.
            EmbeddingSpaceMismatchError: there are new ones, and its vectors are of another encoder.
        """
        with self._database.read() as reader:
            wanted: dict[bytes, Expansion] = {}
            for expansions in logged_verdicts.expansions(reader, collection_id, events).values():
                for expansion in expansions:
                    wanted.setdefault(text_hash(expansion.text), expansion)
            if not wanted:
                return PreparedUnits({}, None)
            collection = collections.load_by_id(reader, collection_id)
            if not is_taught(collection):
                return PreparedUnits({}, None, is_taught=False)
            stored_units = key_credits.load_units(reader, collection_id, list(wanted))
        new = {digest: wanted[digest] for digest in wanted.keys() - stored_units.keys()}
        return PreparedUnits({**stored_units, **self.embed_units(collection, new)}, collection.space)

    def embed_units(self, collection: Collection, expansions: Mapping[bytes, Expansion]) -> Units:
        """The units of these expansions, by text hash; no transaction is open meanwhile.

        Raises:
            EmbeddingSpaceMismatchError: there are any, and the collection's vectors are of another encoder.
        """
        # One by one: what else is in a batch moves the last bits of a vector. What is embedded at the same moment
        # may be in it all the same; so whatever was stored first is what is learned by, see ``credit``.
        return {digest: self._unit(collection, digest, expansion) for digest, expansion in expansions.items()}

    def _unit(self, collection: Collection, digest: bytes, expansion: Expansion) -> Unit:
        text = " ".join(expansion.text.split())  # all that its hash tells apart
        vector = self._encoder.embed_questions(collection, [text])[0]
        return Unit(digest, expansion.method, text, vector, question_terms(text, collection.languages))

    def credit(
        self,
        writer: Writer,
        collection_id: int,
        events: Sequence[PendingEvent],
        units: Units,
    ) -> None:
        """Credit the units of these events, which are being applied, and note how far the collection has come.

        Args:
            units: what ``prepare`` gave.
        """
        state = evolved_keys.lock(writer, collection_id)
        fresh = [digest for digest, unit in units.items() if not unit.stored]
        if fresh:  # others may have stored the same texts since: what they are credited follows from what is stored
            units = {**units, **key_credits.load_units(writer, collection_id, fresh)}
        carried = [_EventUnits(event, _collect_units(event, units)) for event in events if event.verdict.expansions]
        evidence, credits = self._attribute(writer, collection_id, carried)
        key_credits.add_evidence(writer, collection_id, evidence, credits)
        raised = [credit for credit in credits if credit.weight > 0]
        key_credits.refresh_memory(
            writer,
            collection_id,
            sorted({credit.passage_id for credit in raised}),
            self._learning.rules.capacity,
            sorted({credit.unit_id for credit in raised}),
        )
        for row in evidence:
            if row.gate != "none":
                state = advance(state, row.gain, self._learning)
        evolved_keys.set_progress(writer, collection_id, state)

    def _attribute(
        self, writer: Writer, collection_id: int, carried: Sequence[_EventUnits]
    ) -> tuple[list[ExpansionEvidence], list[Credit]]:
        """Compute each event's evidence, with validated units stored and credited passages locked."""
        supported = _find_supported_passages(writer, collection_id, [one.event for one in carried])
        retrieved = self._retrieve_passages(
            writer, collections.load_by_id(writer, collection_id), carried, supported
        )
        validated = {
            one.event.id: self._validation.validate(one.event, supported[one.event.id], retrieved[one.event.id])
            for one in carried
        }
        bases = evolved_keys.lock_bases(
            writer, collection_id, sorted({passage for _, credited in validated.values() for passage in credited})
        )
        credited = {event: sorted(bases.keys() & new_credits) for event, (_, new_credits) in validated.items()}
        kept: dict[bytes, Unit] = {}
        for one in carried:
            if credited[one.event.id]:  # a unit that is credited to nothing is not kept
                for unit in one.units:
                    kept.setdefault(unit.text_hash, unit)  # who came first names the method
        ids = key_credits.add_units(writer, collection_id, list(kept.values()))
        evidence: list[ExpansionEvidence] = []
        credits: list[Credit] = []
        for one in carried:
            event = one.event.id
            new_credits = self._credits(one, {passage: bases[passage] for passage in credited[event]}, ids)
            best = max((credit.gain for credit in new_credits), default=0.0)
            evidence.append(
                ExpansionEvidence(event, validated[event][0], max(best, 0.0), self._learning.rules.strength)
            )
            credits += new_credits
        return evidence, credits

    def _retrieve_passages(
        self,
        reader: Reader,
        collection: Collection,
        carried: Sequence[_EventUnits],
        supported: Mapping[int, Sequence[int]],
    ) -> dict[int, list[int]]:
        """Event -> what its expanded query retrieves, best first, as deep as gate and attribution look.

        On base keys, so that what a verdict comes to does not depend on what evolved before.
        """
        depths = {one.event.id: self._validation.depth(one.event, supported[one.event.id]) for one in carried}
        queries = [one for one in carried if depths[one.event.id]]
        searches = [
            passages_by_key.KeySearch(
                query_vector.expand_query(one.event.embedding, one.vectors), depths[one.event.id], one.event.filter
            )
            for one in queries
        ]
        nearest = passages_by_key.find_nearest_to_each(reader, collection, searches, self._limits)
        nothing: dict[int, list[int]] = {event: [] for event in depths}
        return nothing | {one.event.id: ids for one, ids in zip(queries, nearest, strict=True)}

    def _credits(self, bundle: _EventUnits, bases: Mapping[int, Vector], ids: Mapping[bytes, int]) -> list[Credit]:
        if not bases:
            return []
        gain = core.gains(
            bundle.event.embedding,
            np.stack(list(bases.values())),
            bundle.vectors,
            self._learning.rules.strength,
        )
        weight = core.attribution(gain)
        return [
            Credit(
                bundle.event.id,
                passage,
                ids[unit.text_hash],
                float(gain[row, column]),
                float(weight[row, column]),
            )
            for row, passage in enumerate(bases)
            for column, unit in enumerate(bundle.units)
        ]

    def withdraw(self, writer: Writer, collection_id: int, events: Sequence[int]) -> list[int]:
        """Take the part of these events, which are being revoked, out of units, credits and progress.

        The batches that watch for saturation (ERM, Eqs. 9-10) are counted anew over what still waits.

        Returns:
            Passages whose memories and keys are to be made anew, in id order.
        """
        if not key_evidence_log.has_evidence(writer, collection_id, events):
            return []
        evolved_keys.lock(writer, collection_id)
        evolved_keys.lock_bases(
            writer, collection_id, key_evidence_log.list_credited(writer, collection_id, events)
        )
        withdrawn = key_evidence_log.withdraw(writer, collection_id, events)
        self.name_units(writer, collection_id, withdrawn.units)
        if withdrawn.waited:
            evolved_keys.set_progress(writer, collection_id, self.count_batches(writer, collection_id))
        return withdrawn.passages

    def name_units(self, writer: Writer, collection_id: int, units: Sequence[int]) -> None:
        """Have these units name the method of the first verdict that brought them; without any left, they go."""
        first = key_evidence_log.bringers(writer, collection_id, units)
        methods = {
            unit: next(one.method for one in expansions if text_hash(one.text) == digest)
            for unit, (digest, expansions) in first.items()
        }
        key_evidence_log.set_methods(writer, collection_id, methods, [unit for unit in units if unit not in first])

    def count_batches(self, reader: Reader, collection_id: int) -> EvolutionProgress:
        """Count the progress of the collection's batches anew over the pending events."""
        state = EvolutionProgress(0, 0.0, 0.0, 0, 0, None)
        for gain in key_evidence_log.list_waiting_gains(reader, collection_id):
            state = advance(state, gain, self._learning)
        return state


def advance(state: EvolutionProgress, gain: float, learning: KeyLearning) -> EvolutionProgress:
    """The progress after one more validated event of the given gain."""
    state = replace(
        state,
        batch_events=state.batch_events + 1,
        batch_gain=max(state.batch_gain, gain),
        waiting=state.waiting + (gain > 0),
    )
    if state.batch_events >= learning.batch_events:
        after = Saturation(state.best_gain, state.stale_batches).update(state.batch_gain, learning.margin)
        state = replace(state, batch_events=0, batch_gain=0.0, best_gain=after.best, stale_batches=after.stale)
    if state.stale_batches >= learning.patience and state.waiting:
        return replace(state, due="saturated")
    if state.waiting >= learning.most_waiting:
        return replace(state, due=state.due or "pending")
    return state


def text_hash(text: str) -> bytes:
    """Equal texts meet here, whatever their white space."""
    return hashlib.sha256(" ".join(text.split()).encode()).digest()


def _collect_units(event: PendingEvent, units: Units) -> list[Unit]:
    """The event's units, each once, in the order of their hashes, with the methods it says they come from."""
    methods: dict[bytes, str] = {}
    for expansion in event.verdict.expansions:
        methods.setdefault(text_hash(expansion.text), expansion.method)
    return [replace(units[digest], method=method) for digest, method in sorted(methods.items())]


def _find_supported_passages(
    writer: Writer, collection_id: int, events: Sequence[PendingEvent]
) -> dict[int, list[int]]:
    """Event -> passages that it supports, by a sentence of theirs or as a whole, in id order."""
    named = {event.id: [s for s, y in event.targets.items() if y] for event in events}
    holders = passages.sentences_by_id(writer, collection_id, sorted({s for ids in named.values() for s in ids}))
    return {
        event.id: sorted(
            event.verdict.passage_targets((holders[s].passage_id, 1) for s in named[event.id] if s in holders)
        )
        for event in events
    }
