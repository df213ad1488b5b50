"""Steps of reasoning asked of the language model besides those of ``sessions``.

One function per use; each raises :class:`LlmError` as ``Llm`` does. Sentences come back by the ids they were given.
"""

from collections.abc import Sequence

from engram.providers.llm import replies
from engram.providers.llm.llm_client import Llm
from engram.providers.llm.prompts import Message, Wording, conversation, cut_quote, guard_wording, number_sentences
from engram.providers.llm.replies import DraftAnswer
from engram.wings.sessions.llm import tree_prompts, tree_replies
from engram.wings.sessions.llm.session_model import Sentences
from engram.wings.sessions.llm.session_prompts import lines
from engram.wings.sessions.llm.tree_replies import DerivedFinding, RefinedAnswer


def consolidate(llm: Llm, question: str, notes: Sequence[str], sentences: Sentences) -> DerivedFinding:
    """Derive a finding from the sentences that brings the answer nearer; empty without sentences."""
    if not sentences:
        return DerivedFinding("", ())
    evidence = number_sentences(sentences)
    parts = {"evidence": evidence.block, "notes": lines(notes), "question": cut_quote(question)}
    return llm.ask(
        "consolidate",
        _build_messages(tree_prompts.CONSOLIDATE, parts),
        lambda reply: tree_replies.read_finding(reply, evidence.ids),
        tree_replies.FindingReply,
    )


def refine(llm: Llm, question: str, answer: str, sentences: Sentences) -> RefinedAnswer:
    """An answer held against the sentences; without sentences it has no support."""
    if not sentences:
        return RefinedAnswer("unsupported", "", ())
    evidence = number_sentences(sentences)
    parts = {"evidence": evidence.block, "proposed_answer": cut_quote(answer), "question": cut_quote(question)}
    return llm.ask(
        "refine_answer",
        _build_messages(tree_prompts.REFINE, parts),
        lambda reply: tree_replies.read_refined(reply, evidence.ids),
        tree_replies.RefinedReply,
    )


def redirect(llm: Llm, question: str, notes: Sequence[str]) -> str:
    """Ask the same question in other words."""
    parts = {"notes": lines(notes), "question": cut_quote(question)}
    messages = _build_messages(tree_prompts.REDIRECT, parts)
    return llm.ask("redirect", messages, tree_replies.read_reworded, tree_replies.RewordedReply)


def rate(llm: Llm, question: str, answer: str, steps: Sequence[str], sentences: Sentences) -> float:
    """Rate an answer from 0 to 10 by its steps and the sentences alone."""
    parts = {
        "evidence": number_sentences(sentences).block,
        "steps": lines(steps),
        "proposed_answer": cut_quote(answer),
        "question": cut_quote(question),
    }
    messages = _build_messages(tree_prompts.RATE, parts)
    return llm.ask("rate", messages, tree_replies.read_rating, tree_replies.RatingReply)


def synthesise(llm: Llm, question: str, candidates: Sequence[str], sentences: Sentences) -> DraftAnswer:
    """One answer from several candidates, each with what led to it."""
    evidence = number_sentences(sentences)
    parts = {"evidence": evidence.block, "candidates": lines(candidates), "question": cut_quote(question)}
    return llm.ask(
        "synthesise",
        _build_messages(tree_prompts.SYNTHESISE, parts),
        lambda reply: replies.read_draft_answer(reply, evidence.ids),
        replies.AnswerReply,
    )


def _build_messages(wording: Wording, parts: dict[str, str]) -> list[Message]:
    return conversation(guard_wording(wording), parts)
