"""Roles, as noun phrases: "head of production at NAME", "a Danish airline"."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engram.providers.language.facts import clause_words
from engram.providers.language.facts.countries import ADJECTIVES
from engram.providers.language.facts.name_types import ORGANISATIONS, is_organisation
from engram.providers.language.facts.sentence_items import Item
from engram.providers.language.facts.stated_facts import find_kind

OFFICES = frozenset(
    """administrator ambassador archbishop auditor bishop boss bursar captain caretaker ceo cfo chair chairman
    chairperson chairwoman chancellor cio clerk cmo coach commander commissioner comptroller conductor consul
    convener convenor coo coordinator counsel cto curator dean delegate deputy director editor executive
    governor head headmaster headmistress headteacher inspector leader librarian manager marshal mayor
    minister moderator officer premier president principal professor provost rector registrar
    representative secretary senator sheriff spokesman spokesperson spokeswoman steward superintendent
    supervisor treasurer trustee vicar warden""".split()
)
"""Posts that somebody holds for a time; other nouns for people say what somebody is."""
_RELATIONS = frozenset(
    """admirer aunt buyer elder younger latter candidate co-founder co-owner colleague contender cousin
    customer follower founder
    friend granddaughter grandfather grandmother grandson heir heiress man member members nephew niece number
    owner partner person predecessor resident rival runner-up shareholder stepbrother stepfather
    stepmother stepsister successor supporter uncle user winner woman""".split()
)
"""What somebody is to another, or for a moment: no post and no profession."""
_PASSED_OVER = frozenset("new acting interim current present own long-time".split())
_PAST = frozenset("former formerly previously once ex late then outgoing would-be".split())
_RANKS = frozenset("chief deputy head lead".split())
"""Words that make a post of a profession: "head chef"."""
_BEFORE_OFFICE = frozenset(
    """artistic assistant associate board chief co- commercial creative deputy executive finance financial
    foreign general honorary human joint junior managing marketing medical music national non-executive
    operating press prime product project regional sales senior technical vice""".split()
)
"""Words that may stand before a post in a capitalised title."""
_GIVEN_NAMES = frozenset("bishop chancellor dean head marshal provost sheriff judge captain".split())
"""Posts that are names of people as well."""
_HONORIFICS = frozenset(
    "cllr councillor dame dr fr hon lady lord messrs mr mrs ms miss prof professor rev revd sir".split()
)
_OPENINGS = frozenset(
    """action also apologies ask best both bring call cc congratulations contact dear fwd good hello hey hi in
    introducing meet minutes note now ours please present re regards remember see send sincerely speak thank thanks
    today welcome with write yes yesterday""".split()
)
"""Words that open a sentence before a name."""
_PREFIXES = frozenset({"co", "re"})
_DEPARTMENTS = frozenset(
    """accounting accounts administration affairs and art audit business communications compliance corporate
    customer
    data department design development digital education engineering external finance global growth hr human
    information innovation investment investor it legal logistics maintenance marketing media music operations
    partnerships people performance planning policy product production programmes projects public procurement
    quality relations research resources risk safety sales science security service services software strategy
    studio studies support technology training treasury &""".split()
)
"""Words of what a "Head of ..." is head of, besides organisations."""
TRAILING = frozenset("too again today yesterday effective there also last this next together".split())
_WORKING = frozenset({"of", "at", "for", "with"})
MOST_SURNAMES = 2
"""Words of a name behind a profession ("Composer NAME NAME"); "Baker Hughes" is a name."""
MOST_WORDS = 6
"""Words of a role before its preposition, and after it."""


@dataclass(frozen=True, slots=True)
class Role:
    """A role: a post, a profession or a kind of organisation.

    Attributes:
        kind: ``office``, ``person`` or ``organisation``.
        text: as written, without article and organisation: "head of production".
        noun: its main noun.
        organisation: the name after "of" or "at".
        nation: an adjective of a country.
        owner: a possessive before it ("its", "our").
        definite: "the" or a possessive stands before it.
        end: place of the item after it.
        is_general: "a" or "an" stands before it.
        preposition: before the organisation.
    """

    kind: str
    text: str
    noun: str
    organisation: str | None
    nation: Item | None
    owner: Item | None
    definite: bool
    end: int
    is_general: bool = False
    preposition: str = ""

    @property
    def is_post(self) -> bool:
        """Whether somebody holds it in one organisation: "a film director" is what somebody is."""
        if self.kind == "office":
            return not self.is_general or self.organisation is not None or " of " in self.text
        return self.kind == "person" and self.preposition in {"at", "for", "with"}

    def with_organisation(self, organisation: str | None) -> str:
        """Return the role's text with its own organisation, or with another one if it names none."""
        name = self.organisation or organisation
        return f"{self.text} of {name}" if name else self.text


