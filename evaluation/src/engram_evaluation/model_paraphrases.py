"""Paraphrases by the configured language model, for protocols that ask questions again in other words.

Each is checked before it is asked: it has the names and numbers of the question and no others, it is not the same
words, and it does not give the answer away. What is refused gives way to the data set's own paraphrase, if it has
one.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from engram.context.errors import InvalidRequestError, LlmRefusalError
from engram.providers.language import Language
from engram.providers.llm import Llm, prompts
from engram.providers.llm.expansion_prompts import Wording
from engram.providers.llm.replies import QuestionReply, read_question
from engram_evaluation import answer_marking
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.protocols import Run, choose_teaching, measure_in_parts
from engram_evaluation.retrieval_metrics import QuestionScores
from engram_evaluation.run_options import Options

Reason = Literal["unusable", "identical", "names", "numbers", "answer"]
"""Reason for a refusal; "answer": the paraphrase holds the answer, and the question does not."""
ARM = "paraphrases by the model"
WORDING = Wording(
    """\
You put a question into other words. It asks for the same thing under the same conditions, so that whoever knows the
answer to the one knows it to the other. Change the order of the sentence and take other verbs and nouns wherever
they mean the same. Names, titles, dates and numbers stay letter for letter as they are. Add nothing, leave nothing
out, and do not answer.""",
    'Reply with one JSON object: {"question": "the question in other words"}',
)
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class RewordingOutcome:
    """Outcome of rewording questions.

    Attributes:
        questions: that were to be reworded.
        refused: paraphrases by the reason of their refusal.
        replaced: how many of these questions have the data set's own paraphrase instead; the rest have none.
    """

    model: str
    questions: int
    refused: Mapping[str, int]
    replaced: int

    def remark(self) -> str:
        """Return the outcome in words."""
        refused = sum(self.refused.values())
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(self.refused.items()))
        made = f"{self.questions - refused} of {self.questions} paraphrases are by {self.model}."
        if not refused:
            return made
        return (
            f"{made} Refused: {refused} ({reasons}). The data set's own takes the place of {self.replaced}, "
            f"{refused - self.replaced} questions have none."
        )


def to_reword(dataset: Dataset, options: Options) -> list[Question]:
    """Return the questions that a run asks again: those that it judges, or of ``session`` those that it asks."""
    questions = list(dataset.questions)
    if options.protocol == "session":
        questions = [one for one in questions if len(one.relevant) >= options.at_least]
    elif options.protocol == "levels":
        questions = choose_teaching(dataset)
    elif options.protocol != "same" and dataset.paraphrases:
        questions = [one for one in questions if one.id in dataset.paraphrases]
    return questions[: options.limit]


def reword(run: Run, llm: Llm, language: Language) -> tuple[Dataset, RewordingOutcome]:
    """Return the run's data set with paraphrases by the model, and what became of them.

    Raises:
        InvalidRequestError: no paraphrase is left.
        LlmError: the endpoint failed; what it gave before is kept for the next run.
    """
    dataset = run.dataset
    questions = to_reword(dataset, run.options)
    phase_key = (run.store(llm=llm.model, wording=WORDING.task), ARM, 0, None)
    rows = measure_in_parts(run, ARM, phase_key, questions, lambda question: _reword(llm, question))
    paraphrases: dict[str, tuple[Question, ...]] = {}
    refused, replaced = Counter[str](), 0
    for question, row in zip(questions, rows, strict=True):
        text = row.details.get("paraphrase")
        reason = "unusable" if text is None else refusal(question, text, language)
        if reason is None:
            paraphrases[question.id] = (_paraphrase(question, str(text)),)
            continue
        refused[reason] += 1
        if question.id in dataset.paraphrases:
            paraphrases[question.id] = dataset.paraphrases[question.id]
            replaced += 1
    if not paraphrases:
        raise InvalidRequestError(f"{llm.model} made no paraphrase that can be asked: {dict(refused)}.")
    texts = json.dumps([[key, one.text] for key, group in paraphrases.items() for one in group])
    fingerprint = f"{dataset.fingerprint}-{hashlib.sha256(texts.encode()).hexdigest()[:8]}"
    reworded = replace(dataset, paraphrases=paraphrases, fingerprint=fingerprint)
    return reworded, RewordingOutcome(llm.model, len(questions), dict(refused), replaced)


def refusal(question: Question, text: str, language: Language) -> Reason | None:
    """Return the first reason to refuse a text as a paraphrase of a question; None if there is none."""
    if answer_marking.normalise_answer(text) == answer_marking.normalise_answer(question.text):
        return "identical"
    if Counter(_NUMBER.findall(text)) != Counter(_NUMBER.findall(question.text)):
        return "numbers"
    if not _holds(text, language.analyse_question(question.text).entities) or not _holds(
        question.text, language.analyse_question(text).entities
    ):
        return "names"
    given_away = [one for one in question.answers if _holds(text, [one]) and not _holds(question.text, [one])]
    return "answer" if given_away else None


def _reword(llm: Llm, question: Question) -> QuestionScores:
    """Ask for a paraphrase; there is none if the reply cannot be used."""
    messages = prompts.conversation(prompts.guard_wording(WORDING), {"question": prompts.cut_quote(question.text)})
    try:
        text = llm.ask("paraphrase", messages, read_question, QuestionReply)
    except LlmRefusalError as error:
        return QuestionScores(question.id, question.type, (), {}, {"unusable": error.detail})
    return QuestionScores(question.id, question.type, (), {}, {"paraphrase": text})


def _paraphrase(question: Question, text: str) -> Question:
    return Question(f"{question.id}-para", text, question.relevant, question.gold, question.type, question.answers)


def _holds(text: str, names: Collection[str]) -> bool:
    """Whether a text has the words of each name in one piece, whatever their case."""
    words = _words(text)
    return all(_words(name) in words for name in names)


def _words(text: str) -> str:
    return f" {' '.join(_WORD.findall(text.casefold()))} "
