"""Facts by the language model: prompts, replies, and what is asked."""

from engram.wings.facts.llm.fact_model import (
    convert_relation,
    extract_entities,
    extract_relations,
    facts_by_model,
    maintain_facts,
    pieces,
)
from engram.wings.facts.llm.fact_replies import FactCorrection, Relation

__all__ = [
    "FactCorrection",
    "Relation",
    "convert_relation",
    "extract_entities",
    "extract_relations",
    "facts_by_model",
    "maintain_facts",
    "pieces",
]
