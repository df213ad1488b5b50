"""From what an agent says of a document to facts, each with the sentence of the document that says it.

What it inserts may be sentences of the document, or the same in other words. Of a sentence that stands in the
document the facts are those that the document's own reading has; of one in other words they are read from these
words, and kept only if both ends of the fact stand in the document's sentence that comes nearest. What no sentence
of the document bears out is no fact: it is told back to the agent instead.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from engram.core.text.words import words
from engram.providers.language import Language, PassageText, SentenceAnalysis
from engram.providers.language.name_words import FUNCTION_WORDS
from engram.wings.agent.services.agent_memory import FactSentence
from engram.wings.facts.core.triples import Triple
from engram.wings.sessions.core.curation import curate

LEAST_WORD_SHARE = 0.6
"""Share of an inserted sentence's content words from which on a sentence of the document is where it is from."""

ExtractFacts = Callable[[str | None, Sequence[SentenceAnalysis]], list[Triple]]
"""Extracts facts from sentences of one passage, given its title."""


@dataclass(frozen=True, slots=True)
class StreamDocument:
    """A document of the stream.

    Attributes:
        key: the document's own; one document that repeats itself says nothing new.
        sentences: in order, each with its key.
    """

    key: str
    title: str | None
    sentences: Sequence[tuple[int | str, str]]

    @property
    def text(self) -> str:
        """All of it."""
        return " ".join(text for _, text in self.sentences)

    def source(self, ordinal: int) -> FactSentence:
        """One of its sentences."""
        return FactSentence(self.sentences[ordinal][0], self.key)


@dataclass(frozen=True, slots=True)
class GroundedFacts:
    """Facts with the sentences that say them, and what was inserted that no sentence says."""

    facts: Sequence[tuple[Triple, FactSentence]]
    unsupported: Sequence[str]


def ground_text(text: str, document: StreamDocument, language: Language, extract: ExtractFacts) -> GroundedFacts:
    """Return the facts that an insert adds from a document.

    Args:
        text: sentences, as the agent gives them.
        extract: called once for all sentences that stand in the document, and once for each other.
    """
    if not document.sentences:
        return GroundedFacts([], [text])
    own = [sentence for _, sentence in document.sentences]
    passages = [PassageText(document.title, document.text, tuple(own)), PassageText(document.title, text)]
    whole, inserted = language.analyse_passages(passages)
    chosen: dict[int, None] = {}
    reworded: list[tuple[int, SentenceAnalysis]] = []
    unsupported: list[str] = []
    for sentence in inserted:
        at = origin(sentence.text, own)
        if at is None:
            unsupported.append(sentence.text)
        elif (
            curate([sentence.text], [own[at]]).kept_positions and curate([own[at]], [sentence.text]).kept_positions
        ):
            reworded.append((at, sentence))
        else:
            chosen[at] = None
    facts = [
        (triple, document.source(triple.sentence))
        for triple in (extract(document.title, whole) if chosen else [])
        if triple.sentence in chosen
    ]
    for at, sentence in reworded:
        borne = [triple for triple in extract(document.title, [sentence]) if bears(own[at], document.title, triple)]
        facts += [(triple, document.source(at)) for triple in borne]
        if not borne:
            unsupported.append(sentence.text)
    return GroundedFacts(facts, unsupported)


def origin(statement: str, sentences: Sequence[str]) -> int | None:
    """Return the place of the sentence with most of the content words; None if none has enough of them."""
    content = _content(statement)
    if not content:
        return None
    shares = [len(content & _content(sentence)) / len(content) for sentence in sentences]
    best = max(range(len(shares)), key=lambda at: (shares[at], -at), default=None)
    return best if best is not None and shares[best] >= LEAST_WORD_SHARE else None


def bears(sentence: str, title: str | None, triple: Triple) -> bool:
    """Whether both ends of a fact stand in a sentence, or in the title of its document."""
    sentence_words = set(words(f"{title or ''} {sentence}"))
    return all(set(words(end)) - FUNCTION_WORDS <= sentence_words for end in (triple.subject, triple.object))


def _content(text: str) -> set[str]:
    return set(words(text)) - FUNCTION_WORDS
