"""One branch of the tree planner: actions A1 to A5 of State-Aware RAG, carried out one after the other.

Every branch starts from the working memory that all branches share and adds to a copy of its own, so that rollouts
can run side by side and come out the same whoever is done first; the planner merges what they found, in order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from engram.context.errors import BudgetSpentError, LlmError, LlmNotConfiguredError
from engram.providers.llm import Llm
from engram.services.question.query import Fallback
from engram.wings.sessions.core.rewards import convert_rating
from engram.wings.sessions.core.session import CurationCounts, Gap, Note, NoteKind, PoolSentence
from engram.wings.sessions.core.tree_search import SearchLimits
from engram.wings.sessions.llm import reasoning, session_model
from engram.wings.sessions.services.query_drift import list_invented_names, sources
from engram.wings.sessions.services.sentence_sifting import SiftedSentences, sift
from engram.wings.sessions.services.session_state import SessionState
from engram.wings.sessions.services.session_tools import AskedQuery, StepTools

DECOMPOSE, CONSOLIDATE, REFINE, REDIRECT, CONCLUDE = "decompose", "consolidate", "refine", "redirect", "conclude"
"""A1 to A5. An action may carry a number after a colon: the same again, to another end."""
CALLS = {DECOMPOSE: 5, CONSOLIDATE: 1, REFINE: 1, REDIRECT: 1, CONCLUDE: 2}
"""Calls of the LLM that an action takes, if no reply has to be asked for again."""


_LISTS = ("cites", "searched", "kept")


@dataclass(frozen=True, slots=True)
class BranchState:
    """The state at a node, (q, r) of the paper; its memory is the session's.

    Attributes:
        did: the action that was in fact carried out: a decomposition may find that nothing is missing.
        question: what it went after.
        answer: what came of it; empty if nothing did.
        cites: sentences that the answer rests on.
        searched: its queries.
        kept: sentences that the step kept of what it retrieved.
        settled: whether the evidence settles the answer.
        pending: a reworded question that nobody has asked yet.
        rating: of a conclusion, in [0, 1].
    """

    did: str = ""
    question: str = ""
    answer: str = ""
    cites: tuple[int, ...] = ()
    searched: tuple[str, ...] = ()
    kept: tuple[int, ...] = ()
    settled: bool = False
    pending: str | None = None
    rating: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the state as JSON."""
        return asdict(self) | {name: list(getattr(self, name)) for name in _LISTS}


def load_thought(stored: Mapping[str, Any]) -> BranchState:
    """The thought that ``BranchState.to_json`` gave."""
    return BranchState(**{**stored, **{name: tuple(stored[name]) for name in _LISTS}})


@dataclass(frozen=True, slots=True)
class MemoryAblation:
    """Parts of memory management that can be left out (State-Aware RAG, Table 2).

    Attributes:
        consolidation: whether sentences are chosen from what was retrieved; else all of them are kept.
        update: whether a step sees what steps before it found; else only what itself did, and their answers.
    """

    consolidation: bool = True
    update: bool = True


