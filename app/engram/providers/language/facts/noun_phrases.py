"""Noun phrases: names with their titles, owners, appositions and relative clauses."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from engram.providers.language.facts import clause_words
from engram.providers.language.facts.countries import ADJECTIVES
from engram.providers.language.facts.name_types import is_organisation
from engram.providers.language.facts.roles import TRAILING, Role, read_role
from engram.providers.language.facts.sentence_items import Item
from engram.providers.language.facts.sentence_state import LOOK_AHEAD, SentenceState
from engram.providers.language.facts.verb_arguments import TIMELESS, Days, compute_days

SEATS = frozenset("headquarters headquarter office offices seat base".split())
_SEAT_ADJECTIVES = frozenset(
    "head main registered principal global european world central own new corporate".split()
)
_PERSONAL = frozenset({"his", "her", "their", "my", "your"})
_POSSESSIVES = frozenset({"our", "my", "your"})
_ASIDES = "avpgRkn"
"""Kinds of the items that may begin a parenthesis between a subject and its verb."""
_MOST_DEPTH = 5
"""Relative clauses within relative clauses that are read."""


@dataclass(frozen=True, slots=True)
class Phrase:
    """A noun phrase.

    Attributes:
        end: place of the item after it.
        name: resolved name; None if it has none or nobody can tell whom it means.
        surface: the name as the sentence writes it.
        role: a role without a name ("the chairman of NAME").
        days: days of that role.
        owner: resolved name in front of "'s", or the name that "its" means.
        noun: "seat" for "head office"; a relation such as "sibling" for "brother"; else empty.
    """

    end: int
    name: str | None = None
    surface: str = ""
    role: Role | None = None
    days: Days = TIMELESS
    owner: str | None = None
    noun: str = ""


class NounPhrases(SentenceState):
    """Reader of noun phrases and of the facts that they state."""

    def __init__(self, *state: object) -> None:
        super().__init__(*state)  # type: ignore[arg-type]
        self._ends: dict[int, int] = {}
        self._depth = 0

    @abstractmethod
    def predicates(self, subject: Phrase, at: int) -> int:
        """Read the verbs of a subject from a place on; return the place after the last."""

    @abstractmethod
    def participle(self, subject: str, at: int) -> int:
        """Read "based in NAME" behind a subject; return the place after it, or the same place."""

    def noun_phrase(self, at: int, *, subject: bool) -> Phrase | None:  # noqa: PLR0911 - a case each
        """Read the noun phrase that begins at a place.

        Args:
            at: the place.
            subject: a verb is to follow, so that a parenthesis may stand in between.
        """
        kind, word = self.get_kind(at), self.get_word(at)
        if kind == "h":
            return Phrase(at + 1, self.context.resolve_pronoun(word))
        if kind == "N":
            return self._name_phrase(at, subject=subject)
        if kind == "o" or word in _POSSESSIVES:
            owner = None if word in _POSSESSIVES else self.context.resolve_pronoun(word)
            return self._read_owned_phrase(at + 1, owner, word, subject=subject)
        if kind == "d" and self.get_kind(at + 1) == "N" and self.get_kind(at + 2) == "w":
            national = self.items[at + 1].word in ADJECTIVES
            if not national and self.get_word(at + 2) not in TRAILING:
                return Phrase(at + 3)  # "the NAME family"
        if kind == "d" and self.get_kind(at + 1) == "N" and self.get_kind(at + 2) in "-'":
            return self._name_phrase(at + 1, subject=subject)
        role = read_role(self.items, at)
        if role is not None and role.end > at:
            return self._role_phrase(role, at, subject=subject)
        return self._read_common_phrase(at, subject=subject)

    def _name_phrase(self, at: int, *, subject: bool) -> Phrase | None:
        """Read a phrase that begins with a name."""
        if self.get_kind(at + 1) == "'":
            start = at + 2 + (self.get_word(at + 2) == "s")
            return self._read_owned_phrase(start, self.get_name(at), "'s", subject=subject)
        if self.get_kind(at + 1) == "-" and self.get_word(at + 2) == "based":
            return self._read_based_phrase(at, subject=subject)
        title = read_role(self.items, at + 1) if self.get_kind(at + 1) in "wa" else None
        if title is not None and self.get_kind(title.end) == "N" and title.end > at + 1:
            if at == 0 and title.kind == "person":
                return self._name_phrase(title.end, subject=subject)  # "Art historian NAME": whose "Art" is unknown
            self.call(self.get_name(title.end), title, self.get_name(at), beside=True)
            return self._name_phrase(title.end, subject=subject)
        surface, name = self.items[at].text, self.get_name(at)
        if subject:
            self.context.note(name)
        return Phrase(self.apposition(name, at + 1, subject=subject), name, surface)

    def _read_based_phrase(self, at: int, *, subject: bool) -> Phrase | None:
        """Read "the PLACE-based company" and "PLACE-based NAME"."""
        place, start = self.items[at].text, at + 3
        if self.get_kind(start) == "N":
            phrase = self._name_phrase(start, subject=subject)
            self.state(phrase.name if phrase else None, "based in", place, "entity")
            return phrase
        role = read_role(self.items, start)
        if role is None or role.kind != "organisation":
            return None
        if self.get_kind(role.end) == "N":
            self.call(self.get_name(role.end), role, None, beside=True)
            self.state(self.get_name(role.end), "based in", place, "entity")
            return self._name_phrase(role.end, subject=subject)
        if self.get_word(at - 1) != "the" or role.organisation is not None:
            return None
        self.state(self.context.organisation, "based in", place, "entity")
        return Phrase(role.end, self.context.organisation)

    def _read_owned_phrase(self, start: int, owner: str | None, determiner: str, *, subject: bool) -> Phrase | None:
        """Read what follows "NAME's" or "its": a role, a relative or a seat, with a name or without."""
        place = start
        while self.get_word(place) in _SEAT_ADJECTIVES:
            place += 1
        if self.get_word(place) in SEATS and self.get_kind(place + 1) != "N":
            return Phrase(place + 1, owner=owner, noun="seat")
        relation, after = self._kin_noun(start)
        if relation is not None:
            return self._kin_phrase(owner, relation, after, subject=subject)
        role = read_role(self.items, start)
        if role is None or role.end == start:
            return self._read_name_beside(start, subject=subject)
        role = replace(role, definite=True)
        if owner is not None and determiner in _PERSONAL:
            owner = None  # "her deputy": nobody can tell of which organisation
        has_organisation = owner is not None or determiner in _POSSESSIVES or role.organisation is not None
        days, end = self._role_days(role.end)
        comma = self.get_kind(end) == ","
        name = end + comma
        if self.get_kind(name) == "N" and (not comma or self.get_kind(name + 1) in ",.;)"):
            resolved = self.get_name(name)
            if has_organisation and determiner != "my" and not (role.kind == "office" and owner == resolved):
                self.call(resolved, role, owner, beside=False, days=days)
            if subject:
                self.context.note(resolved)
            return Phrase(self._past_comma(name, resolved, comma, subject=subject), resolved, self.items[name].text)
        if not has_organisation or comma:
            return Phrase(end) if not comma else None
        if role.organisation is None and owner is not None:
            role = replace(role, organisation=owner)
        return Phrase(end, role=role, days=days, owner=owner)

    def _read_name_beside(self, start: int, *, subject: bool) -> Phrase | None:
        """Read a name beside nouns that say nothing that is read: "her rival, NAME," and "my colleague NAME"."""
        end = start
        while end < start + LOOK_AHEAD and self.get_kind(end) in "wa":
            end += 1
        comma = self.get_kind(end) == ","
        name = end + comma
        if end == start or self.get_kind(name) != "N" or (comma and self.get_kind(name + 1) not in ",.;)"):
            return None
        if not comma and self.get_kind(name + 1) in "'w-" and not subject:
            return None
        resolved = self.get_name(name)
        if subject:
            self.context.note(resolved)
        return Phrase(self._past_comma(name, resolved, comma, subject=subject), resolved, self.items[name].text)

    def _kin_noun(self, at: int) -> tuple[str | None, int]:
        """Read a noun for a relative, such as "elder sister".

        Returns:
            The relation, such as "sibling", or None without such a noun; and the place after the noun.
        """
        place = at
        while place < at + 3 and self.get_kind(place) in "wa#" and self.get_word(place) not in clause_words.KIN:
            place += 1
        return clause_words.KIN.get(self.get_word(place)), place + 1

    def _kin_phrase(self, owner: str | None, relation: str, at: int, *, subject: bool) -> Phrase | None:
        """Read what follows a noun for a relative, and state the relation if a name follows.

        Args:
            owner: whose relative it is.
            relation: such as "sibling".
            at: the place after the noun.

        Returns:
            Without a name, a phrase with only owner and relation; None if a comma stands there and no closed name
            follows it.
        """
        comma = self.get_kind(at) == ","
        name = at + comma
        if self.get_kind(name) != "N" or (comma and self.get_kind(name + 1) not in ",.;)"):
            return Phrase(at, owner=owner, noun=relation) if not comma else None
        resolved = self._relative_name(name, owner)
        self.state(owner, relation, resolved, "entity")
        if subject:
            self.context.note(resolved)
        return Phrase(self._past_comma(name, resolved, comma, subject=subject), resolved, self.items[name].text)

    def _relative_name(self, at: int, owner: str | None) -> str:
        """Return a relative's name; the bare first name of another person than the owner stays as it is."""
        text = self.items[at].text
        resolved = self.get_name(at)
        return text if resolved == owner else resolved

    def _role_phrase(self, role: Role, at: int, *, subject: bool) -> Phrase | None:
        """Read a phrase that begins with a role: "the principal, NAME,", "the botanist NAME", "the company"."""
        if self.get_kind(role.end) == "N":
            self.call(self.get_name(role.end), role, None, beside=True)
            return self._name_phrase(role.end, subject=subject)
        days, end = self._role_days(role.end) if subject else (TIMELESS, role.end)
        if self.get_kind(end) == ",":
            if self.get_kind(end + 1) == "N" and self.get_kind(end + 2) == "c" and self.get_kind(end + 3) == "N":
                return self._firm(end + 1) if self.get_kind(end + 4) == "," else None
            closed = self.get_kind(end + 2) == "," or (not subject and self.get_kind(end + 2) in ".;")
            if self.get_kind(end + 1) == "N" and closed:
                resolved = self.get_name(end + 1)
                if role.definite or role.organisation is not None:
                    self.call(resolved, role, None, beside=False, days=days)
                if subject:
                    self.context.note(resolved)
                past = self._past_comma(end + 1, resolved, True, subject=subject)
                return Phrase(past, resolved, self.items[end + 1].text)
        if (
            role.kind == "organisation"
            and role.definite
            and role.organisation is None
            and self.get_word(at) == "the"
        ):
            if self.get_kind(end) == "'":
                start = end + 1 + (self.get_word(end + 1) == "s")
                return self._read_owned_phrase(start, self.context.organisation, "'s", subject=subject)
            company = self.context.organisation
            if self.get_kind(end) == "," and company is not None:
                end = self.apposition(company, end, subject=subject)
            return Phrase(end, company)
        return Phrase(end, role=role, days=days)

    def _firm(self, at: int) -> Phrase:
        """Read "the auditors, NAME and NAME,": one organisation."""
        name = f"{self.items[at].text} {self.items[at + 1].text} {self.items[at + 2].text}"
        self.context.note(name)
        return Phrase(at + 4, name, name)

    def _read_common_phrase(self, at: int, *, subject: bool) -> Phrase | None:
        """Read other nouns, and the name that stands beside them: "the supplier, NAME,"."""
        end = at
        while end < at + LOOK_AHEAD and self.get_kind(end) in "dwa":
            end += 1
        if end == at:
            return None
        comma = self.get_kind(end) == ","
        name = end + comma
        if self.get_kind(name) != "N" or self.get_kind(at) != "d":
            return Phrase(end)
        if not comma and self.get_kind(name + 1) in "w-":
            return Phrase(name + 2)
        if (
            comma
            and self.get_kind(name + 1) == "c"
            and self.get_kind(name + 2) == "N"
            and self.get_kind(name + 3) == ","
        ):
            return self._firm(name)
        if comma and self.get_kind(name + 1) not in ("," if subject else ",.;"):
            return Phrase(end)
        resolved = self.get_name(name)
        if subject:
            self.context.note(resolved)
        return Phrase(self._past_comma(name, resolved, comma, subject=subject), resolved, self.items[name].text)

    def _past_comma(self, at: int, name: str, comma: bool, *, subject: bool) -> int:
        """Return the place after a name, its apposition, and the comma that closes it."""
        end = self.apposition(name, at + 1, subject=subject)
        return end + 1 if comma and end == at + 1 and self.get_kind(end) == "," else end

    def apposition(self, name: str, at: int, *, subject: bool) -> int:
        """Read what stands behind a name between commas or in brackets; return the place after it."""
        known_end = self._ends.get(at)
        if known_end is not None:
            return known_end
        if self._depth >= _MOST_DEPTH:
            return at
        self._depth += 1
        end = self._apposition(name, at, subject=subject)
        self._depth -= 1
        self._ends[at] = end
        return end

    def _apposition(self, name: str, at: int, *, subject: bool) -> int:
        """Read what stands behind a name, in brackets, after a comma or without; return the place after it."""
        if self.get_kind(at) == "(":
            return self._bracket(name, at)
        if self.get_word(at) == "of" and self.get_kind(at + 1) == "N" and is_organisation(self.items[at + 1].text):
            self.state(name, "affiliation", self.items[at + 1].text, "entity")
            return at + 2
        if self.get_word(at) == "who":
            return self._relative_clause(name, at + 1, at)
        if self.get_kind(at) == "," and self.get_kind(at + 1) == "n":
            return self._parenthesis(at + 1) if subject else at
        if self.get_kind(at) == "c" and self.get_kind(at + 1) == "o":
            relation, after = self._kin_noun(at + 2)
            if relation is not None and self.get_kind(after) == "N":
                self.state(name, relation, self._relative_name(after, name), "entity")
            return at
        return self._read_between_commas(name, at, subject=subject) if self.get_kind(at) == "," else at

    def _read_between_commas(self, name: str, at: int, *, subject: bool) -> int:  # noqa: PLR0911 - a case each
        """Read what the comma at a place opens behind a name; return the place after it."""
        start = at + 1
        if self.get_kind(start) == "#" and self.get_kind(start + 1) == ",":
            after = self._apposition(name, start + 1, subject=subject)
            return after if after > start + 1 else start + 2
        if self.get_word(start) in {"who", "which"}:
            return self._relative_clause(name, start + 1, at)
        if self.get_word(start) == "whose":
            phrase = self._read_owned_phrase(start + 1, name, "whose", subject=True)
            end = start if phrase is None else self.predicates(phrase, phrase.end)
            return self._find_closing_comma(end, at)
        kin_end = self.read_kin(start, name)
        if kin_end:
            return kin_end + (self.get_kind(kin_end) == ",")
        role_end = self._role_apposition(name, start)
        if role_end:
            return role_end + (self.get_kind(role_end) == ",")
        if self.get_kind(start) == "v":
            end = self.participle(name, start)
            if end > start:
                return self._find_closing_comma(end, at)
        return self._parenthesis(start) if subject else at

    def _role_apposition(self, name: str, start: int) -> int:
        """Read ", chief executive of NAME," behind a name; return the place after the role, 0 if there is none."""
        start += self.get_word(start) in {"now", "currently"}
        role = read_role(self.items, start)
        if role is None or role.end == start:
            return 0
        days, end = self._role_days(role.end)
        stands_alone = role.kind == "office" or self.get_kind(start) in "do" or role.noun.endswith("ist")
        if self.get_word(end) in {"from", "in"} and self.get_kind(end + 1) == "N":
            end += 2  # "our new data analyst from NAME"
        if self.get_kind(end) == "v" and self.get_kind(end + 1) == "p" and self.get_kind(start) == "d":
            end = self.participle(name, end)  # "a construction company based in NAME"
        signed = self.get_kind(end) == "," and self.get_kind(end + 1) == "N" and self.get_kind(end + 2) == "."
        if signed and role.kind == "office" and role.organisation is None:
            role = replace(role, organisation=self.items[end + 1].text)  # ", head of sales, NAME."
        if not stands_alone or self.get_kind(end) not in ",.;)":
            return 0
        if self.get_kind(end) == "," and self.get_kind(end + 1) == "c" and role.kind != "office":
            return 0
        self.call(name, role, None, beside=False, days=days)
        return end

    def _parenthesis(self, start: int) -> int:
        """Pass over another parenthesis between a subject and its verb; return its comma's place if it is none."""
        if self.get_kind(start) not in _ASIDES and self.get_kind(start) != "d" and self.get_word(start) != "née":
            return start - 1
        for place in range(start, min(start + 2 * LOOK_AHEAD, len(self.items))):
            if self.get_kind(place) in ";.":
                break
            if self.get_kind(place) == "D" and self.opening is None:
                self.opening = self.items[place]
            if self.get_kind(place) == ",":
                return place + 1 if self.get_kind(place + 1) in "bxv" else start - 1
        return start - 1

    def _bracket(self, name: str, at: int) -> int:
        """Read "(treasurer)" behind a name; return the place after the bracket."""
        role = read_role(self.items, at + 1)
        if role is not None and self.get_kind(role.end) == ")":
            self.call(name, role, None, beside=False)
        end = at
        while end < min(at + 4 * LOOK_AHEAD, len(self.items)) and self.get_kind(end) != ")":
            end += 1
        return end + 1 if self.get_kind(end) == ")" else at

    def _relative_clause(self, name: str, start: int, at: int) -> int:
        """Read "who was born in NAME" of a name; return the place after it."""
        end = self.predicates(Phrase(start, name, name), start)
        return self._find_closing_comma(end, at)

    def _find_closing_comma(self, end: int, at: int) -> int:
        """Return the place after the comma that closes what a comma at a place opened."""
        last = min(end + 2 * LOOK_AHEAD, len(self.items))
        while end < last and self.get_kind(end) not in ",;.":
            end += 1
        return end + (self.get_kind(end) == ",") if end < last or end == len(self.items) else at

    def _role_days(self, at: int) -> tuple[Days, int]:
        """Read "since 2011" and "from 2014 to 2021" behind a role; return the days and the place after them."""
        date = self.items[at] if self.get_kind(at) == "D" else None
        end = at + 1
        preposition = ""
        if date is None and self.get_word(at) in {"since", "from"} and self.get_kind(at + 1) == "D":
            date, preposition, end = self.items[at + 1], self.get_word(at), at + 2
        if date is None:
            return TIMELESS, at
        bounded = preposition or date.word.startswith(("since", "from", "between", "until", "till"))
        return (compute_days(date, preposition), end) if bounded else (TIMELESS, at)

    def read_kin(self, at: int, name: str) -> int:
        """Read "the daughter of NAME and NAME" behind a name, and state the relations.

        Returns:
            The place after it; 0 if there is none.
        """
        place = at
        while place < at + 3 and self.get_kind(place) in "dwa" and self.get_word(place) not in clause_words.KIN:
            place += 1
        relation_of_name = clause_words.KIN.get(self.get_word(place))
        if relation_of_name is None or self.get_word(place + 1) != "of":
            return 0
        other = place + 2
        if self.get_kind(other) == "d":
            title = read_role(self.items, other)
            if title is None or self.get_kind(title.end) != "N":
                return 0
            self.call(self.get_name(title.end), title, None, beside=True)
            other = title.end
        if self.get_kind(other) != "N" or self.get_kind(other + 1) in "'w-":
            return 0
        relation = clause_words.INVERSE[relation_of_name]
        self.state(name, "father" if relation == "parent" else relation, self.get_name(other), "entity")
        if relation == "parent" and self.get_kind(other + 1) == "c" and self.get_kind(other + 2) == "N":
            self.state(name, "mother", self.get_name(other + 2), "entity")
            other += 2
        return other + 1

    def call(self, name: str, role: Role, owner: str | None, *, beside: bool, days: Days = TIMELESS) -> None:
        """Note the role that stands beside a name.

        A bare title in front of a name ("Coach NAME") states no post.

        Args:
            name: whom the role is of.
            role: the role.
            owner: organisation that stands in front of the role.
            beside: no comma stands between role and name.
            days: of the role.
        """
        if role.owner is not None and owner is None and role.owner.word in {"its", "his", "her", "their"}:
            owner = self.context.resolve_pronoun(role.owner.word) if role.owner.word == "its" else None
            if owner is None:
                return
        if role.is_post and role.is_general and not beside:
            self.state(name, "position held", role.with_organisation(owner), "text", days)
        elif role.kind == "office" and (role.is_post or beside):
            if not beside or role.organisation or owner:
                self.posts[name] = (role.with_organisation(owner), days)
                employer = role.organisation or owner
                if employer is not None:
                    self.employers[name] = employer
        elif role.is_post and not beside:
            self.posts[name] = (role.with_organisation(owner), days)
        elif role.kind == "person" or not role.definite:
            self.state_type(name, role)


def follows_name(items: Sequence[Item], at: int) -> bool:
    """Return whether the item at a place lets the name in front of it stand by itself."""
    return at >= len(items) or items[at].kind not in "w'-" or items[at].word in TRAILING
