"""Relational triples with unknowns that a question asks, by rules over English question patterns.

"Where did the composer of film Dus Lakh die?" asks for ?1 = the composer of Dus Lakh, and then where ?1 died. A
phrase that describes something by what is named in it (``_PATTERNS``) is a triple whose object is unknown; it is
taken out of the question, the innermost first, and what is left asks of the unknown. RFM-RAG (arXiv 2508.17862)
has an LLM do so.

Everything is text in, text out: what is a name is for the caller to say, since only it knows the language.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

ANSWER = "?"
"""The unknown that the question itself asks for; others are ?1, ?2 and so on."""
MOST_TRIPLES = 8
_TERM = r"(?:⟦\d+⟧|⟨\d+⟩)"
_REFERENCE = re.compile(_TERM)
_RESERVED_MARKS = str.maketrans("⟦⟧⟨⟩", "    ")
"""Marks of ours, which a question that holds them does not mean."""
_UNKNOWN = re.compile(r"\?\d*")
# What stands before a name to say what kind of thing it is.
_KIND = (
    r"(?:the )?(?:(?:\d{4} )?(?:film|movie|song|album|single|novel|book|band|group|series|show|play|game|artist|"
    r"singer|company|team|club|city|town|village|person|man|woman|song titled|film titled) )?"
)
# Words that end a relation: with them another part of the question begins.
_STOP = (
    r"(?:who|whom|whose|which|that|what|when|where|why|how|is|are|was|were|be|did|do|does|has|have|had|and|or|than|"
    r"of|in|on|at|by|for|from|with|to|as)"
)
_REST = r"[a-z\-]{0,40}"  # bounded: of "a-a-a-..." each part would be tried to the end
_WORD = rf"(?!{_STOP}\b)[a-z]{_REST}"
_RELATION = rf"(?:{_WORD} ){{0,2}}{_WORD}(?: (?:of|in) (?!the\b|film\b|song\b){_WORD})?"
_MODIFIER = (
    r"(?:maternal|paternal|first|last|second|oldest|youngest|eldest|former|current|highest|largest|native|birth|home|"
    r"alma|record)"
)
_VERB = rf"(?:[a-z]{_REST}(?: (?:in|by|at|on|from|for|to|with|of|up|out|as|the|a|an))?(?: |$)){{1,4}}?"

_PATTERNS: Sequence[tuple[str, re.Pattern[str]]] = (
    # the mother of the director of X
    ("of", re.compile(rf"(?:\b(?:the|a|an) )?\b(?P<relation>{_RELATION}) (?:of|for) {_KIND}(?P<term>{_TERM})")),
    # X's mother
    ("own", re.compile(rf"(?P<term>{_TERM})['’]s? (?P<relation>(?:{_MODIFIER} )?{_WORD})\b")),
    # the city where X died
    (
        "where",
        re.compile(
            rf"\bthe (?P<kind>(?:{_WORD} )?{_WORD}) (?:where|in which) (?P<term>{_TERM})"
            rf" (?P<relation>{_VERB})(?=$|[,?]|{_STOP}\b)"
        ),
    ),
    # the bank that bought X, the band who performed on X
    (
        "who",
        re.compile(
            rf"\b(?:the|a|an) (?P<kind>(?:{_WORD} )?{_WORD}) (?:who|that|which) (?P<relation>{_VERB})"
            rf"(?P<term>{_TERM})"
        ),
    ),
    # the album released by X
    (
        "by",
        re.compile(
            rf"\b(?:the|a|an) (?P<kind>(?:{_WORD} )?{_WORD})"
            rf" (?P<relation>[a-z]+(?:ed|en|n|ing) (?:by|in|at|on|for|with|from) (?:the )?)(?P<term>{_TERM})"
        ),
    ),
)
_EITHER = re.compile(rf"(?P<one>{_TERM})[?!,.]{{0,2}} (?:or|and) (?:the )?(?P<other>{_TERM})")
_JOINTS = frozenset({"or", "and", "both", "the", "a", "an"})
# What is compared of two things where the question names it without "of": has the director who is older.
_OWNED = re.compile(
    r"\b(?:has|have|had|whose|with)(?: the| a| an)? (?P<relation>directors?|composers?|performers?|singers?|"
    r"authors?|writers?|producers?|founders?|owners?|creators?)\b"
)


@dataclass(frozen=True, slots=True)
class QuestionTriple:
    """A relation of two things, either of which may be unknown; ``phrase`` asks for it in the question's words.

    ``kind`` says what the unknown is, where the question does ("city").
    """

    subject: str
    relation: str
    object: str
    phrase: str
    kind: str | None = None

    @property
    def unknown(self) -> str:
        """Unknown that the triple asks for: the object if that is unknown, else the subject."""
        return self.object if _UNKNOWN.fullmatch(self.object) else self.subject

    @property
    def ends(self) -> tuple[str, str, str]:
        """Subject, relation and object."""
        return self.subject, self.relation, self.object

    @property
    def known_end(self) -> str:
        """The other end."""
        return self.subject if self.unknown == self.object else self.object


def triples(question: str, names: Sequence[str]) -> list[QuestionTriple]:
    """Read the triples of a question in the order of look-up; the last one asks for the answer.

    Args:
        names: in the question, as it writes them, longest first where one holds another.
    """
    text, spelled = _mask_names(question, names)
    question_triples: list[QuestionTriple] = []

    def spell(part: str) -> str:
        return " ".join(_REFERENCE.sub(lambda one: spelled[one[0]], part).split())

    def put(kind: str, match: re.Match[str]) -> str:
        body = match.string
        unknown = f"⟨{len(question_triples) + 1}⟩"
        spelled[unknown] = f"?{len(question_triples) + 1}"
        groups = match.groupdict()
        relation = spell(groups["relation"].strip())
        ends = (spell(groups["term"]), relation, spelled[unknown])
        if kind in ("who", "by"):
            ends = (spelled[unknown], relation, spell(groups["term"]))
        question_triples.append(QuestionTriple(*ends, phrase=spell(match[0]), kind=groups.get("kind")))
        return " ".join(f"{body[: match.start()]} {unknown} {body[match.end() :]}".split())

    while len(question_triples) < MOST_TRIPLES:
        hit = _find_innermost(text)
        if hit is None or _is_whole(text, hit[1]):
            break
        text = put(*hit)
    question_triples += _read_triples(text, len(question_triples), spell)
    return question_triples[:MOST_TRIPLES]


def _read_triples(text: str, triple_count: int, spell: Callable[[str], str]) -> list[QuestionTriple]:
    """The triples that what is left of the question asks for: of each of two that are compared, or of its last
    term.
    """
    pair = _EITHER.search(text)
    owned = _OWNED.search(text)
    words = re.sub(r"['’]s\b|[?,!]", " ", _REFERENCE.sub(" ", text)).split()
    remaining = " ".join(word for word in words if word not in _JOINTS)
    if pair is None:
        terms = list(dict.fromkeys(_REFERENCE.findall(text)))
        return [QuestionTriple(spell(term), remaining, ANSWER, spell(text)) for term in terms[:1]]
    asked_triples = []
    for at, term in enumerate((pair["one"], pair["other"]), start=1):
        one = spell(term)
        if owned is not None:
            relation = owned["relation"].removesuffix("s")
            unknown = f"?{triple_count + at}"
            asked_triples.append(QuestionTriple(one, relation, unknown, f"{relation} of {one}"))
            one = unknown
        asked_triples.append(QuestionTriple(one, remaining, ANSWER, f"{one} {remaining}"))
    return sorted(asked_triples, key=lambda triple: triple.object == ANSWER)


def count_intermediate_unknowns(triples_found: Sequence[QuestionTriple]) -> int:
    """Count the unnamed intermediate things of a question: unknowns of its triples other than the answer."""
    return len({one.unknown for one in triples_found if _UNKNOWN.fullmatch(one.unknown)} - {ANSWER})


def compares(triples_found: Sequence[QuestionTriple]) -> bool:
    """Whether a question asks the same of several things, each of which it names."""
    return (
        count_intermediate_unknowns(triples_found) == 0 and sum(one.unknown == ANSWER for one in triples_found) > 1
    )


def fill_unknowns(text: str, bindings: Mapping[str, str]) -> str:
    """The text with each unknown that is bound replaced by its value."""
    return _UNKNOWN.sub(lambda one: bindings.get(one[0], one[0]), text)


def open_unknowns(text: str) -> list[str]:
    """Unknowns, but for the answer, that a text speaks of."""
    return [one for one in _UNKNOWN.findall(text) if one != ANSWER]


def _mask_names(question: str, names: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The question in lower case with ⟦n⟧ for its n-th name, and what stands for what."""
    spelled: dict[str, str] = {}
    text = question.translate(_RESERVED_MARKS)
    for name in sorted(dict.fromkeys(name.translate(_RESERVED_MARKS) for name in names), key=len, reverse=True):
        at = text.find(name)
        if at >= 0:
            mark = f"⟦{len(spelled) + 1}⟧"
            spelled[mark] = name
            text = f"{text[:at]}{mark}{text[at + len(name) :]}"
    text = text.replace('"', "").replace("“", "").replace("”", "").strip()
    return " ".join(text.lower().split()).rstrip("?. "), spelled


def _find_innermost(text: str) -> tuple[str, re.Match[str]] | None:
    """The description that ends first, and of those the shortest: others may be made of it."""
    hits = [(kind, match) for kind, pattern in _PATTERNS for match in [pattern.search(text)] if match is not None]
    return min(hits, key=lambda hit: (hit[1].end(), len(hit[1][0])), default=None)


def _is_whole(text: str, match: re.Match[str]) -> bool:
    """Whether nothing but a question word is left: then the description is what the question asks for."""
    remaining = f"{text[: match.start()]} {text[match.end() :]}".split()
    return all(
        word in {"what", "who", "which", "where", "is", "was", "are", "were", "name", "the"} for word in remaining
    )