@dataclass(slots=True)
class Branch:
    """Position of a rollout: the path to its node, and its view of the working memory.

    Attributes:
        pool, notes: the shared memory, and what this rollout made of it.
        tried: sub-questions that other branches began with from the same node.
        queries: its queries, in order.
        warnings: what was done by rules because the endpoint failed it.
    """

    state: SessionState
    tools: StepTools
    means: MemoryAblation
    path: list[BranchState]
    pool: list[PoolSentence]
    notes: list[Note]
    tried: Sequence[str] = ()
    queries: list[AskedQuery] = field(default_factory=list)
    curated: CurationCounts = field(default_factory=CurationCounts)
    warnings: list[Fallback] = field(default_factory=list)

    def act(self, action: str) -> BranchState:
        """Carry out an action; the path goes on with what it came to.

        Raises:
            LlmError: the endpoint failed, or the budget is spent; what was found before stays.
        """
        carry_out = {
            DECOMPOSE: self._decompose,
            CONSOLIDATE: self._consolidate,
            REFINE: self._refine,
            REDIRECT: self._redirect,
            CONCLUDE: self._conclude,
        }
        thought = carry_out[action.partition(":")[0]]()
        self.path.append(thought)
        return thought

    def seek(self, question: str, queries: Sequence[str]) -> list[PoolSentence]:
        """Ask the queries and keep what is worth keeping; nothing once no passage may be read.

        Queries that name what nothing that was read names are not asked, nor those that were.
        """
        before = {query.text for query in self.queries}
        known_sources = sources(self._session_state)
        texts = [
            one for one in queries if one not in before and not list_invented_names(self.tools, one, known_sources)
        ]
        if not texts and question not in before and not list_invented_names(self.tools, question, known_sources):
            texts = [question]
        first_query = len(self.queries)
        for text in dict.fromkeys(texts):
            try:
                self.queries.append(self.tools.ask(text, pool=[one.sentence_id for one in self.pool]))
            except BudgetSpentError:
                break
        asked, gap = self.queries[first_query:], Gap(question)
        if self.means.consolidation:
            sifted = sift(self._session_state, self.tools, asked, question, gap)
        else:
            every = {sentence.id: gap for query in asked for one in query.passages for sentence in one.sentences}
            sifted = SiftedSentences(*self.tools.curate_sentences(asked, every), [], [])
        pool_ids = {one.sentence_id for one in self.pool}
        evidence = [
            replace(one, query=None if one.query is None else one.query + first_query)
            for one in sifted.sentences
            if one.sentence_id not in pool_ids
        ]
        self.pool += evidence
        self.notes += sifted.contradictions
        self.curated += sifted.curated
        self.warnings += sifted.warnings
        return evidence

    @property
    def llm(self) -> Llm:
        """The endpoint, within the rollout's share of the budget."""
        if self.tools.llm is None:
            raise LlmNotConfiguredError("A tree of reasoning needs an endpoint.")
        return self.tools.llm

    @property
    def _session_state(self) -> SessionState:
        """The session as this rollout sees it."""
        return replace(self.state, pool=self.pool, notes=self.notes)

    @property
    def _last(self) -> BranchState:
        return self.path[-1]

    def _decompose(self) -> BranchState:
        """A1: what is missing, sought, sifted, answered, and noted."""
        question = self._last.pending
        if question is None:
            before = [thought.question for thought in self.path if thought.question]
            following = session_model.ask_next_step(
                self.llm, self.state.question, self._list_known_lines(), list(dict.fromkeys([*before, *self.tried]))
            )
            if following.answerable:
                return self._conclude()
            question = following.sub_question
        first_query = len(self.queries)
        queries = self.seek(question, session_model.queries(self.llm, question, self._list_known_lines()))
        evidence = self._evidence(queries)
        draft = self.llm.answer(question, evidence)
        thought = BranchState(
            DECOMPOSE,
            question,
            draft.text,
            draft.cited,
            searched=tuple(query.text for query in self.queries[first_query:]),
            kept=tuple(one.sentence_id for one in queries),
            settled=draft.sufficient,
        )
        self._remember(thought, evidence)
        return thought

    def _consolidate(self) -> BranchState:
        """A2: what follows from memory, without any search."""
        finding = reasoning.consolidate(self.llm, self.state.question, self._list_known_lines(), self._evidence())
        thought = BranchState(CONSOLIDATE, "", finding.text, finding.cited, settled=bool(finding.text))
        self._note(thought)
        return thought

    def _refine(self) -> BranchState:
        """A3: the last answer, held against memory."""
        last = self._last
        refined = reasoning.refine(self.llm, last.question, last.answer, self._evidence())
        settled = bool(refined.text) and refined.verdict != "unsupported"
        thought = BranchState(REFINE, last.question, refined.text, refined.cited, settled=settled)
        if refined.text != last.answer:
            self.notes = [note for note in self.notes if note.text != format_thought(last)]
            self._note(thought)
        return thought

    def _redirect(self) -> BranchState:
        """A4: the last question, or the session's, in other words; the next step asks it."""
        question = self._last.question or self.state.question
        return BranchState(
            REDIRECT, question, pending=reasoning.redirect(self.llm, question, self._list_known_lines())
        )

    def _conclude(self) -> BranchState:
        """A5: the answer to the session's question, and what a judge without a key makes of it.

        The path's own sentences come first: all branches share memory, and votes from one prompt would be one vote.
        """
        own = {sentence for thought in self.path for sentence in (*thought.kept, *thought.cites)}
        evidence = sorted(self._evidence(), key=lambda sentence: sentence[0] not in own)
        draft = self.llm.answer(self.state.question, evidence)
        thought = BranchState(
            CONCLUDE, self.state.question, draft.text, draft.cited, settled=draft.sufficient, rating=0.0
        )
        if not draft.text:
            return thought
        steps = [format_thought(one) for one in self.path if one.answer]
        try:
            rating = reasoning.rate(self.llm, self.state.question, draft.text, steps, evidence)
        except LlmError:
            # The answer stands, and may win where no other does; as a rollout this one failed.
            return replace(thought, rating=None)
        return replace(thought, rating=convert_rating(rating))

    def _evidence(self, new_sentences: Sequence[PoolSentence] = ()) -> list[tuple[int, str]]:
        """The sentences that a step sees; without memory those that its own search kept, or the path's steps."""
        if self.means.update:
            return [(one.sentence_id, one.text) for one in self.pool]
        seen_ids = {one.sentence_id for one in new_sentences}
        if not new_sentences:
            seen_ids = {sentence for thought in self.path for sentence in thought.kept}
        return [(one.sentence_id, one.text) for one in self.pool if one.sentence_id in seen_ids]

    def _list_known_lines(self) -> list[str]:
        """The working memory in lines; without one what this path concluded."""
        if self.means.update:
            return [note.text for note in self.notes]
        return [format_thought(thought) for thought in self.path if thought.answer]

    def _remember(self, thought: BranchState, evidence: Sequence[tuple[int, str]]) -> None:
        """Have memory written anew with what a step came to (Eq. 2), or the step's answer added if that fails."""
        if not self.means.update:
            return
        number = self.state.number
        try:
            noted = session_model.note(
                self.llm, self.state.question, self._list_known_lines(), evidence, thought.question, thought.answer
            )
        except LlmError as error:
            self.warnings.append(Fallback("noted-by-rules", error.detail))
            self._note(thought)
            return
        if noted:
            kinds: dict[bool, NoteKind] = {False: "fact", True: "contradiction"}
            # A contradiction that was named stays, whatever the model leaves out.
            named = [note for note in self.notes if note.kind == "contradiction"]
            fresh = [Note(kinds[one.contradicts], one.text, one.cites, number) for one in noted]
            self.notes = [*named, *fresh]

    def _note(self, thought: BranchState) -> None:
        """Have memory keep an answer that sentences bear out."""
        if self.means.update and thought.answer and thought.cites and thought.settled:
            self.notes.append(Note("fact", format_thought(thought), thought.cites, self.state.number))


