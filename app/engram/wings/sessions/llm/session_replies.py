"""Strict parsing of replies to ``session_prompts``: numbers are checked against what the model saw."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import Field

from engram.core.text.question_triples import ANSWER, MOST_TRIPLES, QuestionTriple
from engram.providers.llm.replies import (
    Flag,
    Line,
    Number,
    QuestionText,
    Reply,
    UnusableReplyError,
    read,
    select_distinct,
    to_ids,
)

MOST_NOTES = 40
MOST_QUERIES = 3
_MARK = re.compile(r"\?\d{0,2}")
_Short = Annotated[Line, Field(max_length=500)]
_Named = Annotated[_Short, Field(min_length=1)]


@dataclass(frozen=True, slots=True)
class SettledUnknown:
    """An unknown and its value, by sentences given by id, one at least."""

    mark: str
    value: str
    cites: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gaps:
    """Settled facts; ``query`` is what to search for next, empty where the evidence suffices."""

    settled: tuple[SettledUnknown, ...]
    sufficient: Flag
    query: str


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Sentences, by id, that disagree, and those of them that are the better founded; none if neither side is."""

    cites: tuple[int, ...]
    about: str
    borne_by: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SelectedSentences:
    """The sentences to keep, by id."""

    sentences: tuple[int, ...]
    contradictions: tuple[Contradiction, ...]


@dataclass(frozen=True, slots=True)
class NotedFinding:
    """A note, by sentences given by id, one at least."""

    text: str
    cites: tuple[int, ...]
    contradicts: bool


@dataclass(frozen=True, slots=True)
class NextStep:
    """Whether the main question can be answered; else what to ask next."""

    answerable: bool
    sub_question: str


class _NotedFact(Reply):
    subject: _Named
    relation: _Named
    object: _Named
    question: Annotated[QuestionText, Field(min_length=1)]


class SplitReply(Reply):
    """Facts that a question depends on."""

    triples: list[_NotedFact]


class _SettledReply(Reply):
    mark: _Short
    value: _Named
    cited: list[Number]


class GapsReply(Reply):
    """Settled unknowns, sufficiency, and the next search query."""

    reasoned: ClassVar[bool] = True
    settled: list[_SettledReply]
    sufficient: Flag
    query: QuestionText


class _Contradiction(Reply):
    cited: list[Number]
    about: _Named
    borne_by: list[Number] = Field(default_factory=list)


class SelectionReply(Reply):
    """Numbers of the sentences to keep, and contradictions."""

    reasoned: ClassVar[bool] = True
    kept: list[Number]
    contradictions: list[_Contradiction] = Field(default_factory=list)


class _Note(Reply):
    text: Annotated[QuestionText, Field(min_length=1)]
    cited: list[Number]
    contradicts: Flag = False


class NotesReply(Reply):
    """The notes after a step."""

    notes: list[_Note]


class NextStepReply(Reply):
    """The next sub-question, unless the notes answer the question."""

    reasoned: ClassVar[bool] = True
    answerable: Flag
    sub_question: QuestionText = ""


class QueriesReply(Reply):
    """Search queries; also a bare list of them."""

    bare_list: ClassVar[str | None] = "queries"
    queries: list[QuestionText]


def read_split(text: str) -> list[QuestionTriple]:
    """Read the facts; each has an unknown, and the last asks for the answer.

    Raises:
        UnusableReplyError: one has none, or none asks for the answer.
    """
    facts = read(SplitReply, text).triples[:MOST_TRIPLES]
    triples = [QuestionTriple(one.subject, one.relation, one.object, one.question) for one in facts]
    if not all(_MARK.fullmatch(triple.unknown) for triple in triples):
        raise UnusableReplyError("triples: each has a subject or an object that is a mark such as ?1")
    if not any(ANSWER in (triple.subject, triple.object) for triple in triples):
        raise UnusableReplyError("triples: one of them has ? for what the question asks for")
    return triples


def read_gaps(text: str, ids: Sequence[int]) -> Gaps:
    """Read what is settled; a value without a sentence is none.

    Raises:
        UnusableReplyError: nothing is missing and a query is given, or the other way round.
    """
    reply = read(GapsReply, text)
    if not reply.sufficient and not reply.query:
        raise UnusableReplyError("query: empty although the evidence does not suffice")
    settled = (SettledUnknown(one.mark, one.value, to_ids("cited", one.cited, ids)) for one in reply.settled)
    return Gaps(tuple(one for one in settled if one.cites), reply.sufficient, reply.query)


def read_kept(text: str, ids: Sequence[int]) -> SelectedSentences:
    """Read what to keep; sentences of a contradiction are kept as well."""
    reply = read(SelectionReply, text)
    contradictions = []
    for one in reply.contradictions:
        cites, borne_by = to_ids("cited", one.cited, ids), to_ids("borne_by", one.borne_by, ids)
        if not set(borne_by) <= set(cites):
            raise UnusableReplyError("borne_by: names sentences that are not among those cited")
        contradictions.append(Contradiction(cites, one.about, borne_by))
    sentences = [*to_ids("kept", reply.kept, ids), *(sentence for one in contradictions for sentence in one.cites)]
    return SelectedSentences(tuple(dict.fromkeys(sentences)), tuple(contradictions))


def read_notes(text: str, ids: Sequence[int]) -> list[NotedFinding]:
    """Read the notes; one that cites nothing is left out, as no sentence states it."""
    notes = [
        NotedFinding(one.text, to_ids("cited", one.cited, ids), one.contradicts)
        for one in read(NotesReply, text).notes
    ]
    return [one for one in notes if one.cites][:MOST_NOTES]


def read_step(text: str) -> NextStep:
    """Read the next step.

    Raises:
        UnusableReplyError: the question cannot be answered, and nothing is asked.
    """
    reply = read(NextStepReply, text)
    if not reply.answerable and not reply.sub_question:
        raise UnusableReplyError("sub_question: empty although answerable is false")
    return NextStep(reply.answerable, reply.sub_question)


def read_queries(text: str) -> list[str]:
    """Read the queries, one at least."""
    queries = select_distinct(read(QueriesReply, text).queries)
    if not queries:
        raise UnusableReplyError("queries: at least one is needed")
    return queries[:MOST_QUERIES]
