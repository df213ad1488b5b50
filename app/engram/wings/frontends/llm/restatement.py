"""Restating the last question of a conversation, so that it can be understood alone."""

from collections.abc import Sequence

from engram.providers.llm import Llm, prompts, replies
from engram.providers.llm.prompts import Wording

RESTATEMENT = Wording(
    """\
A user asks the last question of a conversation. Write it so that somebody who heard nothing of the conversation
understands what is asked: put names in place of "it", "she", "there", and add what the question leaves out because
it was just spoken of. Change nothing else, answer nothing, and keep the user's language. A question that stands
alone stays as it is.""",
    """Reply with one JSON object: {"question": "When was Marie Curie born?"}""",
)


def restate(llm: Llm, question: str, earlier: Sequence[tuple[str, str]]) -> str:
    """Return the question in words that need no conversation before it; of a long one the model sees the end.

    Args:
        earlier: turns of the conversation, as (role, text).

    Raises:
        LlmError: as ``Llm.ask``.
    """
    lines = "\n".join(f"{role}: {prompts.quote(text)[: prompts.MAX_QUOTE_CHARACTERS]}" for role, text in earlier)
    parts = {
        "conversation": lines[-prompts.MAX_EVIDENCE_CHARACTERS :],
        "question": prompts.cut_quote(question),
    }
    messages = prompts.conversation(prompts.guard_wording(RESTATEMENT), parts)
    return llm.ask("restate", messages, replies.read_question, replies.QuestionReply)
