"""The optional language model: any OpenAI-compatible endpoint, asked for small JSON answers."""

from engram.providers.llm.fact_model import (
    convert_relation,
    extract_entities,
    extract_relations,
    facts_by_model,
    maintain_facts,
    pieces,
)
from engram.providers.llm.fact_prompts import FACTS_VERSION
from engram.providers.llm.fact_replies import FactCorrection, Relation
from engram.providers.llm.llm_client import Llm
from engram.providers.llm.prompts import MAX_EVIDENCE_CHARACTERS
from engram.providers.llm.replies import DraftAnswer, Grade, Judgement, Usage

__all__ = [
    "FACTS_VERSION",
    "MAX_EVIDENCE_CHARACTERS",
    "DraftAnswer",
    "FactCorrection",
    "Grade",
    "Judgement",
    "Llm",
    "Relation",
    "Usage",
    "convert_relation",
    "extract_entities",
    "extract_relations",
    "facts_by_model",
    "maintain_facts",
    "pieces",
]
