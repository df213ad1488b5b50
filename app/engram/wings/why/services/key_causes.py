"""Expansion units in the evolved keys of found passages, and the verdicts behind them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from engram.services.question.trace import KeyCause, KeyTrace, KeyUnitTrace
from engram.storage.database import Reader
from engram.storage.passage_keys import key_credits
from engram.storage.retrieval.query_focus import Focus
from engram.wings.why.storage import influence_rows as log
from engram.wings.why.storage.influence_rows import LoggedCause, ServedKey, UnitVerdict


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

    def traces(self, causes: Mapping[int, LoggedCause]) -> dict[int, KeyTrace]:
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

    def _unit(self, passage: int, unit: int, share: float, causes: Mapping[int, LoggedCause]) -> KeyUnitTrace:
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


def load_key_causes(reader: Reader, focus: Focus, passages: Sequence[int], most: int) -> FoundKeys:
    """For passages found by an evolved key: the key, its units, and up to ``most`` verdicts per unit."""
    keys = log.list_served_keys(reader, focus, passages) if focus.evolved else []
    if not keys:
        return FoundKeys()
    target, units = focus.collection.id, sorted({unit for key in keys for unit in key.units})
    evolved = [key.passage_id for key in keys]
    return FoundKeys(
        keys, key_credits.load_unit_texts(reader, target, units), log.bringers(reader, target, evolved, units, most)
    )
