"""An agent's play: documents go by one at a time, and it inserts, updates, searches, answers (GRAM, section 3.2).

A play is a value: the question, how far the documents are, and the agent's memory. ``observe`` says what the agent
sees, ``carry_out`` what a turn of it comes to. Who the agent is, where documents come from and what reads facts
from text is not said here, so a session of the service and the environment of a trainer are the same play.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engram.core.text.words import normalise_words
from engram.wings.agent.core.agent_turns import Act, AgentObservation, AgentTurn
from engram.wings.agent.services.agent_memory import AgentMemory, MemorySearchResult
from engram.wings.agent.services.grounding import GroundedFacts, StreamDocument

MEMORY_TOKENS = 600
"""Of the memory as the agent sees it before each turn, at most."""
SEARCH_TOKENS = 300
"""Of what a search of it comes to, likewise."""
EDGES = 3
"""L of Eq. 3: edges of a path at most."""
TURNS_EACH = 2
"""Turns for each document by default, two more for the end: one to keep what it says, one to search."""

Insert = Callable[[str, StreamDocument], GroundedFacts]
"""What an inserted text comes to."""
Update = Callable[[str, StreamDocument, AgentMemory], "Change"]
"""What a correction comes to."""


@dataclass(frozen=True, slots=True)
class Change:
    """Change by a correction: facts that it states, and places of facts that it contradicts.

    ``wrong`` is None where rules are to tell by what is stated anew.
    """

    grounded: GroundedFacts
    wrong: Sequence[int] | None = None


@dataclass(frozen=True, slots=True)
class Play:
    """State of a play before a turn.

    Attributes:
        documents: how many there are.
        turns: that it has at most.
        at: of the current document, from 0; ``documents`` once the last went by.
        turn: from 1.
        query: of the search that was the last action, if it was one.
        note: what became of the last action, in words.
        insert_only: whether the agent is offered no updates (GRAM, Table 3).
    """

    question: str
    documents: int
    turns: int
    at: int = 0
    turn: int = 1
    memory: AgentMemory = field(default_factory=AgentMemory)
    query: str | None = None
    note: str = ""
    insert_only: bool = False

    @property
    def last(self) -> bool:
        """Whether this is the last turn."""
        return self.turn >= self.turns

    @property
    def offered(self) -> tuple[Act, ...]:
        """The actions that the agent may choose from; in the last turn only an answer is left."""
        acts: list[Act] = []
        if not self.last and self.at < self.documents:
            acts += ["insert"] if self.insert_only else ["insert", "update"]
        if not self.last and self.memory.facts:
            acts.append("search")
        return (*acts, "answer")

    def to_json(self) -> dict[str, Any]:
        """Return the state of the play as JSON."""
        return {"at": self.at, "turn": self.turn, "query": self.query, "note": self.note} | self.memory.to_json()

    def resume(self, stored: Mapping[str, Any]) -> "Play":
        """This play as it stood when it was stored."""
        return replace(
            self,
            at=stored["at"],
            turn=stored["turn"],
            query=stored["query"],
            note=stored["note"],
            memory=AgentMemory.from_json(stored),
        )


@dataclass(frozen=True, slots=True)
class TurnOutcome:
    """Outcome of a turn.

    Attributes:
        play: as it stands after it.
        facts: places of facts that it stated.
        contradicted, superseded: places of facts that it spoke against.
        unsupported: what it inserted that no sentence of the document says.
        search_result: of a search.
        answer: in words, with numbers of the sources that it rests on; None while there is none.
    """

    play: Play
    facts: Sequence[int] = ()
    contradicted: Sequence[int] = ()
    superseded: Sequence[int] = ()
    unsupported: Sequence[str] = ()
    search_result: MemorySearchResult | None = None
    answer: str | None = None
    cites: Sequence[int] = ()


def begin(question: str, documents: int, *, turns: int | None = None, insert_only: bool = False) -> Play:
    """A play with an empty memory; by default it may be ``TURNS_EACH`` turns a document long, and two more.

    Raises:
        ValueError: there is no turn.
    """
    most = TURNS_EACH * documents + 2 if turns is None else turns
    if most < 1:
        raise ValueError(f"a play of {most} turns is none")
    return Play(question, documents, most, insert_only=insert_only)


def observe(play: Play, document: StreamDocument | None) -> AgentObservation:
    """Return the agent's observation; ``document`` is the current one, None once the last went by."""
    search_text = None if play.query is None else search_memory(play.memory, play.query).text.text
    return AgentObservation(
        question=play.question,
        memory=play.memory.summary(play.question, MEMORY_TOKENS).text,
        search_result=search_text,
        title=None if document is None else document.title,
        document=None if document is None else document.text,
        number=min(play.at + 1, play.documents),
        documents=play.documents,
        turn=play.turn,
        turns=play.turns,
        offered=play.offered,
        note=play.note,
    )


