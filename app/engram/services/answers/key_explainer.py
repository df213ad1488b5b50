"""The seam that explains evolved passage keys to those who show an answer or a verdict."""

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from engram.core.passage_keys.key_effect import KeyEffect
from engram.services.question.trace import Cause, KeyTrace
from engram.storage.database import Reader
from engram.storage.question.query_focus import Focus


class KeyCauses(Protocol):
    """Evolved keys of some passages, with the verdicts behind them."""

    @property
    def events(self) -> Collection[int]:
        """The verdicts that credit the keys' units most."""
        ...

    def build_traces(self, causes: Mapping[int, Cause]) -> dict[int, KeyTrace]:
        """Return passage -> its key, with the verdicts among ``causes``."""
        ...


class KeyExplainer(Protocol):
    """Explains evolved passage keys."""

    def find_causes(self, reader: Reader, focus: Focus, passages: Sequence[int], most: int) -> KeyCauses:
        """Find the evolved keys of passages that the query found, with up to ``most`` verdicts for each unit."""
        ...

    def find_effect(self, reader: Reader, collection_id: int, event_id: int, most: int) -> KeyEffect | None:
        """Find the effect of a verdict, with its ``most`` best credits; None if it had none, or is not applied."""
        ...

    def load_unit_texts(
        self, reader: Reader, collection_id: int, units: Sequence[int]
    ) -> Mapping[int, tuple[str, str]]:
        """Return expansion unit -> method and text, of those that exist."""
        ...
