"""Turns of an agent that keeps a graph of facts while documents go by one at a time (GRAM, section 3.2).

Each turn is a thought and exactly one action, in tags: ``<think>...</think><memory_insert>...</memory_insert>``.
Turns are read strictly, since whether they can be read is a part of what the agent is rewarded for (Eq. 7).
"""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

Act = Literal["insert", "update", "search", "answer"]
ACTS: tuple[Act, ...] = get_args(Act)
TAGS: dict[Act, str] = {
    "insert": "memory_insert",
    "update": "memory_update",
    "search": "memory_search",
    "answer": "answer",
}
THOUGHT = "think"
NOTHING_TO_INSERT = "none"
"""Inserted, it lets a document go by."""
_ACT_OF = {tag: act for act, tag in TAGS.items()}
_ANY = "|".join((THOUGHT, *_ACT_OF))
_TAG = re.compile(rf"</?(?:{_ANY})>")
_TURN = re.compile(
    rf"\s*<{THOUGHT}>(?P<thought>.*?)</{THOUGHT}>\s*<(?P<tag>{'|'.join(_ACT_OF)})>(?P<said>.*?)</(?P=tag)>\s*",
    re.DOTALL,
)
_CITED = re.compile(r"\s*\[(\d+(?:\s*,\s*\d+)*)\]\s*$")


class FormatError(ValueError):
    """The agent's reply is no turn; the message gives the reason for a second request."""


@dataclass(frozen=True, slots=True)
class AgentTurn:
    """One turn of an agent.

    Attributes:
        content: of the action: sentences to insert, a correction, a query, or an answer without its citations.
        cites: numbers in brackets at the end of an answer.
    """

    act: Act
    content: str
    thought: str = ""
    cites: tuple[int, ...] = ()

    @property
    def skips(self) -> bool:
        """Whether it inserts nothing, and so lets the document go by."""
        return self.act == "insert" and self.content.strip(" .").casefold() in {"", NOTHING_TO_INSERT}


@dataclass(frozen=True, slots=True)
class AgentObservation:
    """Observation of an agent before a turn.

    Attributes:
        question: to be answered in the end.
        memory: all that it holds, as lines with numbers of sources; empty at first.
        search_result: what its last search came to, likewise; None if its last action was none.
        title, document: the current document; None once the last went by.
        number, documents: of the current document, from 1, and how many there are.
        turn, turns: of this turn, from 1, and how many there are at most.
        offered: the actions that it may choose from.
        note: what became of the last action, in words.
    """

    question: str
    memory: str
    search_result: str | None
    title: str | None
    document: str | None
    number: int
    documents: int
    turn: int
    turns: int
    offered: Sequence[Act] = ACTS
    note: str = ""


def read_turn(text: str, offered: Collection[Act] = ACTS) -> AgentTurn:
    """The turn that a text is.

    Raises:
        FormatError: it is anything but one thought and one of the offered actions, each in its tags.
    """
    tags = _TAG.findall(text)
    matched = _TURN.fullmatch(text)
    if matched is None or len(tags) != 4:
        raise FormatError(_describe_mistake(text, tags))
    act, content = _ACT_OF[matched["tag"]], " ".join(matched["said"].split())
    if act not in offered:
        offered_tags = ", ".join(f"<{TAGS[one]}>" for one in offered)
        raise FormatError(f"<{matched['tag']}> cannot be chosen now; one of {offered_tags} can")
    if not content:
        raise FormatError(f"<{matched['tag']}> is empty")
    cites: tuple[int, ...] = ()
    if act == "answer" and (cited := _CITED.search(content)) is not None and cited.start():
        content, cites = content[: cited.start()], tuple(int(number) for number in cited[1].split(","))
    return AgentTurn(act, content, " ".join(matched["thought"].split()), cites)


def format_turn(turn: AgentTurn) -> str:
    """The text that ``read_turn`` reads as this turn."""
    cited = f" [{', '.join(map(str, turn.cites))}]" if turn.cites else ""
    tag = TAGS[turn.act]
    return f"<{THOUGHT}>{turn.thought}</{THOUGHT}><{tag}>{turn.content}{cited}</{tag}>"


def _describe_mistake(text: str, tags: Sequence[str]) -> str:
    acts = [tag for tag in tags if tag.strip("</>") in _ACT_OF and not tag.startswith("</")]
    if not acts:
        return f"there is no action: one of {', '.join(f'<{tag}>' for tag in _ACT_OF)} has to follow the thought"
    if len(acts) > 1:
        return f"there are {len(acts)} actions: {', '.join(acts)}; only one a turn counts"
    if not text.lstrip().startswith(f"<{THOUGHT}>") or tags.count(f"<{THOUGHT}>") != 1:
        return f"a turn begins with one thought, as <{THOUGHT}>...</{THOUGHT}>"
    return "each tag has to be opened and closed once, and nothing may stand beside them"
