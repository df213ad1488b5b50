"""What somebody is, as a noun phrase: "head of production at NAME", "a Danish airline"."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from engram.providers.language.facts import clause_words
from engram.providers.language.facts.countries import ADJECTIVES
from engram.providers.language.facts.sentence_items import Item
from engram.providers.language.facts.stated_facts import kind_of

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
ORGANISATIONS = frozenset(
    """agency airline association bank brand brewery broadcaster business carrier chain charity club college
    company consultancy cooperative council federation firm foundation group hospital hotel institute
    laboratory maker manufacturer museum network newspaper operator organisation organization practice
    publisher retailer school society startup subsidiary supplier theater theatre trust union university
    utility wholesaler""".split()
)
_RELATIONS = frozenset(
    """admirer aunt buyer candidate co-founder co-owner colleague contender cousin customer follower founder
    friend granddaughter grandfather grandmother grandson heir heiress man member members nephew niece number
    owner partner person predecessor resident rival runner-up shareholder stepbrother stepfather
    stepmother stepsister successor supporter uncle user winner woman""".split()
)
"""What somebody is to another, or for a moment: no post and no profession."""
_PASSED_OVER = frozenset("new acting interim current present own long-time".split())
_PAST = frozenset("former ex late then outgoing would-be".split())
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
TRAILING = frozenset("too again today yesterday effective there also last this next together".split())
_WORKING = frozenset({"of", "at", "for", "with"})
MOST_WORDS = 6
"""Words of a role before its preposition, and after it."""


@dataclass(frozen=True, slots=True)
class Role:
    """What somebody is.

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

    def at(self, organisation: str | None) -> str:
        """The role with its organisation, or with another where it names none."""
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
    kind = "office" if noun in OFFICES else "organisation" if noun in ORGANISATIONS else "person"
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
    """What follows the noun ("of human resources", "at NAME"): its words, the name, where noun and phrase end."""
    if _word(items, end) == "in" and _word(items, end + 1) == "chief":
        end += 2
    noun_end, parts = end, []
    if kind == "office" and _word(items, end) in {"of", "for"} and not _name_at(items, end + 1):
        place = end + 1
        while place < len(items) and place <= end + MOST_WORDS and items[place].kind in "wdvc-":
            place += 1
        while place > end + 1 and items[place - 1].kind in "dc":
            place -= 1
        said = [item.text for item in items[end + 1 : place] if item.kind != "d"]
        if said:
            parts, end = [items[end].text, *said], place
    if _word(items, end) in _WORKING and (name := _name_at(items, end + 1)):
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
    return items[at].kind == "w" and kind_of([word]) == "person" and word not in clause_words.KIN


def _word(items: Sequence[Item], at: int) -> str:
    return items[at].word if at < len(items) else ""


def _name_at(items: Sequence[Item], at: int) -> int | None:
    """Where the name stands that begins here, an article passed over."""
    if at < len(items) and items[at].kind == "d":
        at += 1
    return at if at < len(items) and items[at].kind == "N" else None


def with_roles(items: Sequence[Item]) -> list[Item]:
    """Split the words that belong to no name off the names: "Coach NAME", "CEO of NAME", "Please NAME"."""
    found: list[Item] = []
    for item in items:
        if item.kind != "N":
            if item.word in OFFICES and len(found) == 1 and found[0].kind == "N" and " " not in found[0].text:
                found[0] = replace(found[0], kind="w")  # "Fire warden"
            found.append(item)
            continue
        found += _split(item, opening=not found or found[-1].kind in ".;,")
    return found


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
    dropped = cut and all(part.word in _HONORIFICS for part in parts[:cut])
    role = cut
    while role < len(parts) and parts[role].word in _BEFORE_OFFICE:
        role += 1
    last = role < len(parts) and _is_title(parts, role)
    role = role + 1 if last else cut
    if role < len(parts) and last and parts[role].word == "of":
        role += 1
    words_ = [] if dropped and role == cut else [*_as_words(parts[cut if dropped else 0 : role])]
    rest = parts[role:]
    if not rest:
        return words_
    text = name.text[rest[0].start - name.start :]
    return [*words_, Item("N", text, text.casefold(), rest[0].start, name.end)]


def _is_title(parts: Sequence[Item], at: int) -> bool:
    word = parts[at].word
    if word in OFFICES:
        return not (word in _GIVEN_NAMES and at == 0 and len(parts) == 2)
    return word.endswith("ist") and at + 1 < len(parts) and kind_of([word]) == "person"


def _as_words(parts: Sequence[Item]) -> list[Item]:
    found = []
    for part in parts:
        text = part.text.rstrip(":")
        found.append(Item("p" if part.word == "of" else "w", text, part.word, part.start, part.start + len(text)))
        if text != part.text:
            found.append(Item(";", ":", ":", part.end - 1, part.end))
    return found
