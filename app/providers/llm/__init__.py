"""The optional language model: any OpenAI-compatible endpoint, asked for small JSON answers."""

from app.providers.llm.client import Llm
from app.providers.llm.prompts import MAX_EVIDENCE_CHARACTERS
from app.providers.llm.replies import DraftAnswer, Grade, Judgement, Usage

__all__ = ["MAX_EVIDENCE_CHARACTERS", "DraftAnswer", "Grade", "Judgement", "Llm", "Usage"]
