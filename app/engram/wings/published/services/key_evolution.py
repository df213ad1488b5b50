"""Evolution of passage keys: take validated expansions in, serve the new keys, go back to any generation."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace

import structlog

from engram.context.errors import NotFoundError, is_out_of_reach
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.storage.database import Database, Reader, Writer
from engram.wings.published.core.evolution import KeyRules
from engram.wings.published.services import key_composition
from engram.wings.published.storage import evolved_keys, key_credits, key_generations
from engram.wings.published.storage.evolved_keys import EvolutionProgress
from engram.wings.published.storage.key_credits import Credit, CreditPair
from engram.wings.published.storage.key_generations import Generation

log = structlog.get_logger(__name__)

CHUNK = 500
"""Passages whose keys are composed at once: bounds memory and the length of a statement."""


@dataclass(frozen=True, slots=True)
class KeyStanding:
    """Standing of a collection's keys: the serving generation, 0 for base keys, and the pending events."""

    collection: str
    generation: int
    progress: EvolutionProgress


class KeyEvolutionService:
    """Writes evolved keys. What they are made of came with verdicts (see ``attribution``)."""

    def __init__(self, database: Database, rules: KeyRules) -> None:
        self._database = database
        self._rules = rules

    @property
    def capacity(self) -> int:
        """Units that a passage's expansion memory holds."""
        return self._rules.capacity

    def evolve(self, scope: Scope) -> Generation | None:
        """Take in all evidence that waits, now; None if nothing would change.

        Raises:
            NotFoundError: the collection was deleted meanwhile.
        """
        return self._evolve(scope.collection.id, requested=True)

    def run_due(self) -> int:
        """Evolve every collection that is due; how many evolved. One that fails stays due and holds no other back.

        Raises:
            UnavailableError: Postgres is out of reach.
        """
        with self._database.read() as reader:
            due = evolved_keys.list_due(reader)
        evolved = 0
        for collection_id in due:
            try:
                evolved += self.evolve_if_due(collection_id)
            except Exception as error:
                if is_out_of_reach(error):
                    raise
                log.exception("keys not evolved", collection_id=collection_id)
        return evolved

    def evolve_if_due(self, collection_id: int) -> bool:
        """Evolve the collection if its batches are saturated or too many events wait; whether it did.

        A collection that somebody else writes to stays due.
        """
        with self._database.read() as reader:
            if evolved_keys.progress(reader, collection_id).due is None:
                return False
        return self._evolve(collection_id, requested=False) is not None

    def roll_back(self, scope: Scope, number: int) -> KeyStanding:
        """Serve the keys of generation ``number`` again, earlier or later; 0 for base keys.

        Evidence of generations that it did not go on from counts no more, unless one of them is gone to again;
        evidence that waits goes on waiting.

        Raises:
            NotFoundError: there is no such generation, or the collection was deleted meanwhile.
        """
        target = scope.collection
        with self._database.write() as writer:
            if not collections.lock_graph(writer, target.id):
                raise collections.build_gone_error(target.name)
            evolved_keys.lock(writer, target.id)
            chosen = key_generations.find(writer, target.id, number)
            if number and chosen is None:
                raise NotFoundError(f"Collection {target.name!r} has no key generation {number}.")
            previous = key_generations.find(
                writer, target.id, key_generations.get_serving_number(writer, target.id)
            )
            rules = KeyRules(**chosen.rules) if chosen else self._rules
            changed = set(key_generations.go_to(writer, target.id, number))
            if previous is not None and chosen is not None and previous.rules != chosen.rules:
                changed.update(evolved_keys.list_evolved_passages(writer, target.id))
            for chunk in _chunks(sorted(changed)):
                self._compose(writer, target.id, chunk, rules)
                key_credits.refresh_memory(writer, target.id, chunk, self._rules.capacity)
        log.info("keys rolled back", collection=target.name, generation=number, passages=len(changed))
        return self.load_standing(scope)

    def load_standing(self, scope: Scope) -> KeyStanding:
        """Return the standing of the collection's keys.

        Raises:
            NotFoundError: it was deleted meanwhile.
        """
        with self._database.read() as reader:
            target = collections.load_by_id(reader, scope.collection.id)
            return KeyStanding(target.name, target.key_generation, evolved_keys.progress(reader, target.id))

    def generations(self, scope: Scope, before: int | None, limit: int) -> list[Generation]:
        """The collection's generations before number ``before``, the latest first."""
        with self._database.read() as reader:
            return key_generations.page(reader, scope.collection.id, before, limit)

    def rebase(self, writer: Writer, collection_id: int, passages: Sequence[int]) -> None:
        """Make gains, memories and evolved keys of these passages anew: their base keys changed.

        Called in the transaction that changed them, under ``collections.lock_graph``.
        """
        evolved_keys.lock(writer, collection_id)
        rules = self.load_serving_rules(writer, collection_id)
        for chunk in _chunks(sorted(passages)):
            pairs = key_credits.pairs(writer, collection_id, chunk)
            if not pairs:
                continue
            concerned = sorted({pair.passage_id for pair in pairs})
            key_credits.replace_credits(writer, collection_id, concerned, _credits(writer, collection_id, pairs))
            key_credits.refresh_memory(writer, collection_id, concerned, self._rules.capacity)
            self._compose(writer, collection_id, concerned, rules)

    def recompose(self, writer: Writer, collection_id: int, passages: Sequence[int]) -> None:
        """Make memories and evolved keys of these passages anew: evidence was taken out.

        Called under ``evolved_keys.lock``.
        """
        rules = self.load_serving_rules(writer, collection_id)
        for chunk in _chunks(sorted(passages)):
            key_credits.refresh_memory(writer, collection_id, chunk, self._rules.capacity)
            self._compose(writer, collection_id, chunk, rules)

    def load_serving_rules(self, reader: Reader, collection_id: int) -> KeyRules:
        """The constants that the collection's keys are composed with: those of the generation that serves."""
        serving = key_generations.find(
            reader, collection_id, key_generations.get_serving_number(reader, collection_id)
        )
        return KeyRules(**serving.rules) if serving else self._rules

    def _evolve(self, collection_id: int, *, requested: bool) -> Generation | None:
        hold = collections.lock_graph if requested else collections.try_lock_graph
        with self._database.write() as writer:
            if not hold(writer, collection_id):
                if requested:  # it is not held by somebody else, but gone
                    raise NotFoundError("The collection was deleted meanwhile.")
                return None
            state = evolved_keys.lock(writer, collection_id)
            reason = "requested" if requested else state.due
            if reason is None:  # another worker was first
                return None
            serving = key_generations.find(
                writer, collection_id, key_generations.get_serving_number(writer, collection_id)
            )
            concerned = set(key_credits.list_waiting_passages(writer, collection_id))
            rules = asdict(self._rules)
            changed = serving is not None and serving.rules != rules
            if changed:
                concerned.update(evolved_keys.list_evolved_passages(writer, collection_id))
            opened = None
            if concerned:
                opened = key_generations.open_next(writer, collection_id, reason, rules, len(concerned))
                for chunk in _chunks(sorted(concerned)):
                    if changed:
                        key_credits.refresh_memory(writer, collection_id, chunk, self._rules.capacity)
                    self._compose(writer, collection_id, chunk, self._rules)
                state = EvolutionProgress(0, 0.0, 0.0, 0, 0, None)
            evolved_keys.set_progress(writer, collection_id, replace(state, waiting=0, due=None))
        if opened is not None:
            log.info(
                "keys evolved",
                collection_id=collection_id,
                generation=opened.number,
                reason=reason,
                events=opened.events,
                passages=opened.passages,
            )
        return opened

    def _compose(self, writer: Writer, collection_id: int, passages: Sequence[int], rules: KeyRules) -> None:
        """Make the passages' keys what the evidence that was taken in says they are."""
        standing = key_credits.list_standing_units(writer, collection_id, passages, rules.units)
        bases = evolved_keys.lock_base_keys(writer, collection_id, passages)
        units = sorted({scored.unit_id for scored in standing})
        vectors = key_credits.embeddings(writer, collection_id, units)
        terms = key_credits.frequencies(writer, collection_id, units)
        evolved = key_composition.compose_keys(standing, bases, vectors, terms, rules)
        evolved_keys.replace_keys(writer, collection_id, passages, evolved, bases)


def _credits(writer: Writer, collection_id: int, pairs: Sequence[CreditPair]) -> list[Credit]:
    """The credits of these pairs by the base keys as they are now."""
    bases = evolved_keys.lock_bases(writer, collection_id, sorted({pair.passage_id for pair in pairs}))
    units = key_credits.embeddings(writer, collection_id, sorted({pair.unit_id for pair in pairs}))
    return key_composition.credits(pairs, bases, units)


def _chunks(passages: Sequence[int]) -> Iterator[list[int]]:
    return (list(passages[at : at + CHUNK]) for at in range(0, len(passages), CHUNK))
