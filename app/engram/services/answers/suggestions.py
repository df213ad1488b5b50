"""Words that a search page offers to complete a question with."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.providers.language import normalise_entity
from engram.providers.language.chinese_scripts import CHINESE, list_writings, simplify
from engram.services.auth.scope import Scope
from engram.storage.database import Database
from engram.storage.question import entity_lookup

LEAST_LETTERS = 2
"""Letters from which on a prefix is completed: of one begin too many names."""

WRITINGS = 64
"""Ways to write a prefix in traditional and simplified Chinese that are looked up."""


@dataclass(frozen=True, slots=True)
class SuggestionService:
    """Suggests names and titles of passages that the caller sees, never what others asked."""

    database: Database

    def suggest(self, scope: Scope, prefix: str, most: int) -> list[str]:
        """Return at most so many names and titles that begin with a prefix, those of most sentences first.

        A prefix of fewer than ``LEAST_LETTERS`` letters has none.
        """
        normalised = normalise_entity(prefix)
        if len(normalised) < LEAST_LETTERS:
            return []
        if CHINESE.isdisjoint(scope.collection.languages):
            return self._find(scope, [normalised], most)
        writings = list_writings(normalised, WRITINGS)
        is_whole = len(writings[0]) == len(normalised)
        names = self._find(scope, writings, most if is_whole else entity_lookup.PREFIXED_NAMES)
        return [one for one in names if simplify(normalise_entity(one)).startswith(simplify(normalised))][:most]

    def _find(self, scope: Scope, prefixes: Sequence[str], most: int) -> list[str]:
        with self.database.read() as reader:
            return entity_lookup.find_names_with_prefixes(reader, scope.collection, prefixes, most)
