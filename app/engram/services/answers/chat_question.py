"""A conversation's last question: restated, so that it can be asked of a collection by itself."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.context.errors import LlmError
from engram.providers.llm import Llm
from engram.services.retrieval.fallbacks import Fallback

TURNS = 10
"""Earlier turns, the latest, that say what a question is about."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """Turn of a conversation; ``role`` is ``user`` or ``assistant``."""

    role: str
    text: str


def restate_question(llm: Llm, question: str, earlier: Sequence[ChatTurn]) -> tuple[str, tuple[Fallback, ...]]:
    """The question as it can be understood without what was said before it.

    If the endpoint fails to restate it, it stays as it is, and a warning says so.
    """
    if not earlier:
        return question, ()
    try:
        return llm.restate_question(question, [(turn.role, turn.text) for turn in earlier[-TURNS:]]), ()
    except LlmError as error:
        return question, (Fallback("not-restated", error.detail),)
