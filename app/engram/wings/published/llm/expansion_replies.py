"""Replies of the language model that widen a question."""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field

from engram.providers.llm.replies import (
    CleanText,
    Line,
    QuestionReply,
    QuestionText,
    Reply,
    UnusableReplyError,
    read,
    read_question,
    select_distinct,
)
from engram.wings.published.core.expansion import WordedMethod

_MOST_PARTS, _MOST_FACETS, _MOST_TERMS = 5, 8, 20
_Term = Annotated[Line, Field(max_length=200)]


class PassageReply(Reply):
    """A passage that might answer the question."""

    passage: Annotated[CleanText, Field(min_length=1, max_length=10_000)]


class PartsReply(Reply):
    """The parts of a question."""

    parts: list[QuestionText]


class _Facet(Reply):
    name: _Term
    terms: list[_Term]


class FacetsReply(Reply):
    """The facets of a question."""

    facets: list[_Facet]


class TermsReply(Reply):
    """Terms beside the question's own."""

    terms: list[_Term]


class ContrastReply(Reply):
    """Terms that are wanted, and terms that are not."""

    wanted: list[_Term]
    unwanted: list[_Term] = Field(default_factory=list)


EXPANSION_REPLIES: Mapping[WordedMethod, type[Reply]] = {
    "hyde": PassageReply,
    "decomposition": PartsReply,
    "facets": FacetsReply,
    "contrastive": ContrastReply,
    "synonyms": TermsReply,
    "specification": QuestionReply,
    "rewriting": QuestionReply,
    "step-back": QuestionReply,
}
"""The reply that each way to widen a question asks for."""


def read_expansion(method: WordedMethod, text: str) -> list[str]:
    """Read the texts that widen a question, at least one; of lists longer than asked for, the beginning."""
    match method:
        case "hyde":
            return [read(PassageReply, text).passage]
        case "decomposition":
            parts = select_distinct(read(PartsReply, text).parts)
            if len(parts) < 2:
                raise UnusableReplyError("parts: at least two different questions are needed")
            return parts[:_MOST_PARTS]
        case "facets":
            return _facets(read(FacetsReply, text).facets)
        case "contrastive":
            reply = read(ContrastReply, text)
            unwanted = {term.casefold() for term in reply.unwanted}
            wanted = [term for term in select_distinct(reply.wanted) if term.casefold() not in unwanted]
            if not wanted:
                raise UnusableReplyError("wanted: at least one term is needed that is not unwanted")
            return [", ".join(wanted[:_MOST_TERMS])]
        case "synonyms":
            terms = select_distinct(read(TermsReply, text).terms)
            if not terms:
                raise UnusableReplyError("terms: at least one is needed")
            return [", ".join(terms[:_MOST_TERMS])]
        case "specification" | "rewriting" | "step-back":
            return [read_question(text)]


def _facets(facets: Sequence[_Facet]) -> list[str]:
    """One line per facet: its name and its terms; a facet without either says nothing."""
    lines = []
    for facet in facets:
        terms = ", ".join(select_distinct(facet.terms)[:_MOST_TERMS])
        if facet.name and terms:
            lines.append(f"{facet.name}: {terms}")
    if not lines:
        raise UnusableReplyError("facets: at least one with a name and terms is needed")
    return select_distinct(lines)[:_MOST_FACETS]
