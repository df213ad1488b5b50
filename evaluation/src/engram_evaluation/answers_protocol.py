"""The protocol ``answers``: retrieve, answer in words from the sentences found, and be marked.

Needs accepted answers and no relevance labels. Nothing is learned: memory is off.
"""

import time
from collections.abc import Sequence

from engram.context.errors import InvalidRequestError, LlmNotConfiguredError, LlmRefusalError
from engram.core.filter.logged_verdict import Expansion
from engram.providers.llm import DraftAnswer, Llm, Usage
from engram.services.question.answer import Answer
from engram_evaluation import answer_marking
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.finished_phases import Phase
from engram_evaluation.harness import Harness, QueryArm
from engram_evaluation.protocols import Run, measure_in_parts
from engram_evaluation.retrieval_metrics import QuestionScores, score

GROUP = "all questions"


def select_answerable(dataset: Dataset, limit: int | None) -> list[Question]:
    """The first ``limit`` questions with an accepted answer, labelled ones first.

    Raises:
        InvalidRequestError: there are none.
    """
    questions = [question for question in (*dataset.questions, *dataset.unlabelled) if question.answers]
    if not questions:
        raise InvalidRequestError(f"{dataset.name} has no answers (metadata.answers), which answers needs.")
    return questions[:limit]


def answers(run: Run) -> list[Phase]:
    """Answer and mark every question.

    Raises:
        LlmNotConfiguredError: there is no endpoint to answer.
        LlmError: it failed; what was marked before is kept for the next run.
    """
    llm = run.harness.services.models.llm
    if llm is None:
        raise LlmNotConfiguredError("--protocol answers needs ENGRAM_LLM_BASE_URL to be set.")
    questions = select_answerable(run.dataset, run.options.limit)
    store = run.store(profile=run.options.profile, top_k=run.options.top_k)
    arm = run.options.profile
    asking = QueryArm(arm, "off", run.options.stop_rule)
    rows = measure_in_parts(
        run,
        f"{arm}: answers",
        (store, arm, 0, None),
        questions,
        lambda question: mark_question(run.harness, llm, question, asking, run.options.top_k),
    )
    return [Phase(arm, GROUP, 0, None, tuple(rows))]


def evidence(answer: Answer, top_k: int) -> list[tuple[int, str]]:
    """The sentences of the first passages with their ids, in the order of the passages."""
    return [
        (sentence.sentence_id, sentence.text)
        for passage in answer.passages[:top_k]
        for sentence in passage.sentences
    ]


def mark_question(
    harness: Harness,
    llm: Llm,
    question: Question,
    asking: QueryArm,
    top_k: int,
    units: Sequence[Expansion] = (),
) -> QuestionScores:
    """One question, asked with these units, answered and marked; ``ms`` is of the search and the answer in words.

    A reply that cannot be used is an empty answer, and counts as ``unusable``; so does an unusable mark, which
    leaves ``strict`` and ``lenient`` out.

    Args:
        top_k: passages whose sentences the answer is made of.

    Raises:
        LlmError: the endpoint failed.
    """
    answer, seen = harness.ask(question, asking, read=True, expansions=units)
    before, began = llm.usage, time.perf_counter()
    draft, unusable = DraftAnswer("", (), sufficient=False), 0.0
    try:
        draft = llm.answer(question.text, evidence(answer, top_k))
    except LlmRefusalError:
        unusable = 1.0
    answering_ms = (time.perf_counter() - began) * 1000.0
    answered = llm.usage
    grades = {}
    try:
        grade = llm.grade(question.text, question.answers, draft.text)
        grades = {"strict": float(grade.strict), "lenient": float(grade.lenient)}
    except LlmRefusalError:
        unusable = 1.0
    (row,) = score([seen])
    values = row.values | {
        **marks(draft.text, question.answers),
        **grades,
        "unusable": unusable,
        **_count_tokens("", before, answered),
        **_count_tokens("judge_", answered, llm.usage),
        "ms": seen.ms + answering_ms,
    }
    return QuestionScores(question.id, question.type, row.ranking, values)


def marks(answer: str, accepted: Sequence[str]) -> dict[str, float]:
    """Score an answer by its words alone."""
    return {
        "em": answer_marking.score_exact_match(answer, accepted),
        "f1": answer_marking.token_f1(answer, accepted),
        "contains": answer_marking.contains(answer, accepted),
    }


def _count_tokens(prefix: str, before: Usage, after: Usage) -> dict[str, float]:
    return {
        f"{prefix}prompt_tokens": float(after.prompt_tokens - before.prompt_tokens),
        f"{prefix}completion_tokens": float(after.completion_tokens - before.completion_tokens),
    }
