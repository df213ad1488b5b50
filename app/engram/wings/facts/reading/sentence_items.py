"""A sentence as a row of items: names, dates, numbers, and words by what they do in a clause."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from engram.core.text.temporal import TimeExpression, find_time_expressions
from engram.wings.facts.reading import clause_words
from engram.wings.facts.reading.countries import ADJECTIVES, JOINED_COUNTRIES

_TOKEN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?!\w)")
_UNIT = re.compile(
    r"\s*(?:%|percent|million|billion|km²|km2|km|kilomet(?:re|er)s?|miles?|met(?:re|er)s?|feet|ft|kg|mph)\b"
)
_JOINT = re.compile(r"\s?-\s?(?:(?:e|ye|i|al|el)\s)?|\s(?:al|el|bin|ibn|e|ye|i)\s?-\s?|\s(?:upon|sur|am)\s")
_OPEN = re.compile(r"\s?-\s?(?:e|ye|i|al|el)$")
_TAIL = 5  # characters of what a name goes on with
_COMPOUNDS = frozenset("born based led style wide like era owned made built".split())
_MARKS = {
    ",": ",",
    "(": "(",
    ")": ")",
    "[": "(",
    "]": ")",
    ";": ";",
    ":": ";",
    "—": ";",
    '"': '"',
    "“": '"',
    "”": '"',
}
_MARKS |= {"-": "-", "–": "-", "&": "c", "'": "'", "’": "'"}
_ITEMS_BACK = 8  # items back
_LY_NOUNS = frozenset("ally anomaly assembly butterfly family homily monopoly rally reply supply".split())
_QUALIFIED = re.compile(r"\s*\([^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class Item:
    """A piece of a sentence.

    Attributes:
        kind: N name, D date, # number, b form of "be", x auxiliary, v verb, g gerund, p preposition, c "and",
            r "who", R "whose", h "he", o "his", d article, k word that may begin a clause, n "not" or "may",
            a adverb, w other word, - dash, . any other mark; , ( ) ; ' and quotation marks stand for themselves.
        text: as written.
        word: the same, case-folded.
        start, end: where it stands in the sentence.
        time: of a date.
    """

    kind: str
    text: str
    word: str
    start: int
    end: int
    time: TimeExpression | None = None


class Names:
    """Finds names in text, the longest at each place, in time that grows with the text and not with the names."""

    def __init__(self, names: Iterable[str]) -> None:
        self._trie: dict[str, dict[str, object]] = {}
        for name in (*names, *JOINED_COUNTRIES):
            self.add(name)

    def add(self, name: str) -> None:
        """Another name to look for."""
        node: dict[str, object] = self._trie  # type: ignore[assignment]
        for token in _TOKEN.findall(name):
            node = node.setdefault(token, {})  # type: ignore[assignment]
        node[""] = {}

    def measure_longest_name(self, tokens: Sequence[str], at: int) -> int:
        """Return the number of tokens from ``at`` on that make up a name; 0 if none begins there."""
        node: dict[str, object] = self._trie  # type: ignore[assignment]
        longest = 0
        for length, place in enumerate(range(at, len(tokens)), start=1):
            following = node.get(tokens[place])
            if following is None:
                break
            node = following  # type: ignore[assignment]
            if "" in node:
                longest = length
        return longest


def read(text: str, names: Names) -> list[Item]:
    """The items of one sentence, in order."""
    tokens = list(_TOKEN.finditer(text))
    surfaces = [token[0] for token in tokens]
    dates = _dates(text)
    items: list[Item] = []
    at = 0
    while at < len(tokens):
        start = tokens[at].start()
        length = names.measure_longest_name(surfaces, at)
        if (date := dates.get(start)) is not None:
            end = start + len(date.text)
            items.append(_piece("D", text, start, end, date))
        elif length and not (length == 1 and _is_no_name(surfaces[at], opening=at == 0)):
            end = _name_end(text, tokens, at + length)
            if items and items[-1].kind == "N" and _JOINT.fullmatch(text, _find_tail(items[-1]), start):
                start = items.pop().start
            items.append(_piece("N", text, start, end))
        elif (number := _NUMBER.match(text, start)) is not None:
            unit = _UNIT.match(text, number.end())
            end = unit.end() if unit else number.end()
            items.append(_piece("#", text, start, end))
        else:
            end = tokens[at].end()
            items.append(_item(surfaces[at], start, end, items))
        while at < len(tokens) and tokens[at].start() < end:
            at += 1
    return _settle_verb_forms(items)


def _piece(kind: str, text: str, start: int, end: int, time: TimeExpression | None = None) -> Item:
    return Item(kind, text[start:end], text[start:end].casefold(), start, end, time)


def _is_no_name(surface: str, *, opening: bool) -> bool:
    """Whether a single word is none though it was taken for one: sentences open with a capital letter."""
    return surface.islower() or (
        opening
        and (
            _word_kind(surface.casefold(), surface.casefold()) in "vxgbpkadh"
            or surface.casefold() in clause_words.OPENINGS
        )
    )


def _find_tail(name: Item) -> int:
    """Return the end of a name's last capitalised part: "Kelarestaq- ye" goes on with what follows the "ye"."""
    cut = _OPEN.search(name.text)
    return name.start + cut.start() if cut else name.end