def list_possible_actions(path: Sequence[BranchState], depth: int, limits: SearchLimits) -> tuple[str, ...]:
    """Actions that a branch may go on by, the one to go on by first in front; none after a conclusion.

    Args:
        path: thoughts from the root on.
        depth: of its last.
    """
    last = path[-1]
    several = sum(bool(thought.answer) for thought in path) > 1
    check = REFINE if last.did == DECOMPOSE and not (several and last.settled) else CONSOLIDATE
    actions: tuple[str, ...] = (DECOMPOSE, CONCLUDE, check)
    if last.did == CONCLUDE:
        actions = ()
    elif depth + 1 >= limits.depth:
        actions = (CONCLUDE,)
    elif last.did == "":
        actions = (DECOMPOSE, REDIRECT, f"{DECOMPOSE}:2", CONCLUDE)
    elif last.pending is not None:
        actions = (DECOMPOSE, CONCLUDE)
    elif last.did == CONSOLIDATE:
        actions = (CONCLUDE, DECOMPOSE)
    elif not last.answer:
        actions = (REDIRECT, DECOMPOSE, CONCLUDE)
    return actions


def format_thought(thought: BranchState) -> str:
    """A thought as memory has it: what was asked, and what came of it."""
    return f"{thought.question} {thought.answer}".strip()
