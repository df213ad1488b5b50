"""Sessions as trajectories: what was known before each step, what it did, what it saw and what it kept of that.

They are read off what sessions keep anyway. What a step's queries showed is read again from the corpus, so that a
passage that was deleted is in no trajectory; a session that lost one is left out, since its steps are not what
they were.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from engram.services.auth.scope import Scope
from engram.storage.corpus import passages
from engram.storage.corpus.passages import StoredSentence
from engram.storage.database import Database, Reader
from engram.wings.sessions.core import tree_search
from engram.wings.sessions.core.session import PoolSentence
from engram.wings.sessions.services.session_reading import load_whole
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.tree_branch import CONCLUDE, BranchState, format_thought, load_thought
from engram.wings.sessions.services.tree_options import parse_planner_options
from engram.wings.sessions.storage import session_lists

PAGE = 50


@dataclass(frozen=True, slots=True)
class SentenceLine:
    """A sentence and the passage it is of, by the caller's id."""

    sentence_id: int
    passage_id: str
    text: str


@dataclass(frozen=True, slots=True)
class TrajectoryStep:
    """One step.

    Attributes:
        action: what was done.
        question: what it went after.
        queries: what it searched for.
        notes: what was concluded before it, one line each.
        memory: sentences that were there before it.
        shown_sentences: sentences of the passages that its queries showed, best passage first.
        added_sentences: those of them that entered memory.
        answer: what came of it.
        observation, reply: of a turn of an agent what it was shown and what it said; None where rules took it.
    """

    action: str
    question: str
    queries: Sequence[str]
    notes: Sequence[str]
    memory: Sequence[SentenceLine]
    shown_sentences: Sequence[SentenceLine]
    added_sentences: Sequence[SentenceLine]
    answer: str
    observation: str | None = None
    reply: str | None = None


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A session from its question to its answer.

    Attributes:
        path: which of the session's; a tree has one for each conclusion.
        rating: of the conclusion by the judge without a key, in [0, 1]; None where nobody rated it.
        insert_only: whether an agent was offered no updates.
    """

    session_id: UUID
    planner: str
    question: str
    path: int
    steps: Sequence[TrajectoryStep]
    answer: str
    rating: float | None = None
    insert_only: bool = False


class TrajectoryService:
    """Reads sessions as trajectories."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read_all(self, scope: Scope) -> Iterator[Trajectory]:
        """For the evaluation: yield the trajectory of every stopped session with an answer, in order of ids."""
        collection_id, after = scope.collection.id, None
        while True:
            with self._database.snapshot() as reader:
                page = session_lists.list_stopped(reader, collection_id, after, PAGE)
                rows = [load_whole(reader, collection_id, session) for session in page]
                states = [one.to_state(collection_id) for one in rows if one is not None]
                whole = [state for state in states if state.stop_reason != "erased"]
                per_session = [list(_trajectories(reader, state)) for state in whole]
            for trajectories in per_session:
                yield from trajectories
            if len(page) < PAGE:
                return
            after = page[-1]


def _trajectories(reader: Reader, state: SessionState) -> Iterator[Trajectory]:
    planner, inner = _find_planner(state)
    searched = _QueryResults(reader, state)
    if "tree" in inner:
        yield from _paths(state, planner, inner["tree"], searched)
    elif state.conclusion is not None and state.conclusion.text:
        steps, options = _chain(state, searched), parse_planner_options(state.request.options)
        yield Trajectory(
            state.id, planner, state.question, 0, steps, state.conclusion.text, insert_only=options.insert_only
        )


def _find_planner(state: SessionState) -> tuple[str, Mapping[str, Any]]:
    """Return the planner and its state; ``auto`` has those of the planner that it picked."""
    if state.planner == "auto":
        return str(state.plan_state.get("planner", state.planner)), state.plan_state.get("of", {})
    return state.planner, state.plan_state


