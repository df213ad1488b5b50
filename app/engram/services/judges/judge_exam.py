"""Control questions that a judge's model answers before its verdicts may teach.

A verdict of the right form can still be wrong: a small model copies the numbers of the prompt's example, or names
every sentence. The facts are made up, so a model cannot know them. Each case has sentences that share names with
the answer and do not carry it.
"""

from dataclasses import dataclass

from engram.context.errors import LlmRefusalError, UnfitModelError
from engram.providers.llm import Llm

LEAST_PRECISION = 0.75
LEAST_RECALL = 0.75


@dataclass(frozen=True, slots=True)
class ControlQuestion:
    """A question, numbered sentences, and the numbers of those that carry the answer."""

    question: str
    sentences: tuple[str, ...]
    supporting: frozenset[int]


CONTROL_QUESTIONS = (
    ControlQuestion(
        "In which town was the founder of Orlin Works born?",
        (
            "Orlin Works makes scales for laboratories.",
            "Orlin Works was founded by Petra Vossel in 1911.",
            "Orlin Works moved to a new hall in 1936.",
            "Petra Vossel was born in Harnby.",
            "Harnby has a market on Fridays.",
        ),
        frozenset({1, 3}),
    ),
    ControlQuestion(
        "How long is the Merrow Bridge?",
        (
            "The Merrow Bridge is painted green.",
            "The Calder Bridge is 310 metres long.",
            "The Merrow Bridge was closed for repairs in 1978.",
            "The Merrow Bridge is 224 metres long.",
        ),
        frozenset({3}),
    ),
    ControlQuestion(
        "Who teaches chemistry at Dunmere School?",
        (
            "Dunmere School has four hundred pupils.",
            "Ilse Tarn teaches history at Dunmere School.",
            "The chemistry room of Dunmere School has new benches.",
        ),
        frozenset(),
    ),
    ControlQuestion(
        "When does the ferry to Skell Island leave on Sundays?",
        (
            "On Sundays the ferry to Skell Island leaves at ten.",
            "Skell Island has no cars.",
            "On weekdays the ferry to Skell Island leaves at seven.",
            "The ferry to Brae Island leaves at nine on Sundays.",
        ),
        frozenset({0}),
    ),
    ControlQuestion(
        "Which river flows past the house where Anton Reile wrote his first novel?",
        (
            "Anton Reile wrote his second novel in Kolm.",
            "Anton Reile wrote his first novel in a house in Tessin.",
            "The river Ande flows past Kolm.",
            "Anton Reile kept bees.",
            "The river Lorne flows past Tessin.",
        ),
        frozenset({1, 4}),
    ),
    ControlQuestion(
        "What colour is the flag of Vint?",
        (
            "Vint lies on a hill.",
            "The flag of Vint was first flown in 1848.",
            "The people of Vint speak two languages.",
            "The flag of Vint is orange.",
            "The flag of Sarn is blue.",
        ),
        frozenset({3}),
    ),
)


@dataclass(frozen=True, slots=True)
class ExamResult:
    """Counts over the control questions.

    Attributes:
        named: sentences that the model named.
        right: of these, those that carry the answer.
        expected: sentences that carry the answer.
        refused: questions without a usable reply.
    """

    named: int
    right: int
    expected: int
    refused: int

    @property
    def passed(self) -> bool:
        """Tell whether the named sentences are right and the right ones named, both often enough."""
        return self.right >= LEAST_PRECISION * self.named and self.right >= LEAST_RECALL * self.expected

    def __str__(self) -> str:
        refused = f", and {self.refused} replies were unusable" if self.refused else ""
        return (
            f"{self.right} of {self.expected} supporting sentences named, {self.named - self.right} wrong{refused}"
        )


def examine(llm: Llm) -> ExamResult:
    """Ask the control questions.

    Raises:
        LlmError: the endpoint failed.
    """
    named = right = refused = 0
    for control in CONTROL_QUESTIONS:
        try:
            judgement = llm.judge_support(control.question, list(enumerate(control.sentences)))
        except LlmRefusalError:
            refused += 1
            continue
        named += len(judgement.supporting)
        right += len(control.supporting.intersection(judgement.supporting))
    return ExamResult(named, right, sum(len(control.supporting) for control in CONTROL_QUESTIONS), refused)


class ModelExam:
    """The exam of one process's model: asked when first needed, and remembered.

    Nothing is remembered of an exam that the endpoint failed.
    """

    def __init__(self, llm: Llm | None, *, required: bool) -> None:
        """``required``: whether the model has to pass; else nothing is asked."""
        self._llm = llm
        self._required = required
        self._result: ExamResult | None = None

    def require(self) -> None:
        """Go on only with a model that passes.

        Raises:
            UnfitModelError: it does not.
            LlmError: the endpoint failed.
        """
        if not self._required or self._llm is None:
            return
        if self._result is None:
            self._result = examine(self._llm)
        if not self._result.passed:
            raise UnfitModelError(
                f"The model {self._llm.model} failed the control questions ({self._result}), so what it says would "
                "teach errors. Use a better model, or set ENGRAM_JUDGE_EXAM=false."
            )