def read_role(items: Sequence[Item], at: int) -> Role | None:
    """Read the role that begins at a place; None if none does, or if it is over ("former")."""
    start, nation, owner, definite, general = at, None, None, False, False
    while at < len(items) and at < start + 4 and _opens(items, at):
        item = items[at]
        if item.word in _PAST:
            return None
        nation = item if item.kind == "N" else nation
        definite = definite or item.kind == "o" or item.word in {"the", "our", "your", "my"}
        owner = item if item.kind == "o" else owner
        general = general or item.word in {"a", "an"}
        at += 1
    if nation is not None and _word(items, at) == "-" and _word(items, at + 1) in {"born", "based"}:
        at += 2
    first, end = at, None
    while at < len(items) and at < first + MOST_WORDS and items[at].kind in "wva-":
        end = at + 1 if _is_head(items, at) else end
        at += 1
    if end is None or (end < at and items[end].word not in TRAILING and items[end].kind in "w-"):
        return None
    noun = items[end - 1].word
    if noun in _RELATIONS:
        return None
    ranked = end - first > 1 and items[first].word in _RANKS
    kind = "office" if noun in OFFICES or ranked else "organisation" if noun in ORGANISATIONS else "person"
    if any(item.word in _PAST for item in items[first:end]):
        return None
    parts, organisation, (noun_end, last) = _complement(items, end, kind)
    text = " ".join([*(item.text for item in items[first:noun_end]), *parts]).replace(" - ", "-")
    if first == 0 and text[1:].islower():
        text = text[0].lower() + text[1:]  # "Treasurer: NAME"
    preposition = "" if organisation is None else _preposition(items, last)
    return Role(kind, text, noun, organisation, nation, owner, definite, last, general, preposition)


def _preposition(items: Sequence[Item], end: int) -> str:
    return items[end - 3].word if items[end - 2].kind == "d" else items[end - 2].word


def _complement(items: Sequence[Item], end: int, kind: str) -> tuple[list[str], str | None, tuple[int, int]]:
    """Read the complement of the noun ("of human resources", "at NAME"): words, name, ends of noun and phrase."""
    if _word(items, end) == "in" and _word(items, end + 1) == "chief":
        end += 2
    noun_end, parts = end, []
    general = _word(items, end + 1) in {"a", "an"}
    if kind == "office" and _word(items, end) in {"of", "for"} and not general and not _find_name(items, end + 1):
        place = end + 1
        while place < len(items) and place <= end + MOST_WORDS and items[place].kind in "wdvc-":
            place += 1
        while place > end + 1 and items[place - 1].kind in "dc":
            place -= 1
        complement = [item.text for item in items[end + 1 : place] if item.kind != "d"]
        if complement:
            parts, end = [items[end].text, *complement], place
    if _word(items, end) in _WORKING and (name := _find_name(items, end + 1)):
        after = items[name + 1].kind if name + 1 < len(items) else "."
        if after not in "w-'" and not items[name].word.startswith("order of"):
            return parts, items[name].text, (noun_end, name + 1)
    return parts, None, (noun_end, end)


def _opens(items: Sequence[Item], at: int) -> bool:
    item = items[at]
    national = item.kind == "N" and item.word in ADJECTIVES
    # "The acting director", but "acting" is a role's word where nothing else is.
    return item.kind in "do" or national or item.word in _PASSED_OVER or item.word in {"our", "your", "my"}


def _is_head(items: Sequence[Item], at: int) -> bool:
    word = items[at].word
    if word == "executive":
        return at > 0 and items[at - 1].word == "chief"
    if word in OFFICES or word in ORGANISATIONS:
        return True
    return items[at].kind == "w" and find_kind([word]) == "person" and word not in clause_words.KIN


def _word(items: Sequence[Item], at: int) -> str:
    return items[at].word if at < len(items) else ""