class _QueryResults:
    """Results of the queries of a session's rounds."""

    def __init__(self, reader: Reader, state: SessionState) -> None:
        self._of_query = {
            str(text): [passage for passage, _ in passage_ids]
            for one in state.rounds
            for text, passage_ids in zip(one.said.get("queries", ()), one.said.get("shown", ()), strict=False)
        }
        passage_ids = {passage for of_query in self._of_query.values() for passage in of_query}
        passage_ids |= {one.said["passage"] for one in state.rounds if one.said.get("passage") is not None}
        ids = sorted(passage_ids | {one.passage_id for one in state.pool})
        self._named = {
            key: one.external_id for key, one in passages.load_by_id(reader, state.collection_id, ids).items()
        }
        self._sentences: dict[int, list[StoredSentence]] = {}
        for sentence in passages.list_sentences(reader, state.collection_id, sorted(passage_ids)):
            self._sentences.setdefault(sentence.passage_id, []).append(sentence)

    def lines(self, queries: Sequence[str], passage: int | None = None) -> list[SentenceLine]:
        """Sentences of the passages that queries showed, each once; of this passage alone, if one went by."""
        passage_ids = dict.fromkeys(found for text in queries for found in self._of_query.get(text, ()))
        if passage is not None:
            passage_ids = {passage: None}
        return [
            SentenceLine(sentence.id, self._named[passage], sentence.text)
            for passage in passage_ids
            for sentence in self._sentences.get(passage, ())
            if passage in self._named
        ]

    def line(self, sentence: PoolSentence) -> SentenceLine:
        """A sentence of the pool."""
        return SentenceLine(sentence.sentence_id, self._named[sentence.passage_id], sentence.text)


def _chain(state: SessionState, searched: _QueryResults) -> list[TrajectoryStep]:
    """The rounds of a planner that goes one way."""
    steps: list[TrajectoryStep] = []
    notes: list[str] = []
    for one in state.rounds:
        queries = [str(text) for text in one.said.get("queries", ())]
        question = str(one.said.get("sub_question") or state.question)
        answer = str(one.said.get("answer") or "")
        before = [searched.line(line) for line in state.pool if line.round < one.number]
        kept_lines = [searched.line(line) for line in state.pool if line.round == one.number]
        seen_lines = searched.lines(queries, one.said.get("passage"))
        turn = (one.said.get("observation"), one.said.get("reply"))
        steps.append(
            TrajectoryStep(
                one.action, question, queries, list(notes), before, seen_lines, kept_lines, answer, *turn
            )
        )
        if answer:
            notes.append(f"{question} {answer}")
    return steps


def _paths(
    state: SessionState, planner: str, stored: Mapping[str, Any], searched: _QueryResults
) -> Iterator[Trajectory]:
    """One trajectory for each conclusion of a tree, without what other branches did meanwhile."""
    tree = tree_search.from_data(stored, load_thought)
    pool = {one.sentence_id: one for one in state.pool}
    first = [searched.line(one) for one in state.pool if one.round == 1]
    for node in tree.nodes:
        end: BranchState = node.state
        if end.did != CONCLUDE or not end.answer:
            continue
        steps = [
            TrajectoryStep(
                "ask",
                state.question,
                [state.question],
                [],
                [],
                searched.lines([state.question]),
                first,
                "",
            )
        ]
        for at in tree_search.path(tree, node.id)[1:-1]:
            thought = tree.nodes[at].state
            kept_lines = [searched.line(pool[one]) for one in thought.kept if one in pool]
            memory = [*steps[-1].memory, *steps[-1].added_sentences]
            notes = [*steps[-1].notes, *([steps[-1].answer] if steps[-1].answer else [])]
            seen_lines = searched.lines(thought.searched)
            steps.append(
                TrajectoryStep(
                    thought.did,
                    thought.question,
                    thought.searched,
                    notes,
                    memory,
                    seen_lines,
                    kept_lines,
                    format_thought(thought),
                )
            )
        yield Trajectory(state.id, planner, state.question, node.id, steps, end.answer, end.rating)
