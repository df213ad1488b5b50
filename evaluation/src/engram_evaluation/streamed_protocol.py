"""The protocol ``streamed``: a configured model answers from documents that go by (GRAM, Tables 2, 3 and 4).

Every method sees the same questions, and the documents that the data set gives with each, in its order. Nothing is
ingested and nothing is learned. The agents are prompted and not trained, so figures are those of the model.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from engram.context.errors import InvalidRequestError, LlmNotConfiguredError, LlmRefusalError
from engram.providers.embedder import Embedder
from engram.providers.language import Language
from engram.providers.llm import Llm
from engram.wings.agent.llm import agent_model, agent_prompts
from engram_evaluation import streamed_baselines, text_memory
from engram_evaluation.agent_environment import GraphMemoryEnvironment, Text
from engram_evaluation.agent_protocol import documents_of, select_streamed_questions
from engram_evaluation.answers_protocol import marks
from engram_evaluation.change_table import bootstrap_interval
from engram_evaluation.dataset import Dataset, Question
from engram_evaluation.finished_phases import Phase, Phases, code_fingerprint
from engram_evaluation.protocols import Begin, measure_in_parts
from engram_evaluation.report_table import Grid
from engram_evaluation.retrieval_metrics import QuestionScores, summary
from engram_evaluation.run_options import Options
from engram_evaluation.table_report import TableReport

GROUP = "all questions"
GRAPH, INSERT_ONLY, TEXT = "graph", "graph-without-update", "text-memory"
BASELINES: Mapping[str, Callable[[Llm, str, Sequence[Text], Embedder], str]] = {
    "zero-shot": streamed_baselines.zero_shot,
    "chain-of-thought": streamed_baselines.chain_of_thought,
    "rag": streamed_baselines.rag,
    "rolling-summary": streamed_baselines.rolling_summary,
}
METHODS = (*BASELINES, TEXT, INSERT_ONLY, GRAPH)
COLUMNS = {
    "f1": "F1",
    "em": "EM",
    "contains": "contains",
    "turns": "turns",
    "valid": "valid",
    "unusable": "unusable",
    "calls": "calls",
    "prompt_tokens": "tokens in",
    "completion_tokens": "tokens out",
}
DIGITS = {"turns": 1, "calls": 1, "prompt_tokens": 0, "completion_tokens": 0}
COMPARED_METHODS = {
    "Update (GRAM, Table 3)": {"without": INSERT_ONLY, "with": GRAPH},
    "Memory (GRAM, Table 4)": {"text": TEXT, "graph": GRAPH},
}
"""Title of a table -> its settings and their methods; the second is compared with the first."""
NOTE = """\
The model is prompted, not trained. turns: interaction turns (AIT). valid: share of plays of which every turn was
one. unusable: share of the questions of which a reply could not be used; they count as wrong. calls, tokens: of a
question, as the endpoint counts them."""


@dataclass(frozen=True, slots=True)
class StreamProgress:
    """A run's progress; what ``measure_in_parts`` needs of a run."""

    begin: Begin


@dataclass(frozen=True, slots=True)
class StreamedReport:
    """All methods on one data set."""

    dataset: str
    command: str
    model: str
    phases: Sequence[Phase]

    def as_tables(self) -> TableReport:
        """Return the report with a table of all methods (GRAM, Table 2), then of what two of them differ by."""
        rows = [{"arm": phase.arm} | row.as_json() for phase in self.phases for row in phase.rows]
        return TableReport("streamed", self.dataset, self.command, self._tables(), NOTE, rows)

    def _tables(self) -> dict[str, Grid]:
        means = {phase.arm: summary(phase.rows) for phase in self.phases}
        rows = [[arm, *(_cell(values, name) for name in COLUMNS)] for arm, values in means.items()]
        tables = {
            f"{self.model}, {len(self.phases[0].rows)} questions (GRAM, Table 2)": Grid(
                ["method", *COLUMNS.values()], rows
            )
        }
        for title, settings in COMPARED_METHODS.items():
            if all(arm in means for arm in settings.values()):
                tables[title] = self._build_comparison(settings, means)
        return tables

    def _build_comparison(self, settings: Mapping[str, str], means: Mapping[str, Mapping[str, float]]) -> Grid:
        """Compare two arms: F1 and tokens of each, and the difference of F1, second less first.

        Args:
            settings: name in the table -> arm, of two arms.
            means: arm -> metric -> mean over the questions.
        """
        rows = []
        for setting, arm in settings.items():
            tokens = means[arm]["prompt_tokens"] + means[arm]["completion_tokens"]
            rows.append([setting, _cell(means[arm], "f1"), f"{tokens:.0f}"])
        scores = {phase.arm: np.array([row.values["f1"] for row in phase.rows]) for phase in self.phases}
        first, second = settings.values()
        difference = scores[second] - scores[first]
        low, high = bootstrap_interval(difference)
        rows.append(["difference", f"{difference.mean():+.3f} ({low:+.3f} to {high:+.3f})", ""])
        return Grid(["setting", "F1 (95% interval)", "tokens"], rows)


