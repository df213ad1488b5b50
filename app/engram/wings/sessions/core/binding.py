"""Binding unknowns: which name a sentence of the pool links to what is known, by the relation that is asked for.

A sentence binds a triple if it is about what is known (it names it, or its passage is titled so) and says the
relation, in the question's word for it or in a word that stands for it (``_SAID``). The name nearest to that
word, after it rather than before, is the value. Likeness alone never binds: a name that merely stands beside the
known one proves nothing. Nor is one a value that says of what kind something is, as in "a Canadian singer".
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from engram.core.ranking.coverage import content_words
from engram.core.text.question_triples import ANSWER, QuestionTriple
from engram.core.text.words import normalise_words, words

_SAID: Mapping[str, str] = {
    "director": "directed director directorial",
    "composer": "composed composer music score soundtrack songwriter written wrote",
    "performer": "by performed sung singer band recorded performer single album song released",
    "singer": "by sung singer performed recorded",
    "author": "by wrote written author novel novelist book",
    "writer": "by wrote written writer",
    "screenwriter": "written wrote screenplay screenwriter by",
    "producer": "produced producer",
    "publisher": "published publisher",
    "founder": "founded founder established",
    "owner": "owned owner owns acquired",
    "creator": "created creator",
    "mother": "mother daughter son born née",
    "father": "father daughter son",
    "parent": "daughter son mother father",
    "child": "son daughter children mother father",
    "spouse": "married wife husband spouse",
    "wife": "married wife",
    "husband": "married husband",
    "sibling": "brother sister sibling",
    "brother": "brother",
    "sister": "sister",
    "country": "in country",
    "nationality": "is was",
    "place of birth": "born",
    "birthplace": "born",
    "place of death": "died",
    "capital": "capital seat",
    "employer": "worked works employed professor",
    "label": "label records released",
    "record label": "label records released",
    "manufacturer": "manufactured built made produced",
    "developer": "developed developer",
    "star": "starring starred stars",
    "cast member": "starring starred stars",
    "actor": "played starring portrayed",
    "host": "hosted host presented",
    "editor": "edited editor",
    "architect": "designed architect",
    "designer": "designed designer",
    "location": "in located",
}
"""Words by which sentences say a relation."""
KIND_RELATIONS = ("nationality", "country")
"""Relations of which what says a kind is a value: "a Canadian singer"."""
_AFTER, _BEFORE = 12, 4
"""Words within which a value stands after the relation's word, or before it."""


@dataclass(frozen=True, slots=True)
class BindingSentence:
    """A sentence that may bind; ``names``: in it, as it writes them; ``title``: of its passage."""

    sentence_id: int
    text: str
    names: Sequence[str]
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Binding:
    """Value of an unknown and its sentence; ``strength`` in (0, 1] tells how near value and relation stand."""

    unknown: str
    value: str
    sentence_id: int
    strength: float


def bind(
    triple: QuestionTriple, known: str, sentences: Sequence[BindingSentence], bound_names: Collection[str] = ()
) -> Binding | None:
    """The best binding of the triple's unknown, if a sentence has one.

    Args:
        known: what the other end of the triple is, in words.
        bound_names: names that are no value: those of the question, and what other unknowns are.
    """
    relation_words = list_relation_words(triple.relation, triple.kind)
    barred = {normalise_words(name) for name in (*bound_names, known)}
    best: Binding | None = None
    for sentence in sentences:
        if not is_about(sentence, known):
            continue
        nearest = _find_nearest_name(sentence, relation_words, barred, kinds=triple.relation in KIND_RELATIONS)
        if nearest is not None and (best is None or nearest[1] > best.strength):
            best = Binding(triple.unknown, nearest[0], sentence.sentence_id, nearest[1])
    return best


def binds(
    triple: QuestionTriple, known: str, sentences: Sequence[BindingSentence], bound_names: Collection[str] = ()
) -> float:
    """Score how well sentences of one passage answer the triple, in [0, 1]; 0 if none is about the known entity.

    Of an unknown in the middle of a chain that is the strength of the best binding; of what the question itself
    asks for, whose words are many, the most that one sentence has of them.
    """
    if triple.unknown != ANSWER:
        best = bind(triple, known, sentences, bound_names)
        return 0.0 if best is None else best.strength
    relation_stems = {_stem(word) for word in content_words(triple.relation)}
    about = [{_stem(word) for word in words(one.text)} for one in sentences if is_about(one, known)]
    return (
        max((len(relation_stems & stems) / len(relation_stems) for stems in about), default=0.0)
        if relation_stems
        else 0.0
    )


def describes(name: str, text: str) -> bool:
    """Whether a text has the name only to say of what kind something is: "a Canadian singer".

    An indefinite article introduces what was not named yet, so what stands between it and a noun names nothing.
    """
    places = [found.start() for found in re.finditer(rf"\b{re.escape(name)}\b", text)]
    kinds = [found.start(1) for found in re.finditer(rf"\b(?:an?|An?) ({re.escape(name)})\b[ -][a-z]", text)]
    return bool(places) and places == kinds


def list_relation_words(relation: str, kind: str | None = None) -> frozenset[str]:
    """Words, in their stems, by which sentences say a relation."""
    listed = _SAID.get(relation, "")
    for part in relation.split():
        listed += " " + _SAID.get(part, "")
    stems = {_stem(word) for word in (*words(listed), *content_words(relation))}
    if kind is not None and not stems:
        stems |= {_stem(word) for word in content_words(kind)}
    return frozenset(stems)


def stems(text: str) -> frozenset[str]:
    """The content words of a text without their endings, as "open" of "opened"."""
    return frozenset(_stem(word) for word in content_words(text))


def is_about(sentence: BindingSentence, known: str) -> bool:
    """Whether the sentence names what is known, or its passage is titled so."""
    plain_name = normalise_words(known)
    if not plain_name:
        return False
    title = normalise_words(re.sub(r"\s*\([^()]*\)$", "", sentence.title or ""))
    bare = normalise_words(re.sub(r"\s*\([^()]*\)$", "", known))
    return f" {bare} " in f" {normalise_words(sentence.text)} " or title in (plain_name, bare)


def _find_nearest_name(
    sentence: BindingSentence, relation_words: Collection[str], barred: Collection[str], *, kinds: bool = False
) -> tuple[str, float] | None:
    """The name nearest to a word that says the relation, and how near, in (0, 1].

    Args:
        kinds: whether a name counts that only says of what kind something is.
    """
    tokens = words(sentence.text)
    cues = [at for at, word in enumerate(tokens) if _stem(word) in relation_words]
    best: tuple[str, float] | None = None
    for name in sentence.names:
        of_name = words(name)
        if not of_name or " ".join(of_name) in barred or all(word.isdigit() for word in of_name):
            continue
        if not kinds and describes(name, sentence.text):
            continue
        for start in _places(tokens, of_name):
            for cue in cues:
                if start <= cue < start + len(of_name):
                    continue
                gap = start - cue if start > cue else 2 * (cue - start - len(of_name) + 1)
                if gap <= (_AFTER if start > cue else 2 * _BEFORE):
                    strength = 1.0 / gap if gap > 0 else 1.0
                    if best is None or strength > best[1]:
                        best = (name, strength)
    title = sentence.title
    if best is None and cues and title is not None and normalise_words(title) not in barred:
        return (title, 1.0 / (2 * _AFTER))
    return best


def _places(tokens: Sequence[str], phrase: Sequence[str]) -> list[int]:
    size = len(phrase)
    return [at for at in range(len(tokens) - size + 1) if list(tokens[at : at + size]) == list(phrase)]


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
