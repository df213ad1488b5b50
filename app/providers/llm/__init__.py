"""The optional language model: any OpenAI-compatible endpoint, asked for small JSON answers."""

from app.providers.llm.client import Llm
from app.providers.llm.fact_prompts import FACTS_VERSION
from app.providers.llm.fact_replies import Maintenance, Relation
from app.providers.llm.facts import extract_facts_with, facts_by_model, pieces, triple_of
from app.providers.llm.prompts import MAX_EVIDENCE_CHARACTERS
from app.providers.llm.replies import DraftAnswer, Grade, Judgement, Usage

__all__ = [
    "FACTS_VERSION",
    "MAX_EVIDENCE_CHARACTERS",
    "DraftAnswer",
    "Grade",
    "Judgement",
    "Llm",
    "Maintenance",
    "Relation",
    "Usage",
    "extract_facts_with",
    "facts_by_model",
    "pieces",
    "triple_of",
]