@dataclass(frozen=True, slots=True)
class MethodOutcome:
    """Outcome of a method on a question; ``turns`` and ``valid`` are an agent's, None of the others."""

    answer: str
    turns: int | None = None
    valid: bool | None = None


def measure_streamed(
    dataset: Dataset,
    options: Options,
    llm: Llm | None,
    language: Language,
    embedder: Embedder,
    folder: Path,
    begin: Begin,
) -> StreamedReport:
    """Have the model answer every question by each of ``options.methods``, all by default.

    Raises:
        LlmNotConfiguredError: there is no model.
        InvalidRequestError: a method is unknown, or no question comes with passages and accepted answers.
        LlmError: the endpoint failed; what was answered before is kept for the next run.
    """
    if llm is None:
        raise LlmNotConfiguredError("--protocol streamed needs ENGRAM_LLM_BASE_URL to be set.")
    for method in options.methods:
        if method not in METHODS:
            raise InvalidRequestError(f"--methods are some of {', '.join(METHODS)}; {method!r} is none.")
    questions = select_streamed_questions(dataset, options.limit)
    store = Phases(
        folder,
        {
            "dataset": [dataset.name, dataset.fingerprint],
            "code": code_fingerprint(),
            "llm": llm.model,
            "encoder": embedder.fingerprint,
            "protocol": "streamed",
        },
    )
    plays: dict[str, Callable[[str, Sequence[Text]], MethodOutcome]] = {
        **{name: partial(_answer_by_baseline, llm, embedder, name) for name in BASELINES},
        TEXT: partial(_answer_over_text, llm, embedder),
        INSERT_ONLY: partial(_answer_over_graph, llm, language, insert_only=True),
        GRAPH: partial(_answer_over_graph, llm, language, insert_only=False),
    }
    phases = []
    for method in options.methods or METHODS:
        rows = measure_in_parts(
            StreamProgress(begin),
            method,
            (store, method, 0, None),
            questions,
            partial(_mark_answer, llm, dataset, plays[method]),
        )
        phases.append(Phase(method, GROUP, 0, None, tuple(rows)))
    return StreamedReport(dataset.name, options.command(dataset.name), llm.model, phases)


def _mark_answer(
    llm: Llm, dataset: Dataset, play: Callable[[str, Sequence[Text]], MethodOutcome], question: Question
) -> QuestionScores:
    before, unusable = llm.usage, 0.0
    outcome = MethodOutcome("")
    details: dict[str, Any] = {}
    try:
        outcome = play(question.text, documents_of(dataset, question))
    except LlmRefusalError as error:
        unusable, details = 1.0, {"unusable": error.detail}
    values = marks(outcome.answer, question.answers) | {
        "unusable": unusable,
        "calls": float(llm.usage.calls - before.calls),
        "prompt_tokens": float(llm.usage.prompt_tokens - before.prompt_tokens),
        "completion_tokens": float(llm.usage.completion_tokens - before.completion_tokens),
    }
    if outcome.turns is not None:
        values |= {"turns": float(outcome.turns), "valid": float(bool(outcome.valid))}
    return QuestionScores(question.id, question.type, (), values, {"answer": outcome.answer, **details})


def _answer_by_baseline(
    llm: Llm, embedder: Embedder, name: str, question: str, documents: Sequence[Text]
) -> MethodOutcome:
    return MethodOutcome(BASELINES[name](llm, question, documents, embedder))


def _answer_over_text(llm: Llm, embedder: Embedder, question: str, documents: Sequence[Text]) -> MethodOutcome:
    play, answer = text_memory.begin(question, documents), None
    while answer is None and play.turn <= play.turns:
        play, answer = text_memory.carry_out(play, agent_model.ask_raw_turn(llm, play.messages), embedder)
    return MethodOutcome(answer or "", play.turn - 1, play.valid)


def _answer_over_graph(
    llm: Llm, language: Language, question: str, documents: Sequence[Text], *, insert_only: bool
) -> MethodOutcome:
    environment = GraphMemoryEnvironment(language=language, insert_only=insert_only)
    environment.reset(question, documents)
    ended = False
    info: dict[str, Any] = {}
    while not ended:
        messages = agent_prompts.messages(environment.observation, insert_only=insert_only)
        *_, terminated, truncated, info = environment.step(agent_model.ask_raw_turn(llm, messages))
        ended = terminated or truncated
    return MethodOutcome(info["answer"], info["turn"] - 1, bool(info["format"]))


def _cell(values: Mapping[str, float], name: str) -> str:
    return f"{values[name]:.{DIGITS.get(name, 3)}f}" if name in values else ""
