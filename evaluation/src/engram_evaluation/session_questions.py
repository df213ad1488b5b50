"""Check sessions on eighty questions whose evidence and right end are known.

Each question is asked once by a single query and once by a session of planner ``pool`` without a language model.
The check compares the first five passages of both, and the session's end with the right one.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, cast, get_args

from engram.core.budget import Budget
from engram.services.question.query import Query
from engram.wings.sessions.parts import sessions_of
from engram.wings.sessions.services.session_service import NewSession
from engram.wings.sessions.services.session_state import SessionRequest
from engram_evaluation.dataset import Dataset, build, load
from engram_evaluation.dataset_files import DatasetError, json_lines, read_text
from engram_evaluation.harness import Harness

FOLDER = Path(__file__).parent / "session_questions"
COUNTED_PASSAGES = 5
"""Passages of either answer that count."""
ROUNDS, SECONDS, PASSAGES = 3, 600.0, 100
FOUND_STOPS: frozenset[str] = frozenset({"sufficiency", "covered", "found", "answered", "sufficient"})
"""Ends by which a session says that it has the evidence."""

CorpusName = Literal["sample", "manual", "support_forum", "project_docs"]
Half = Literal["develop", "kept back"]
HALVES: tuple[Half, ...] = get_args(Half)
PARTS: dict[str, tuple[CorpusName, ...]] = {
    "first forty": ("sample", "manual"),
    "second forty": ("support_forum", "project_docs"),
}
"""The questions in the order in which they were written, by their corpora."""


@dataclass(frozen=True, slots=True)
class CheckedQuestion:
    """A question with a known end.

    Attributes:
        evidence: groups of passage ids; an answer needs one passage of each.
        right_stop: ``found`` or ``not_found``.
    """

    id: str
    corpus: CorpusName
    half: Half
    kind: str
    text: str
    evidence: tuple[frozenset[str], ...]
    right_stop: str


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """Outcome of one question.

    Attributes:
        query, session: evidence groups among the first five passages of the query and of the session.
        read: evidence groups among all passages that the session read.
        stop: why the session ended.
        queries: what its rounds asked, the question itself first.
    """

    question: CheckedQuestion
    query: int
    session: int
    read: int
    stop: str | None
    queries: tuple[str, ...]

    @property
    def is_right(self) -> bool:
        """Whether the session's end is the right one; ``found`` is wrong where evidence was not read."""
        if self.question.right_stop == "not_found":
            return self.stop == "not_found"
        return self.stop in FOUND_STOPS and self.read == len(self.question.evidence)


@dataclass(frozen=True, slots=True)
class Summary:
    """Counts over some outcomes."""

    name: str
    questions: int
    gains: int
    losses: int
    right: int
    wrong: int


def load_questions(folder: Path = FOLDER) -> list[CheckedQuestion]:
    """Read all questions.

    Raises:
        DatasetError: a line lacks a field or names an unknown half.
    """
    questions = []
    for where, row in json_lines(folder / "questions.jsonl"):
        half, corpus = read_text(where, row, "half"), read_text(where, row, "corpus")
        if half not in HALVES or corpus not in get_args(CorpusName):
            raise DatasetError(f"{where}: unknown half {half!r} or corpus {corpus!r}.")
        questions.append(
            CheckedQuestion(
                read_text(where, row, "_id"),
                cast("CorpusName", corpus),
                half,
                read_text(where, row, "kind"),
                read_text(where, row, "text"),
                tuple(frozenset(group) for group in row["evidence"]),
                read_text(where, row, "right_stop"),
            )
        )
    return questions


def manual(questions: Sequence[CheckedQuestion], folder: Path = FOLDER) -> Dataset:
    """Build the data set of the manual's passages, with the questions about it as its queries.

    Raises:
        DatasetError: a passage cannot be read, or evidence names an unknown one.
    """
    own = [question for question in questions if question.corpus == "manual"]
    rows = [(question.id, {"_id": question.id, "text": question.text}) for question in own]
    labels = [(one.id, one.id, passage) for one in own for group in one.evidence for passage in sorted(group)]
    return build("manual", json_lines(folder / "manual.jsonl"), rows, labels)


