"""Check a sub-question before a session asks it.

Rules take a question apart by patterns (``question_triples``), and a pattern may match the wrong words. A session
asks only what passes the gate here: a complete description of something ("the designer of Galloping Gertie") or a
complete question ("where was Giovanni Cassini born"). Each has a name of the question or a value from a sentence.
"""

import itertools
import re
from collections.abc import Collection, Mapping, Sequence

from engram.core.ranking.coverage import content_words
from engram.core.text.question_triples import QuestionTriple

_ARTICLES = frozenset({"the", "a", "an"})
_DO = frozenset({"do", "does", "did"})
_BE = frozenset({"is", "are", "was", "were", "has", "have", "had"})
_RELATIVE = frozenset({"that", "which", "who", "whom", "whose", "where"})
_ASKING = frozenset({"who", "whom", "whose", "what", "which", "when", "where", "why", "how"})
_JOINING = frozenset({"or", "and", "of", "in", "on", "at", "by", "for", "from", "with", "to", "near", "as", "into"})
_ADVERBS = frozenset({"earlier", "later", "best", "together", "alone", "again", "ever"})
_PARTICIPLE = re.compile(
    r".*(?:ed|en|ing|orn|own|awn)|made|held|built|won|found|sent|led|kept|put|set|cut|shot|told|paid|cast|hung|"
    r"older|younger|taller|larger|longer"
)
_TIMES = frozenset({"year", "month", "day", "date", "night", "autumn", "spring", "summer", "winter", "decade"})
_PEOPLE = frozenset(
    """
    man woman person engineer architect musician pianist scientist painter mother father wife husband son daughter
    brother sister niece nephew grandfather grandmother discoverer designer composer director founder author
    conductor inventor head leader partner companion colleague surveyor photographer builder winner owner creator
    singer performer writer producer actor editor teacher president
    """.split()
)
_SETTLEMENTS = frozenset({"port", "city", "town", "village", "country", "capital"})
_PLACES = frozenset(
    "mount lake river port cape bay sea ocean island bridge university observatory house hall opera theatre "
    "college institute".split()
)
_NAME = "⟦⟧"
_WORD = r"[a-z0-9][a-z0-9\-]*"
_ABOUT = rf"(?:the )?(?:{_WORD} )?⟦⟧(?: {_WORD})?"
_KIND_NOUN = rf"(?:{_WORD} ){{1,2}}"
_DESCRIPTIONS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?P<article>(?:the|a|an) )?(?P<relation>(?:{_WORD} ){{1,5}})(?:of|for|on|in) {_ABOUT}",
        rf"⟦⟧['’]s?(?P<relation>(?: {_WORD}){{1,3}})",
        rf"the {_KIND_NOUN}(?:where|in which) (?:the )?⟦⟧(?P<relation>(?: {_WORD}){{1,4}})",
        rf"(?:the|a|an) {_KIND_NOUN}(?:who|that|which) (?P<relation>(?:{_WORD} ){{1,4}}?){_ABOUT}",
        rf"(?:the|a|an) {_KIND_NOUN}(?P<relation>{_WORD}(?:ed|en|n|ing) )(?:by|in|at|on|for|with|from) (?:the )?⟦⟧",
    )
)


def is_well_formed(text: str, names: Collection[str]) -> bool:
    """Whether a text is a complete description or a complete question about one of the names.

    Args:
        names: of the question, and values that its unknowns are bound to.
    """
    masked = text
    for name in sorted(names, key=len, reverse=True):
        masked = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", _NAME, masked)
    masked = " ".join(masked.lower().split())
    if _NAME not in masked or "⟨" in masked or re.search(r"\?\d", masked):
        return False
    return any(
        _is_description(match) for match in (one.fullmatch(masked) for one in _DESCRIPTIONS)
    ) or _is_question(re.findall(r"⟦⟧|[^\s,]+|,", masked))


def tidy_text(text: str, carried: Mapping[str, str], values: Collection[str]) -> str:
    """Move a noun that a name carries back to its name, and set commas right.

    "the composer of the Nibelung" becomes "the composer of the Nibelung operas", and "did Richard Wagner operas
    study" becomes "did Richard Wagner study".

    Args:
        carried: name -> noun, see ``find_carried_nouns``.
        values: which stand where a description with such a name stood.
    """
    for name, noun in carried.items():
        text = re.sub(rf"(?<!\w){re.escape(name)}$", f"{name} {noun}", text)
        for value in values:
            text = text.replace(f"{value} {noun}", value)
    return " ".join(text.replace(" ,", ",").split())


