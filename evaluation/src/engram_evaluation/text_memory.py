"""A memory of text in place of the agent's graph, with the same actions (GRAM, Table 4: without the graph).

An insert appends what the agent wrote, a search is dense retrieval over what was appended. Nothing is merged,
contradicted or removed, so updates are not offered. Memory and search have as many tokens as those of the graph.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from engram.context.errors import InvalidRequestError
from engram.providers.embedder import Embedder
from engram.providers.llm.prompts import Message
from engram.wings.agent.core.agent_turns import Act, AgentObservation, FormatError, read_turn
from engram.wings.agent.llm import agent_prompts
from engram.wings.agent.services.agent_play import MEMORY_TOKENS, SEARCH_TOKENS, TURNS_EACH
from engram.wings.facts.core.linearise import count_tokens
from engram_evaluation.agent_environment import Text

TEXTS = "a list of texts"
"""What the memory is, in the words of the prompt."""


@dataclass(frozen=True, slots=True)
class TextPlay:
    """State of a play before a turn.

    Attributes:
        at: of the current document, from 0.
        turn: from 1, of ``turns`` at most.
        texts: that were inserted, in their order.
        matches: places of texts that the last action found; None if it was no search.
        note: what became of the last action, in words.
        valid: whether every turn so far was one.
    """

    question: str
    documents: Sequence[Text]
    turns: int
    at: int = 0
    turn: int = 1
    texts: tuple[str, ...] = ()
    matches: Sequence[int] | None = None
    note: str = ""
    valid: bool = field(default=True)

    @property
    def document(self) -> Text | None:
        """The current document; None once the last went by."""
        return self.documents[self.at] if self.at < len(self.documents) else None

    @property
    def offered(self) -> tuple[Act, ...]:
        """The actions that the agent may choose from; in the last turn only an answer is left."""
        acts: list[Act] = []
        if self.turn < self.turns and self.document is not None:
            acts.append("insert")
        if self.turn < self.turns and self.texts:
            acts.append("search")
        return (*acts, "answer")

    @property
    def observation(self) -> AgentObservation:
        """Observation of the agent: the latest texts that fit, and those that its search found."""
        document = self.document
        latest = list(reversed(range(len(self.texts))))
        return AgentObservation(
            question=self.question,
            memory=self._lines(latest, MEMORY_TOKENS),
            search_result=None if self.matches is None else self._lines(self.matches, SEARCH_TOKENS),
            title=None if document is None else document.title,
            document=None if document is None else document.text,
            number=min(self.at + 1, len(self.documents)),
            documents=len(self.documents),
            turn=self.turn,
            turns=self.turns,
            offered=self.offered,
            note=self.note,
        )

    @property
    def messages(self) -> list[Message]:
        """The turn as a conversation."""
        return agent_prompts.messages(self.observation, insert_only=True, memory=TEXTS)

    def _lines(self, places: Sequence[int], budget: int) -> str:
        """Write the first of these texts that fit, each with its number as a source."""
        lines, room = [], budget
        for place in places:
            line = f"{self.texts[place]} [{place + 1}]"
            room -= count_tokens(line)
            if room < 0:
                break
            lines.append(line)
        return "\n".join(lines)


def begin(question: str, documents: Sequence[Text]) -> TextPlay:
    """Begin a play with an empty memory, of as many turns as one with a graph.

    Raises:
        InvalidRequestError: there is no question or no document.
    """
    if not question.strip() or not documents:
        raise InvalidRequestError("A play needs a question and at least one document.")
    return TextPlay(question, tuple(documents), TURNS_EACH * len(documents) + 2)


def carry_out(play: TextPlay, reply: str, embedder: Embedder) -> tuple[TextPlay, str | None]:
    """Carry out a turn, given as the model wrote it; the play after it, and the answer if it is one.

    A reply that is no turn changes nothing but the number of turns that are left.
    """
    after: dict[str, Any] = {"turn": play.turn + 1, "matches": None, "note": ""}
    try:
        turn = read_turn(reply, play.offered)
    except FormatError as error:
        return replace(play, **{**after, "note": f"The last reply was no turn: {error}.", "valid": False}), None
    if turn.act == "answer":
        return replace(play, **after), turn.content
    if turn.act == "search":
        return replace(play, **{**after, "matches": nearest(turn.content, play.texts, embedder)}), None
    after["at"] = play.at + 1
    if turn.skips:
        return replace(play, **{**after, "note": "The document went by."}), None
    return replace(play, **{**after, "texts": (*play.texts, turn.content), "note": "The text was kept."}), None


def nearest(query: str, texts: Sequence[str], embedder: Embedder) -> list[int]:
    """Places of the texts by their cosine with a query, nearest first; equal ones in their order."""
    first, *vectors = embedder.embed([query, *texts])
    cosines = [float(first @ vector) for vector in vectors]
    return sorted(range(len(texts)), key=lambda place: (-cosines[place], place))
