"""The optional language model: any OpenAI-compatible endpoint, asked for small JSON answers."""

from app.providers.llm.client import Llm
from app.providers.llm.prompts import MAX_EVIDENCE_CHARACTERS
from app.providers.llm.replies import DraftAnswer, Judgement, Usage

__all__ = ["MAX_EVIDENCE_CHARACTERS", "DraftAnswer", "Judgement", "Llm", "Usage"]
