"""Tell whether what a session read can answer its question, for when no language model is asked."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from engram.core.ranking.coverage import content_words
from engram.core.text.question_triples import ANSWER, QuestionTriple, compares, count_intermediate_unknowns
from engram.wings.sessions.core.answer_kinds import has_answer_kind
from engram.wings.sessions.core.binding import BindingSentence, is_about, list_relation_words, stems

LEAST_ANSWERABILITY = 0.5
"""Least mean of question share and the probability of enough from which on a corpus counts as having the answer."""
MOST_WORDS = 3
"""Content words of a relation at most; a longer one is a question that was not taken apart."""
# "Siberian region", "a Frenchwoman": these say a kind and name nothing that must be read.
_KIND_OF = re.compile(r"\w+(?:an|ish|ese|ench|utch|woman|ander)s?")
_HEAD = re.compile(r"(?:who|how) ([a-z\-]+)", re.IGNORECASE)
_NO_HEAD = frozenset({"many", "much", "long", "often", "far", "became"})


@dataclass(frozen=True, slots=True)
class ReadSentence:
    """A sentence that was read.

    Attributes:
        passage_id: of its passage.
        sentence: the sentence with its passage's title.
        terms: stems of the sentence's and the title's words.
    """

    passage_id: int
    sentence: BindingSentence
    terms: Collection[str]


def list_missing_names(question: str, names: Iterable[str], texts: Iterable[str]) -> list[str]:
    """List the names of the question that no text contains, plural endings aside."""
    text_words = f" {' '.join(_split_plain_words(' '.join(texts)))} "
    return [
        name
        for name in names
        if not _is_kind(name, question) and f" {' '.join(_split_plain_words(name))} " not in text_words
    ]


def is_stated(
    question: str, triples: Sequence[QuestionTriple], names: Sequence[str], read: Sequence[BindingSentence]
) -> bool:
    """Whether a sentence about the subject has a word of the relation that the question asks for.

    True where the rules cannot tell: the question compares things, goes through an unknown, or has a long relation.
    """
    head = _HEAD.match(question)
    if head is not None and content_words(head[1]) and head[1].lower() not in _NO_HEAD:
        relation_stems = list_relation_words(head[1].lower()) or stems(head[1])
        if not any(relation_stems & stems(f"{one.title or ''} {one.text}") for one in read):
            return False
    if len(triples) != 1 or compares(triples) or triples[0].unknown != ANSWER or triples[0].known_end not in names:
        return True
    relation_stems = stems(triples[0].relation)
    if not relation_stems or len(relation_stems) > MOST_WORDS:
        return True
    return any(relation_stems & stems(one.text) for one in read if is_about(one, triples[0].known_end))


def has_answer(
    question: str,
    triples: Sequence[QuestionTriple],
    names: Sequence[str],
    read: Sequence[ReadSentence],
    weights: Mapping[str, float],
    sufficiency: float | None,
) -> bool:
    """Whether what was read may hold the answer.

    Not if a name of the question is missing, or its relation is stated nowhere about its subject. Else it may if
    the share of the question that was read and the probability of enough have a mean of ``LEAST_ANSWERABILITY`` or
    more.

    Args:
        names: in the question.
        read: all sentences that were read.
        weights: term of the question -> how rare it is in the corpus, > 0.
        sufficiency: probability that the best passages hold all evidence, in [0, 1]; None where it is not known.
    """
    sentences = [one.sentence for one in read]
    if list_missing_names(question, names, [f"{one.title or ''} {one.text}" for one in sentences]):
        return False
    if not is_stated(question, triples, names, sentences):
        return False
    if sufficiency is None:
        return _share(weights, [one.terms for one in read]) >= LEAST_ANSWERABILITY
    return (question_share(question, triples, read, weights) + sufficiency) / 2 >= LEAST_ANSWERABILITY


def question_share(
    question: str, triples: Sequence[QuestionTriple], read: Sequence[ReadSentence], weights: Mapping[str, float]
) -> float:
    """The share of the question's terms that was read, by weight, in [0, 1].

    It is the mean of two shares: that of the best passage, and that of the best sentence which has what the
    question word asks for. Words that are scattered over several passages tell nothing. Where the question compares
    things or goes through an unknown, its evidence is scattered, so all passages count as one.
    """
    scattered = compares(triples) or count_intermediate_unknowns(triples) > 0
    passages: dict[int, list[Collection[str]]] = {}
    for one in read:
        passages.setdefault(0 if scattered else one.passage_id, []).append(one.terms)
    by_passage = max((_share(weights, terms) for terms in passages.values()), default=0.0)
    fitting = [one for one in read if has_answer_kind(question, one.sentence.text)]
    by_sentence = max((_share(weights, [one.terms]) for one in fitting), default=0.0)
    return (by_passage + by_sentence) / 2 if weights else 1.0


def _share(weights: Mapping[str, float], texts: Iterable[Collection[str]]) -> float:
    whole = sum(weights.values())
    found_words = set[str]().union(*texts)
    return sum(weight for term, weight in weights.items() if term in found_words) / whole if whole else 1.0


def _is_kind(name: str, question: str) -> bool:
    if _KIND_OF.fullmatch(name) is None:
        return False
    return re.search(rf"\b[Aa]n? {re.escape(name)}\b|\b{re.escape(name)} [a-z]", question) is not None


def _split_plain_words(text: str) -> list[str]:
    return [
        word[:-1] if len(word) > 3 and word.endswith("s") else word for word in re.findall(r"\w+", text.casefold())
    ]