def _name_end(text: str, tokens: Sequence[re.Match[str]], after: int) -> int:
    """Return the end of a name that may go on after a hyphen ("Sung- je"), but not in "Danish- born".

    Args:
        text: of the sentence.
        tokens: all of it.
        after: the token after the name; the name may have taken the hyphen in.
    """
    hyphen = after - 1 if tokens[after - 1][0] == "-" else after
    if hyphen >= len(tokens) or tokens[hyphen][0] != "-":
        return tokens[after - 1].end()
    tail = tokens[hyphen + 1] if hyphen + 1 < len(tokens) else None
    if tail is not None and tail[0].islower() and len(tail[0]) <= _TAIL and tail[0] not in _COMPOUNDS:
        return tail.end()
    return tokens[hyphen - 1].end()


def _dates(text: str) -> dict[int, TimeExpression]:
    """Return the dates of a text by their first characters' places."""
    date_by_place: dict[int, TimeExpression] = {}
    position = 0
    for expression in find_time_expressions(text, "en"):
        start = text.find(expression.text, position)
        if start >= 0:
            date_by_place[start] = expression
            position = start + len(expression.text)
    return date_by_place


def _item(surface: str, start: int, end: int, before: Sequence[Item]) -> Item:
    word = surface.casefold()
    if not word[0].isalnum():
        kind = _MARKS.get(word, ".")
    else:
        kind = _word_kind(word, surface)
        if kind == "w" and surface[0].isupper() and before and word in ADJECTIVES:
            kind = "N"
    return Item(kind, surface, word, start, end)


_KINDS = (
    (clause_words.BE, "b"),
    (clause_words.AUXILIARIES, "x"),
    (clause_words.DOUBT_WORDS, "n"),
    (clause_words.SUBJECT_PRONOUNS, "h"),
    (clause_words.POSSESSIVES, "o"),
    (clause_words.RELATIVES, "r"),
    (clause_words.OTHER_RELATIVES, "R"),
    (clause_words.DETERMINERS, "d"),
    (clause_words.CONJUNCTIONS, "c"),
    (clause_words.PREPOSITIONS, "p"),
    (clause_words.BREAKS, "k"),
    (clause_words.ADVERBS, "a"),
    (clause_words.VERBS, "v"),
)
_BY_WORD = {word: kind for known, kind in reversed(_KINDS) for word in known}


def _word_kind(word: str, surface: str) -> str:
    known = _BY_WORD.get(word)
    if known is not None:
        return known
    if word.endswith("ly") and len(word) > 4 and surface.islower() and word not in _LY_NOUNS:
        return "a"
    if word.endswith("ed") and len(word) > 3 and word not in clause_words.NO_VERBS:
        return "v"
    if word.endswith("ing") and len(word) > 4 and surface.islower() and word not in clause_words.NO_GERUNDS:
        return "g"
    return "w"


def _settle_verb_forms(items: list[Item]) -> list[Item]:
    """Verb forms that their neighbours show to be none become words: "an animated film", "the film stars"."""
    settled = list(items)
    for at, item in enumerate(items):
        if item.kind not in "vg":
            continue
        noun = _is_gerund_noun(settled, at) if item.kind == "g" else _is_adjective(settled, at)
        after_dash = at > 0 and items[at - 1].kind == "-"  # "Danish-born"
        settled[at] = replace(item, kind="w" if noun or after_dash else "v")
    return settled


def _neighbours(items: Sequence[Item], at: int) -> tuple[str, str]:
    """Kinds of the items before and after; a full stop where there is none."""
    return items[at - 1].kind if at else ".", items[at + 1].kind if at + 1 < len(items) else "."


def _is_adjective(items: Sequence[Item], at: int) -> bool:
    """Whether a form in -ed describes a noun, and whether "plays" and "works" are things."""
    before, after = _neighbours(items, at)
    if not items[at].word.endswith("ed"):
        return before in "do#" or (before == "N" and items[at - 1].word in ADJECTIVES)
    if before in "do":
        return after in "w-Nvg"
    if before == "N":
        return after == "w" and items[at - 1].word in ADJECTIVES
    if before in "ac":
        return after == "w" and not _follows_subject(items, at)
    # A verb's object has an article or is a name.
    return before in "D#w" and after in "w-"


def _is_gerund_noun(items: Sequence[Item], at: int) -> bool:
    """Whether a form in -ing is a thing, or describes one: it has no object, or no noun that it could belong to."""
    before, after = _neighbours(items, at)
    if after not in "NDdow#\"'":
        return True
    return before in "do#" or (before in "pw" and after == "w")


def _follows_subject(items: Sequence[Item], at: int) -> bool:
    """Whether a subject, an auxiliary or another verb stands before, adverbs and "and" apart."""
    back = at - 1
    while back >= max(0, at - _ITEMS_BACK) and items[back].kind in "ac":
        back -= 1
    return back >= 0 and items[back].kind in "Nhbxrv"


def drop_qualifier(name: str) -> str:
    """A title without its disambiguation."""
    return _QUALIFIED.sub("", name) or name


def name_words(name: str) -> frozenset[str]:
    """Its words, case-folded, without articles and what stands in brackets."""
    return frozenset(_WORD.findall(drop_qualifier(name).casefold())) - {"the", "a", "an", "of", "s"}
