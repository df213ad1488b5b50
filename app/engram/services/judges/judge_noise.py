"""Weigh the verdicts of a batch: the noises and caps of their judges."""

from collections.abc import Mapping, Sequence

from engram.core.learning.noise_and_caps import NoiseAndCaps
from engram.core.ranking.question_memory import EVEN_ODDS
from engram.services.question.question_spreads import QuestionSpreads
from engram.storage.corpus import collections, current_vectors
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.current_vectors import Current
from engram.storage.database import Reader
from engram.storage.feedback_log import judge_standings
from engram.storage.feedback_log.feedback_events import PendingEvent
from engram.storage.feedback_log.judge_standings import OpposedWord
from engram.storage.learning import judges
from engram.storage.learning.judges import JudgeSettings


class JudgeNoise:
    """Chooses the constants that verdicts are applied with."""

    def __init__(self, constants: NoiseAndCaps, spreads: QuestionSpreads) -> None:
        """``constants``: those of an established judge without settings of its own."""
        self._constants = constants
        self._spreads = spreads

    def choose(self, reader: Reader, collection_id: int, events: Sequence[PendingEvent]) -> dict[int, NoiseAndCaps]:
        """Choose each event's constants: its judge's.

        New judges get less; so does an untrusted judge's word against others on a reworded question.
        """
        set_for = judges.find(reader, collection_id, {event.judge for event in events})
        constants = {event.id: set_for.get(event.judge, JudgeSettings()).adapt(self._constants) for event in events}
        named = {judge for judge, own in set_for.items() if own.trusted}
        unknown = [event for event in events if not event.trusted and event.judge not in named]
        if not unknown:
            return constants
        standings = judge_standings.standings(
            reader, collection_id, {(event.judge, event.day) for event in unknown}
        )
        constants |= {
            event.id: constants[event.id].adapt_to_standing(standings[event.judge, event.day]) for event in unknown
        }
        reworded = self._find_reworded(reader, collection_id, unknown, constants)
        return constants | {event: constants[event].reduce_for_rewording() for event in reworded}

    def _find_reworded(
        self,
        reader: Reader,
        collection_id: int,
        events: Sequence[PendingEvent],
        constants: Mapping[int, NoiseAndCaps],
    ) -> set[int]:
        """Find the events that go against others on a question that most probably has the same need."""
        opposed = judge_standings.find_opposed_words(reader, collection_id, events, constants)
        current = current_vectors.find_current(reader, collection_id) if opposed else None
        if current is None:
            return set()
        collection = collections.load_by_id(reader, collection_id)
        by_event: dict[int, list[OpposedWord]] = {}
        for word in opposed:
            by_event.setdefault(word.event, []).append(word)
        event_by_id = {event.id: event for event in events}
        return {
            event
            for event, words in by_event.items()
            if self._is_reworded(reader, collection, current, event_by_id[event], words)
        }

    def _is_reworded(
        self,
        reader: Reader,
        collection: Collection,
        current: Current,
        event: PendingEvent,
        words: Sequence[OpposedWord],
    ) -> bool:
        """Whether one of the questions most probably has the need of the event's, each by itself."""
        compared = self._spreads.compare(reader, collection, current, event.question, event.embedding, words, {})
        return compared is not None and bool((compared.compute_probabilities() >= EVEN_ODDS).any())
