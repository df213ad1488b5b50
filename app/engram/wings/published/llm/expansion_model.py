"""Requests to the language model that widen a question; each raises :class:`LlmError` as ``Llm`` does."""

from collections.abc import Sequence

from engram.providers.llm import prompts, replies
from engram.providers.llm.llm_client import Llm
from engram.wings.published.core.expansion import WordedMethod
from engram.wings.published.llm import expansion_prompts, expansion_replies


def expand(llm: Llm, method: WordedMethod, question: str) -> list[str]:
    """Return texts that widen the question, one or several by the method."""
    return llm.ask(
        "expand",
        expansion_prompts.expansion(method, question),
        lambda reply: expansion_replies.read_expansion(method, reply),
        expansion_replies.EXPANSION_REPLIES[method],
    )


def refine_question(llm: Llm, question: str, draft: str, passages: Sequence[str]) -> str:
    """Return a better question than ``draft``, which found the passages, to the same end as ``question``."""
    if not passages:
        return draft
    # Long passages are cut, so that each has its place; the rest of a line is its number.
    room = prompts.MAX_EVIDENCE_CHARACTERS // len(passages) - len(f"[{len(passages)}] \n")
    evidence = prompts.number_sentences(enumerate(passage[:room] for passage in passages))
    messages = expansion_prompts.refinement(question, draft, evidence)
    return llm.ask("refine", messages, replies.read_question, replies.QuestionReply)
