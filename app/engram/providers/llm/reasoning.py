"""Steps of reasoning asked of the language model besides those of ``sessions``, and grades of them.

One function per use; each raises :class:`LlmError` as ``Llm`` does. Sentences come back by the ids they were given.
"""

from collections.abc import Sequence

from engram.core.planning.rewards import Grade
from engram.providers.llm import replies, tree_prompts, tree_replies
from engram.providers.llm.expansion_prompts import Wording
from engram.providers.llm.llm_client import Llm
from engram.providers.llm.prompts import Message, conversation, cut_quote, guard_wording, number_sentences
from engram.providers.llm.replies import DraftAnswer
from engram.providers.llm.session_model import Sentences
from engram.providers.llm.session_prompts import lines
from engram.providers.llm.tree_replies import DerivedFinding, RefinedAnswer


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


def grade_step(
    llm: Llm, question: str, before: Sequence[str], step: str, evidence_sentences: Sentences, answer: str
) -> dict[str, Grade]:
    """Grades of one step, by criterion (State-Aware RAG, Eq. 3)."""
    parts = {
        "evidence": number_sentences(evidence_sentences).block,
        "steps_before": lines(before),
        "step_question": cut_quote(step),
        "step_answer": cut_quote(answer),
        "question": cut_quote(question),
    }
    messages = _build_messages(tree_prompts.GRADE_STEP, parts)
    return llm.ask("grade_step", messages, tree_replies.read_step_grades, tree_replies.StepGradesReply)


def grade_outcome(
    llm: Llm, question: str, steps: Sequence[str], answer: str, accepted: Sequence[str] = ()
) -> dict[str, Grade]:
    """Grades of a finished path, by criterion (State-Aware RAG, Eq. 4); agreement only with accepted answers."""
    parts = {"steps": lines(steps), "proposed_answer": cut_quote(answer), "question": cut_quote(question)}
    if accepted:
        parts["accepted"] = lines(accepted)
    return llm.ask(
        "grade_outcome",
        _build_messages(tree_prompts.GRADE_OUTCOME, parts),
        lambda reply: tree_replies.read_outcome_grades(reply, accepted=bool(accepted)),
        tree_replies.OutcomeGradesReply,
    )


def _build_messages(wording: Wording, parts: dict[str, str]) -> list[Message]:
    return conversation(guard_wording(wording), parts)
