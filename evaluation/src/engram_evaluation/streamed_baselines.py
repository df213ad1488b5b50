"""Baselines of GRAM's Table 2 that a chat model can be with a prompt alone.

No memory (zero-shot, chain of thought), dense retrieval over the documents (rag), and a summary that is rewritten
with every document (the idea of Mem1, without its training). Search-R1 and the trained Mem1 need weights.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from engram.providers.embedder import Embedder
from engram.providers.llm import Llm, prompts
from engram.providers.llm.expansion_prompts import Wording
from engram.providers.llm.replies import Line, Reply, read
from engram_evaluation.agent_environment import Text
from engram_evaluation.text_memory import nearest

TOP_K = 5
"""Documents that ``rag`` answers from."""
MAX_SUMMARY_CHARACTERS = 4_000

ZERO_SHOT = Wording(
    "You answer a question from what you know. Give the shortest complete answer, without a lead-in.",
    'Reply with one JSON object: {"answer": "Lisbon"}',
)
CHAIN_OF_THOUGHT = Wording(
    "You answer a question from what you know. Work out the chain of facts step by step first, then give the "
    "shortest complete answer, without a lead-in.",
    'Reply with one JSON object: {"reasoning": "one to five sentences", "answer": "Lisbon"}',
)
SUMMARY = Wording(
    """\
You read documents one at a time to answer a question in the end. You keep a summary; the documents do not come
back. Write the summary anew: all that the old one and this document say that the question, or something on the way
to its answer, is about, and nothing else. If the document has nothing of that kind, repeat the old summary.""",
    'Reply with one JSON object: {"summary": "the new summary"}',
)


class PlainAnswerReply(Reply):
    """An answer without sources."""

    answer: Line


class ReasonedAnswerReply(PlainAnswerReply):
    """An answer after reasoning."""

    reasoned = True


class SummaryReply(Reply):
    """A summary of what was read."""

    summary: Annotated[Line, Field(max_length=MAX_SUMMARY_CHARACTERS)]


def zero_shot(llm: Llm, question: str, _documents: Sequence[Text], _embedder: Embedder) -> str:
    """Answer from what the model knows.

    Raises:
        LlmError: the endpoint failed, or its replies cannot be used; so do the others here.
    """
    return _ask_for_answer(llm, "zero-shot", ZERO_SHOT, {"question": prompts.cut_quote(question)}, PlainAnswerReply)


def chain_of_thought(llm: Llm, question: str, _documents: Sequence[Text], _embedder: Embedder) -> str:
    """Answer from what the model knows, after reasoning."""
    parts = {"question": prompts.cut_quote(question)}
    return _ask_for_answer(llm, "chain-of-thought", CHAIN_OF_THOUGHT, parts, ReasonedAnswerReply)


def rag(llm: Llm, question: str, documents: Sequence[Text], embedder: Embedder) -> str:
    """Answer from the documents nearest to the question."""
    texts = [_join_title(document) for document in documents]
    places = nearest(question, texts, embedder)[:TOP_K]
    return llm.answer(question, [(place, texts[place]) for place in places]).text


def rolling_summary(llm: Llm, question: str, documents: Sequence[Text], _embedder: Embedder) -> str:
    """Answer from a summary that every document rewrites."""
    summary = ""
    for document in documents:
        parts = {
            "question": prompts.cut_quote(question),
            "summary": prompts.cut_quote(summary) or "(empty)",
            "document": prompts.cut_quote(_join_title(document)),
        }
        messages = prompts.conversation(prompts.guard_wording(SUMMARY), parts)
        summary = llm.ask("summary", messages, lambda reply: read(SummaryReply, reply), SummaryReply).summary
    return llm.answer(question, [(0, summary)] if summary else []).text


def _ask_for_answer(
    llm: Llm, use: str, wording: Wording, parts: Mapping[str, str], schema: type[PlainAnswerReply]
) -> str:
    messages = prompts.conversation(prompts.guard_wording(wording), parts)
    return llm.ask(use, messages, lambda reply: read(schema, reply), schema).answer


def _join_title(document: Text) -> str:
    return f"{document.title}. {document.text}" if document.title else document.text