def corpora(questions: Sequence[CheckedQuestion], sample: Dataset, sets: Path) -> dict[CorpusName, Dataset]:
    """Load the corpora of the questions.

    Args:
        sample: the sample corpus.
        sets: the folder that holds the corpora of the second forty.

    Raises:
        DatasetError: a corpus is missing or cannot be read.
    """
    datasets: dict[CorpusName, Dataset] = {"sample": sample, "manual": manual(questions)}
    datasets |= {name: load(sets / name) for name in PARTS["second forty"]}
    return {name: dataset for name, dataset in datasets.items() if any(one.corpus == name for one in questions)}


def check(
    harness: Harness, questions: Sequence[CheckedQuestion], step: Callable[[], None]
) -> list[QuestionOutcome]:
    """Ask each question once and in a session; memory is off, so nothing is learned."""
    outcomes = []
    for question in questions:
        outcomes.append(_check_one(harness, question))
        step()
    return outcomes


def summaries(outcomes: Sequence[QuestionOutcome]) -> list[Summary]:
    """Count gains, losses and right ends: of each part and half, each half, each corpus and kind, and of all."""
    groups: dict[str, list[QuestionOutcome]] = {f"{part}, {half}": [] for part in PARTS for half in HALVES}
    groups |= {name: [] for name in (*HALVES, *get_args(CorpusName))}
    for one in outcomes:
        part = next(name for name, corpora in PARTS.items() if one.question.corpus in corpora)
        for name in (f"{part}, {one.question.half}", one.question.half, one.question.corpus, one.question.kind):
            groups.setdefault(name, []).append(one)
    groups["all"] = list(outcomes)
    return [_summary(name, members) for name, members in groups.items() if members]


def as_json(outcomes: Sequence[QuestionOutcome]) -> dict[str, Any]:
    """Give the summaries and each outcome as JSON takes them."""
    return {
        "summaries": [asdict(one) for one in summaries(outcomes)],
        "questions": [
            {
                "id": one.question.id,
                "half": one.question.half,
                "kind": one.question.kind,
                "evidence": len(one.question.evidence),
                "query": one.query,
                "session": one.session,
                "read": one.read,
                "stop": one.stop,
                "right": one.is_right,
                "queries": list(one.queries),
            }
            for one in outcomes
        ],
    }


def _summary(name: str, outcomes: Sequence[QuestionOutcome]) -> Summary:
    right = sum(one.is_right for one in outcomes)
    return Summary(
        name,
        len(outcomes),
        gains=sum(one.session > one.query for one in outcomes),
        losses=sum(one.session < one.query for one in outcomes),
        right=right,
        wrong=len(outcomes) - right,
    )


def _check_one(harness: Harness, question: CheckedQuestion) -> QuestionOutcome:
    query = Query(text=question.text, scope=harness.scope, top_k=COUNTED_PASSAGES, memory="off")
    answer = harness.services.answers.question.answer(query, explained=False)
    service = sessions_of(harness.services).sessions
    request = SessionRequest(top_k=COUNTED_PASSAGES, arm={"memory": "off", "profile": "default"})
    budget = Budget(rounds=ROUNDS, llm_calls=0, tokens=0, seconds=SECONDS, passages=PASSAGES)
    session = service.start(
        harness.scope, NewSession(question=question.text, planner="pool", request=request, budget=budget)
    )
    view = service.wait(harness.scope, session)
    ranked = [passage.passage_id for passage in view.passages]
    return QuestionOutcome(
        question,
        query=_groups(question, [passage.passage_id for passage in answer.passages]),
        session=_groups(question, ranked[:COUNTED_PASSAGES]),
        read=_groups(question, ranked),
        stop=view.stored.stop_reason,
        queries=tuple(text for one in view.rounds for text in one.said.get("queries", ())),
    )


def _groups(question: CheckedQuestion, passages: Sequence[str]) -> int:
    present = set(passages)
    return sum(bool(group & present) for group in question.evidence)
