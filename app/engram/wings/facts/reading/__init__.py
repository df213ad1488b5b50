"""Facts by rule: what the sentences of a passage say of its title and of the names in them."""

from engram.wings.facts.reading.countries import find_country
from engram.wings.facts.reading.extraction import extract_facts

__all__ = ["extract_facts", "find_country"]
