"""Grades of reasoning by a language model, which rewards are made of (State-Aware RAG, Appendix C)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import BeforeValidator

from engram.providers.llm.llm_client import Llm
from engram.providers.llm.prompts import Wording, conversation, cut_quote, guard_wording, number_sentences
from engram.providers.llm.replies import Reply, UnusableReplyError, convert_to_lower_case, read
from engram.wings.sessions.llm.session_model import Sentences
from engram.wings.sessions.llm.session_prompts import lines
from engram_evaluation.reasoning_rewards import GRADES, OUTCOME, PATH, Grade

_Graded = Annotated[Grade, BeforeValidator(convert_to_lower_case)]
_GRADED = f"Each grade is one of {', '.join(GRADES)}."

GRADE_STEP = Wording(
    f"""\
You grade one step of a search for the answer to a question. You see the question, the steps before, the step's own
question, the sentences that it kept, and its answer. Grade four things. {PATH[0]}: are the kept sentences about the
step's question? {PATH[1]}: are they enough to answer it? {PATH[2]}: does the answer follow from them and from the
steps before? {PATH[3]}: do the kept sentences say what the answer says? {_GRADED}""",
    'Reply with one JSON object: {"' + '": "good", "'.join(PATH) + '": "good"}',
)

GRADE_OUTCOME = Wording(
    f"""\
You grade a finished search for the answer to a question. You see the question, its steps in order, the answer and,
where they are known, the accepted answers, one on each line. Grade. {OUTCOME[0]}: does each step follow from those
before? {OUTCOME[1]}: is no step missing that the answer needs? {OUTCOME[2]}: does none contradict another?
{OUTCOME[3]}: does the answer mean the same as an accepted one? If no accepted answer is given, leave
"{OUTCOME[3]}" out. {_GRADED}""",
    'Reply with one JSON object: {"' + '": "good", "'.join(OUTCOME) + '": "good"}',
)


class StepGradesReply(Reply):
    """Grades of a step."""

    relevance: _Graded
    sufficiency: _Graded
    coherence: _Graded
    factuality: _Graded


class OutcomeGradesReply(Reply):
    """Grades of an outcome."""

    coherence: _Graded
    completeness: _Graded
    consistency: _Graded
    agreement: _Graded | None = None


def read_step_grades(text: str) -> dict[str, Grade]:
    """Read the grades of a step, by criterion."""
    reply = read(StepGradesReply, text)
    return {name: getattr(reply, name) for name in PATH}


def read_outcome_grades(text: str, *, accepted: bool) -> dict[str, Grade]:
    """Read the grades of an outcome, by criterion; ``accepted``: whether agreement was to be graded."""
    reply = read(OutcomeGradesReply, text)
    if accepted and reply.agreement is None:
        raise UnusableReplyError("agreement: is missing")
    return {name: getattr(reply, name) for name in (OUTCOME if accepted else OUTCOME[:-1])}


def grade_step(
    llm: Llm, question: str, before: Sequence[str], step: str, evidence: Sentences, answer: str
) -> dict[str, Grade]:
    """Grades of one step, by criterion (State-Aware RAG, Eq. 3)."""
    parts = {
        "evidence": number_sentences(evidence).block,
        "steps_before": lines(before),
        "step_question": cut_quote(step),
        "step_answer": cut_quote(answer),
        "question": cut_quote(question),
    }
    messages = conversation(guard_wording(GRADE_STEP), parts)
    return llm.ask("grade_step", messages, read_step_grades, StepGradesReply)


def grade_outcome(
    llm: Llm, question: str, steps: Sequence[str], answer: str, accepted: Sequence[str] = ()
) -> dict[str, Grade]:
    """Grades of a finished path, by criterion (State-Aware RAG, Eq. 4); agreement only with accepted answers."""
    parts = {"steps": lines(steps), "proposed_answer": cut_quote(answer), "question": cut_quote(question)}
    if accepted:
        parts["accepted"] = lines(accepted)
    return llm.ask(
        "grade_outcome",
        conversation(guard_wording(GRADE_OUTCOME), parts),
        lambda reply: read_outcome_grades(reply, accepted=bool(accepted)),
        OutcomeGradesReply,
    )
