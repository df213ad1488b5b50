"""Words that a search page offers to complete a question with."""

from dataclasses import dataclass

from engram.providers.language import normalise_entity
from engram.services.auth.scope import Scope
from engram.storage.database import Database
from engram.storage.question import entity_lookup

LEAST_LETTERS = 2
"""Letters from which on a prefix is completed: of one begin too many names."""


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
        with self.database.read() as reader:
            return entity_lookup.find_names_with_prefix(reader, scope.collection, normalised, most)
