"""Requests of sessions to the language model, one function per use; each raises :class:`LlmError` as ``Llm`` does.

For a planner of one's own: the wording in ``session_prompts``, its strict reading in ``session_replies``, and a
function here that gives both to ``Llm.ask``, which asks once more where the reply cannot be used.
"""

from collections.abc import Sequence

from engram.core.text.question_triples import QuestionTriple
from engram.providers.llm import prompts
from engram.providers.llm.llm_client import Llm
from engram.wings.sessions.llm import session_prompts, session_replies
from engram.wings.sessions.llm.session_replies import Gaps, NextStep, NotedFinding, SelectedSentences

Sentences = Sequence[tuple[int, str]]
"""Sentences by id; those that exceed ``prompts.MAX_EVIDENCE_CHARACTERS`` are left out from the end."""


def split(llm: Llm, question: str) -> list[QuestionTriple]:
    """The facts that a question depends on, in the order in which they can be looked up."""
    return llm.ask("split", session_prompts.split(question), session_replies.read_split, session_replies.SplitReply)


def gaps(llm: Llm, question: str, facts: Sequence[str], sentences: Sentences) -> Gaps:
    """Ask which facts the sentences settle, whether they suffice, and what to search for next."""
    evidence = prompts.number_sentences(sentences)
    return llm.ask(
        "gaps",
        session_prompts.gaps(question, facts, evidence),
        lambda reply: session_replies.read_gaps(reply, evidence.ids),
        session_replies.GapsReply,
    )


def keep(llm: Llm, question: str, sought: str, notes: Sequence[str], sentences: Sentences) -> SelectedSentences:
    """Ask which sentences to keep; without sentences nothing is asked."""
    if not sentences:
        return SelectedSentences((), ())
    evidence = prompts.number_sentences(sentences)
    return llm.ask(
        "keep",
        session_prompts.keep(question, sought, notes, evidence),
        lambda reply: session_replies.read_kept(reply, evidence.ids),
        session_replies.SelectionReply,
    )


def note(
    llm: Llm, question: str, notes: Sequence[str], sentences: Sentences, sub_question: str, answer: str
) -> list[NotedFinding]:
    """The notes as they are after a step; without sentences nothing is asked."""
    if not sentences:
        return []
    evidence = prompts.number_sentences(sentences)
    return llm.ask(
        "note",
        session_prompts.note(question, notes, evidence, sub_question, answer),
        lambda reply: session_replies.read_notes(reply, evidence.ids),
        session_replies.NotesReply,
    )


def ask_next_step(llm: Llm, question: str, notes: Sequence[str], asked_questions: Sequence[str]) -> NextStep:
    """Whether the notes answer the question; else the next sub-question."""
    messages = session_prompts.step(question, notes, asked_questions)
    return llm.ask("step", messages, session_replies.read_step, session_replies.NextStepReply)


def queries(llm: Llm, sub_question: str, notes: Sequence[str]) -> list[str]:
    """Search queries for a sub-question."""
    messages = session_prompts.queries(sub_question, notes)
    return llm.ask("queries", messages, session_replies.read_queries, session_replies.QueriesReply)
