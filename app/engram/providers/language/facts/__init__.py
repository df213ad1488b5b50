"""Facts by rule: what the sentences of a passage say of its title and of the names in them."""

from engram.providers.language.facts.countries import country_of
from engram.providers.language.facts.extraction import extract_facts

__all__ = ["country_of", "extract_facts"]
