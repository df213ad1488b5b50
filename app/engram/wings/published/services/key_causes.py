"""Expansion units in the evolved keys of found passages, and the verdicts behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from engram.core.passage_keys.key_effect import KeyEffect
from engram.services.question.trace import Cause, KeyCause, KeyTrace, KeyUnitTrace
from engram.storage.database import Reader
from engram.storage.question.query_focus import Focus
from engram.wings.published.storage import key_credits, key_history, served_keys
from engram.wings.published.storage.served_keys import ServedKey, UnitVerdict


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """The evolved keys of some passages.

    Attributes:
        units: unit -> method and text.
        brought: the verdicts that credit the keys' units most, by passage and unit, best first.
    """

    keys: Sequence[ServedKey] = ()
    units: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    brought: Sequence[UnitVerdict] = ()

    @property
    def events(self) -> set[int]:
        """The verdicts that credit the keys' units most."""
        return {row.event_id for row in self.brought}

    def build_traces(self, causes: Mapping[int, Cause]) -> dict[int, KeyTrace]:
        """Passage -> its key, with the verdicts among ``causes``."""
        return {
            key.passage_id: KeyTrace(
                similarity=key.similarity,
                base_similarity=key.base_similarity,
                units=[
                    self._unit(key.passage_id, unit, score / sum(key.scores), causes)
                    for unit, score in zip(key.units, key.scores, strict=True)
                    if unit in self.units
                ],
            )
            for key in self.keys
        }

    def _unit(self, passage: int, unit: int, share: float, causes: Mapping[int, Cause]) -> KeyUnitTrace:
        rows = [row for row in self.brought if (row.passage_id, row.unit_id) == (passage, unit)]
        method, text = self.units[unit]
        return KeyUnitTrace(
            unit_id=unit,
            method=method,
            text=text,
            share=share,
            events=[
                KeyCause(**asdict(causes[row.event_id]), gain=row.gain, weight=row.weight)
                for row in rows
                if row.event_id in causes
            ],
            event_count=rows[0].total if rows else 0,
        )


class PassageKeyExplainer:
    """Explains evolved keys: a ``KeyExplainer``."""

    def find_causes(self, reader: Reader, focus: Focus, passages: Sequence[int], most: int) -> FoundKeys:
        """Find the keys of passages, their units, and up to ``most`` verdicts for each unit."""
        keys = served_keys.list_served_keys(reader, focus, passages) if focus.evolved else []
        if not keys:
            return FoundKeys()
        target, units = focus.collection.id, sorted({unit for key in keys for unit in key.units})
        evolved = [key.passage_id for key in keys]
        return FoundKeys(
            keys,
            key_credits.load_unit_texts(reader, target, units),
            served_keys.bringers(reader, target, evolved, units, most),
        )

    def find_effect(self, reader: Reader, collection_id: int, event_id: int, most: int) -> KeyEffect | None:
        """Find the effect of a verdict's expansions."""
        return key_history.effect(reader, collection_id, event_id, most)

    def load_unit_texts(
        self, reader: Reader, collection_id: int, units: Sequence[int]
    ) -> Mapping[int, tuple[str, str]]:
        """Return expansion unit -> method and text."""
        return key_credits.load_unit_texts(reader, collection_id, units)
