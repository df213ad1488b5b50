"""The optional language model: any OpenAI-compatible endpoint, asked for small JSON answers."""

from engram.providers.llm.llm_client import Llm
from engram.providers.llm.prompts import MAX_EVIDENCE_CHARACTERS
from engram.providers.llm.replies import DraftAnswer, Judgement, Usage

__all__ = ["MAX_EVIDENCE_CHARACTERS", "DraftAnswer", "Judgement", "Llm", "Usage"]
