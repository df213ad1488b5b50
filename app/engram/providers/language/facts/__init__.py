"""Facts by rule: what the sentences of a passage say of its title and of the names in them."""

from engram.providers.language.facts.countries import find_country
from engram.providers.language.facts.extraction import extract_facts

__all__ = ["extract_facts", "find_country"]