def select_whole_names(question: str, names: Sequence[str]) -> list[str]:
    """Leave out names that are a part of a word, as "English" of "English-like"."""
    return [
        name for name in names if not re.search(rf"(?<!\w){re.escape(name)}-|-{re.escape(name)}(?!\w)", question)
    ]


def find_carried_nouns(question: str, names: Sequence[str]) -> dict[str, str]:
    """Name -> the noun directly after it that belongs to it, as in "the Nibelung operas"."""
    nouns = {}
    for name in names:
        match = re.search(rf"(?<!\w){re.escape(name)} ([a-z\-]+)", question)
        if match is None or not content_words(match[1]) or match[1] in _ADVERBS:
            continue
        words = re.findall(r"[a-z]+", question[: match.start()].lower())
        # Among the first two words a question word asks; after them it opens a relative clause.
        before = [word for at, word in enumerate(words) if _opens(word) and (at > 1 or word not in _RELATIVE)]
        if _is_noun(match[1], before[-1] if before else ""):
            nouns[name] = match[1]
    return nouns


def fits(triple: QuestionTriple, value: str, sentence: str = "") -> bool:
    """Whether a value is of the kind that a triple asks for, as far as its form tells.

    A time has a number. A person has two words that begin with a capital, none of which says a place. The sentence
    names a settlement. A thing of a stated kind is called so in the value or in the sentence that gives it.
    """
    kind = (triple.kind or triple.relation).lower().split()
    if not kind:
        return False
    if _TIMES & set(kind):
        return any(character.isdigit() for character in value)
    if kind[-1] in _PEOPLE:
        capitals = sum(word[:1].isupper() for word in value.split())
        return capitals > 1 and not any(map(str.isdigit, value)) and not _PLACES & set(value.lower().split())
    if kind[-1] in _SETTLEMENTS and value.lower() not in sentence.lower():
        return False
    return triple.kind is None or bool(content_words(triple.kind) & content_words(f"{value} {sentence}"))


def _opens(word: str) -> bool:
    return word in _DO or word in _BE or word in _RELATIVE


def _is_noun(word: str, opener: str) -> bool:
    """Whether the word after a name is a noun and no verb, by the word that opens the clause."""
    if opener in _DO:
        return _is_plural(word)
    if opener in _BE or not opener:
        return _PARTICIPLE.fullmatch(word) is None
    return False


def _is_plural(word: str) -> bool:
    return word.endswith("s") and not word.endswith("ss")


def _is_description(match: re.Match[str] | None) -> bool:
    if match is None:
        return False
    groups = match.groupdict()
    relation = groups["relation"].split()
    if relation and relation[-1] in _ARTICLES:
        relation = relation[:-1]  # "filled the": the article is the name's
    if not relation or (_ARTICLES | _RELATIVE | _DO | _BE) & set(relation):
        return False
    if "article" not in groups:
        return True
    if groups["article"] is None:  # nothing but "director of": a verb would do without an article as well
        return len(relation) == 1 and relation[0].endswith(("er", "or"))
    return groups["article"] == "the " or not _is_plural(relation[-1])


def _is_question(words: Sequence[str]) -> bool:
    """Whether the question word is in front, and each name stands where a name may."""
    if len(words) < 3 or words[-1] in (_ARTICLES | _RELATIVE | _ASKING | {"or", "and"} - {"who"}):
        return False
    asks = words[0] in _ASKING or (words[0] in _JOINING and words[1] in _ASKING)
    if not asks and not (words[0] in (_DO | _BE) and words[1] in (_NAME, "the")):
        return False
    if any(one == other and one in (_ARTICLES | _JOINING) for one, other in itertools.pairwise(words)):
        return False
    return all(_may_stand(words, at) for at, word in enumerate(words) if word == _NAME)


def _may_stand(words: Sequence[str], at: int) -> bool:
    before = words[at - 1] if at else ""
    after = words[at + 1] if at + 1 < len(words) else ""
    if before in _ASKING | {"that"}:
        # A name opens a relative clause only with a verb after it; right after the question word it never stands.
        return at > 2 and after not in ("", ",", "or", "and") and before in _RELATIVE
    if after in _RELATIVE:
        return False
    if before in _DO:
        return bool(after) and not _is_plural(after)
    if before in _BE and after and content_words(after):
        return _PARTICIPLE.fullmatch(after) is not None or after in _ADVERBS
    return True