def _find_name(items: Sequence[Item], at: int) -> int | None:
    """Return the place of the name that begins here, behind an article."""
    if at < len(items) and items[at].kind == "d":
        at += 1
    return at if at < len(items) and items[at].kind == "N" else None


def split_titles(items: Sequence[Item]) -> list[Item]:
    """Split the words that belong to no name off the names: "Coach NAME", "CEO of NAME", "Please NAME"."""
    split: list[Item] = []
    for at, item in enumerate(items):
        if item.kind == "N":
            split += _split(item, opening=not split or split[-1].kind in ".;,")
            continue
        before_name = at + 1 < len(items) and items[at + 1].kind == "N"
        heads = item.word in OFFICES or (item.word in ORGANISATIONS and before_name)
        if heads and len(split) == 1 and split[0].kind == "N" and " " not in split[0].text:
            split[0] = replace(split[0], kind="w")  # "Fire warden", "Supermarket chain NAME"
        if split and split[-1].kind == "-" and len(split) > 1 and split[-2].word in _PREFIXES:
            prefix = split[-2].word
            del split[-2:]  # "re-elected", "co-opted"
            split.append(replace(item, kind="v", word=item.word if prefix == "re" else f"{prefix}-{item.word}"))
            continue
        split.append(item)
    return split


def _split(name: Item, *, opening: bool) -> list[Item]:
    parts: list[Item] = []
    position = name.start
    for text in name.text.split(" "):
        parts.append(Item("N", text, text.casefold().strip(".:"), position, position + len(text)))
        position += len(text) + 1
    colon = next((place for place, part in enumerate(parts) if part.text.endswith(":")), None)
    cut = 0 if colon is None else colon + 1
    if not cut and opening and parts[0].word in _OPENINGS:
        cut = 1
    while cut < len(parts) and parts[cut].word in _HONORIFICS:
        cut += 1
    if opening and len(parts) == 1 and parts[0].word in _BEFORE_OFFICE:
        return [replace(parts[0], kind="w")]  # "Chief technology officer"
    dropped = cut and all(part.word in _HONORIFICS for part in parts[:cut])
    role = cut
    while role < len(parts) and parts[role].word in _BEFORE_OFFICE:
        role += 1
    last = role < len(parts) and _is_title(parts, role)
    role = role + 1 if last else cut
    if role < len(parts) and last and parts[role].word == "of":
        role += 1
    words_ = [] if dropped and role == cut else [*_as_words(parts[cut if dropped else 0 : role])]
    if role > cut and all(part.word in _DEPARTMENTS for part in parts[role:]):
        return [*words_, *(replace(part, kind="w") for part in parts[role:])]  # "Head of Sales"
    name_parts = parts[role:]
    if not name_parts:
        return words_
    return [*words_, *_split_employer(name_parts, name)]


def _split_employer(parts: Sequence[Item], name: Item) -> list[Item]:
    """Split "NAME of ORGANISATION" where the first name is no organisation's."""
    joint = next((place for place, part in enumerate(parts) if part.word == "of"), 0)
    cut = joint if joint > 1 and not is_organisation(" ".join(part.text for part in parts[:joint])) else 0
    cut = cut if is_organisation(" ".join(part.text for part in parts[joint + 1 :])) else 0
    pieces = [_join_items(parts[cut + bool(cut) :], name)]
    return [_join_items(parts[:cut], name), replace(parts[cut], kind="p"), *pieces] if cut else pieces


def _join_items(parts: Sequence[Item], name: Item) -> Item:
    start, end = parts[0].start, parts[-1].end
    text = name.text[start - name.start : end - name.start]
    return Item("N", text, text.casefold(), start, end)


def _is_title(parts: Sequence[Item], at: int) -> bool:
    word = parts[at].word
    if word in OFFICES:
        return not (word in _GIVEN_NAMES and at == 0 and len(parts) == 2)
    following = len(parts) - at - 1
    if find_kind([word]) != "person" or is_organisation(" ".join(part.text for part in parts)):
        return False
    return following > 0 if word.endswith("ist") else at == 0 and following == MOST_SURNAMES


def _as_words(parts: Sequence[Item]) -> list[Item]:
    words = []
    for part in parts:
        text = part.text.rstrip(":")
        words.append(Item("p" if part.word == "of" else "w", text, part.word, part.start, part.start + len(text)))
        if text != part.text:
            words.append(Item(";", ":", ":", part.end - 1, part.end))
    return words