def search_memory(memory: AgentMemory, query: str) -> MemorySearchResult:
    """Search a memory within the bounds of a turn."""
    return memory.search(query, edges=EDGES, budget=SEARCH_TOKENS)


def carry_out(
    play: Play, turn: AgentTurn, document: StreamDocument | None, insert: Insert, update: Update
) -> TurnOutcome:
    """Carry out a turn: an insert or an update moves on to the next document, a search does not.

    Raises:
        ValueError: the play does not offer this action.
    """
    if turn.act not in play.offered:
        raise ValueError(f"a turn to {turn.act} is not offered")
    after = replace(play, turn=play.turn + 1, query=None, note="")
    if turn.act == "answer":
        cites = [number for number in turn.cites if 1 <= number <= len(play.memory.sources)]
        return TurnOutcome(
            after, answer=turn.content, cites=cites or find_answer_sources(play.memory, play.question, turn.content)
        )
    if turn.act == "search":
        search_result = search_memory(play.memory, turn.content)
        note = "" if search_result.facts else "The search found nothing: name something that is in the memory."
        return TurnOutcome(replace(after, query=turn.content, note=note), search_result=search_result)
    after = replace(after, at=play.at + 1)
    if turn.skips:
        return TurnOutcome(replace(after, note="The document went by."))
    if document is None:
        raise ValueError("there is no document to take facts from")
    if turn.act == "insert":
        return _insert_facts(after, play.turn, insert(turn.content, document))
    return _update_memory(after, play.turn, update(turn.content, document, play.memory))


def find_answer_sources(memory: AgentMemory, question: str, answer: str) -> list[int]:
    """Numbers of the sources that an answer rests on: a path from the question to it, else a fact that names it."""
    answer_text = f" {normalise_words(answer)} "
    search_result = memory.search(question, edges=EDGES, paths=24, budget=MEMORY_TOKENS)
    for path in search_result.paths:
        places = [edge - 1 for edge in path.edges]
        if any(_names(memory, place, answer_text) for place in places):
            return list(dict.fromkeys(memory.facts[place].sources[0] for place in places))
    naming = [place for place in range(len(memory.facts)) if _names(memory, place, answer_text)]
    return list(dict.fromkeys(memory.facts[place].sources[0] for place in naming[:1]))


def _insert_facts(after: Play, turn: int, grounded: GroundedFacts) -> TurnOutcome:
    memory, facts = after.memory.insert(grounded.facts, turn)
    note = f"{len(facts)} facts were kept."
    if grounded.unsupported:
        note += " The document does not say: " + " / ".join(text[:120] for text in grounded.unsupported[:3])
    return TurnOutcome(replace(after, memory=memory, note=note), facts, unsupported=grounded.unsupported)


def _update_memory(after: Play, turn: int, change: Change) -> TurnOutcome:
    outcome = _insert_facts(after, turn, change.grounded)
    memory = outcome.play.memory
    wrong, over = memory.conflicts(outcome.facts)
    if change.wrong is not None:
        ended = {old for old, _ in over}
        over = [pair for pair in over if pair[0] in change.wrong]
        wrong = [place for place in change.wrong if place not in outcome.facts and place not in ended]
    memory = memory.contradict(wrong, turn).supersede(over, turn)
    note = f"{outcome.play.note} {len(wrong)} facts are doubted by it, {len(over)} are over."
    return replace(
        outcome,
        play=replace(outcome.play, memory=memory, note=note),
        contradicted=wrong,
        superseded=[old for old, _ in over],
    )


def _names(memory: AgentMemory, place: int, answer_text: str) -> bool:
    fact = memory.facts[place]
    return (
        any(answer_text in f" {normalise_words(end)} " for end in (fact.object, fact.subject))
        if answer_text.strip()
        else False
    )
