"""Trajectories of memories over turns of verdicts, towards questions or away (GAM-RAG, Figure 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.services.verdict.receipt import Receipt
from engram.wings.why.parts import why_of
from engram_evaluation.dataset import Question
from engram_evaluation.harness import Harness

QUESTIONS = 3
FOLLOWED_SENTENCES = 2
"""Sentences of each kind, supported and rejected, that are followed for a question."""
CHANNEL = "task"

Matrix = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Course:
    """The task memory of one sentence.

    Attributes:
        question: position of the question whose first verdict named it.
        supported: what that verdict said of it.
        vectors: (turns + 1, d); the first is the sentence's own embedding.
    """

    question: int
    supported: bool
    text: str
    vectors: Matrix


@dataclass(frozen=True, slots=True)
class Trajectories:
    """A few questions, (q, d), and the memories of sentences judged for them."""

    questions: tuple[str, ...]
    directions: Matrix
    courses: tuple[Course, ...]

    @property
    def turns(self) -> int:
        """Turns of verdicts that were followed."""
        return len(self.courses[0].vectors) - 1

    def cut_turns(self, turns: int) -> "Trajectories":
        """The first so many turns."""
        return replace(
            self, courses=tuple(replace(course, vectors=course.vectors[: turns + 1]) for course in self.courses)
        )

    def cosines(self, course: Course) -> Matrix:
        """Return the cosine of a memory with its question by turn, (turns + 1,)."""
        return np.asarray(course.vectors @ self.directions[course.question], dtype=np.float64)

    def project(self) -> tuple[Matrix, list[Matrix], tuple[float, float]]:
        """Everything in the plane of the first two principal components.

        Returns:
            The questions, (q, 2); each course, (turns + 1, 2); the share of the variance along each axis.
        """
        points, shares = project_to_principal_plane(
            np.vstack([self.directions, *(course.vectors for course in self.courses)])
        )
        questions, rest = points[: len(self.questions)], points[len(self.questions) :]
        return questions, np.split(rest, len(self.courses)), shares

    def as_json(self) -> dict[str, Any]:
        """Plain JSON; six digits are what a float32 unit vector holds."""
        return {
            "questions": list(self.questions),
            "directions": self.directions.round(6).tolist(),
            "courses": [
                {
                    "question": course.question,
                    "supported": course.supported,
                    "text": course.text,
                    "vectors": course.vectors.round(6).tolist(),
                }
                for course in self.courses
            ],
        }

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "Trajectories":
        """The inverse of ``as_json``."""
        return cls(
            tuple(row["questions"]),
            np.array(row["directions"]),
            tuple(
                Course(course["question"], course["supported"], course["text"], np.array(course["vectors"]))
                for course in row["courses"]
            ),
        )


class Watch:
    """Follows a few judged sentences through a run.

    The first turn decides which: of the first questions with sentences of both kinds, the first of each kind.
    A sentence that one question's verdict supports and another's rejects is left out, since it is drawn two ways.
    """

    def __init__(self, harness: Harness, judged: Sequence[Question]) -> None:
        self._harness = harness
        self._judged = judged
        self._verdicts: dict[str, dict[int, bool]] = {}
        self._chosen: list[tuple[Question, dict[int, bool]]] | None = None
        self._texts: dict[int, str] = {}
        self._courses: dict[int, list[Matrix]] = {}

    def hear(self, question: Question, receipt: Receipt | None) -> None:
        """Take note of what a verdict changed; only those of the first turn count."""
        if self._chosen is None and receipt is not None:
            self._verdicts[question.id] = {
                change.sentence_id: bool(change.target)
                for change in receipt.changes or []
                if change.channel == CHANNEL
            }

    def look(self) -> None:
        """Read the memories as they are now, after a turn."""
        if self._chosen is None:
            self._chosen = self._choose()
        sentences = sorted(sentence for _, targets in self._chosen for sentence in targets)
        states = why_of(self._harness.services).explain.memories(self._harness.scope, sentences)
        for sentence in sentences:
            state = states[sentence][CHANNEL]
            self._texts[sentence] = state.text
            course = self._courses.setdefault(sentence, [state.base.astype(np.float64)])
            course.append(state.vector.astype(np.float64))

    def trajectories(self) -> Trajectories | None:
        """Return the trajectories; None where no verdict moved a task memory."""
        if not self._chosen:
            return None
        explain, scope = why_of(self._harness.services).explain, self._harness.scope
        return Trajectories(
            tuple(question.text for question, _ in self._chosen),
            np.stack([explain.direction(scope, question.text) for question, _ in self._chosen]).astype(np.float64),
            tuple(
                Course(at, supported, self._texts[sentence], np.stack(self._courses[sentence]))
                for at, (_, targets) in enumerate(self._chosen)
                for sentence, supported in targets.items()
            ),
        )

    def _choose(self) -> list[tuple[Question, dict[int, bool]]]:
        judgements: dict[int, set[bool]] = {}
        for targets in self._verdicts.values():
            for sentence, supported in targets.items():
                judgements.setdefault(sentence, set()).add(supported)
        taken: set[int] = set()
        chosen: list[tuple[Question, dict[int, bool]]] = []
        for question in self._judged:
            of_kind = {
                kind: [
                    sentence
                    for sentence, supported in sorted(self._verdicts.get(question.id, {}).items())
                    if supported is kind and judgements[sentence] == {kind} and sentence not in taken
                ][:FOLLOWED_SENTENCES]
                for kind in (True, False)
            }
            if of_kind[True] and of_kind[False]:
                chosen.append((question, {s: kind for kind, found in of_kind.items() for s in found}))
                taken.update(chosen[-1][1])
            if len(chosen) == QUESTIONS:
                break
        return chosen


def project_to_principal_plane(points: Matrix) -> tuple[Matrix, tuple[float, float]]:
    """The points, (n, d), in their first two principal components, (n, 2), and each one's share of the variance.

    A component's sign is arbitrary: its largest loading is made positive, so that the plane is always the same.
    """
    centred = points - points.mean(axis=0)
    left, singular, axes = np.linalg.svd(centred, full_matrices=False)
    signs = np.sign(axes[[0, 1], np.abs(axes[:2]).argmax(axis=1)])
    variances = singular**2
    first, second = (variances[:2] / variances.sum()).tolist()
    return left[:, :2] * singular[:2] * signs, (first, second)
