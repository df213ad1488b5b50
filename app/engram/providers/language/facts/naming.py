"""Whom a clause is about, and what stands beside a name: "the principal, NAME,", "NAME, the sister of NAME,"."""

from abc import abstractmethod
from dataclasses import replace
from typing import NamedTuple

from engram.providers.language.facts import clause_words
from engram.providers.language.facts.roles import Role, read_role
from engram.providers.language.facts.sentence import LOOK, Sentence
from engram.providers.language.facts.sentence_items import Item

_ASIDES = frozenset("formerly previously aged then now".split())


class Subject(NamedTuple):
    """Whom a clause is about.

    Attributes:
        name: None where nobody can tell.
        role: said of somebody after the verb ("The chairman is NAME").
        end: where the verb is looked for.
    """

    name: str | None
    role: Role | None
    end: int


class Naming(Sentence):
    """Reads names with what stands beside them."""

    @abstractmethod
    def predicates(self, at: int, subject: str | None, role: Role | None) -> int:
        """Read the verbs from a place on; the place after the last."""

    def subject(self, at: int) -> Subject:
        """The name before the verb, or what stands for one; the role that is said of somebody after the verb."""
        items = self.items
        if at >= len(items):
            return Subject(None, None, at)
        item = items[at]
        if item.kind == "h":
            subject = self.context.meant(item.word)
            self.context.note(subject)
            return Subject(subject, None, at + 1)
        if item.kind == "N":
            if self._kind(at + 1) == "'":
                return self._owned(at)
            end = self.apposition(at)
            name = self._name(at)
            several = self._kind(end) == "c" and self._kind(end + 1) == "N"
            if several:
                return Subject(None, None, end)
            self.context.note(name)
            return Subject(name, None, end)
        return self._described(at)

    def _owned(self, at: int) -> Subject:
        """ "NAME's chief executive, NAME," and "NAME's father, NAME,": the second name."""
        start = at + 2 + (self._word(at + 2) == "s")
        role = read_role(self.items, start)
        self._read.add(at)
        if role is not None:
            return self._with_role(role, self._name(at), role.end)
        kin, name = self._kin_before(start)
        if kin is None:
            return Subject(None, None, start)
        self._state(self._name(at), kin, self._name(name), "entity")
        return Subject(self._name(name), None, self._past_comma(name, comma=self._kind(name - 1) == ","))

    def _kin_before(self, at: int) -> tuple[str | None, int]:
        """What "elder sister" and a comma before a name make of it, and where the name stands."""
        place = at
        while place < len(self.items) and place < at + 4 and self.items[place].kind in "wa#":
            place += 1
        kin = next(
            (clause_words.KIN[one.word] for one in self.items[at:place] if one.word in clause_words.KIN), None
        )
        name = place + (self._kind(place) == ",")
        return (kin, name) if self._kind(name) == "N" else (None, at)

    def _described(self, at: int) -> Subject:
        """ "The principal, NAME,", "his sister, NAME,", "the supplier, NAME,", "the company"."""
        role = read_role(self.items, at)
        if role is not None and role.end > at:
            return self._by_role(role)
        end = at
        while end < len(self.items) and end < at + 5 and self.items[end].kind in "dowa":
            end += 1
        name = end + (self._kind(end) == ",")
        if end > at and self._kind(name) == "N":
            return self._beside(at, end, name)
        return Subject(None, None, end if self._kind(end) in "bxv" else at)

    def _by_role(self, role: Role) -> Subject:
        """ "The principal, NAME,", or "the company" for one that was named."""
        owner = self.context.meant(role.owner.word) if role.owner is not None else None
        if role.kind != "organisation" or not role.definite or self._kind(role.end) == "N":
            return self._with_role(role, owner, role.end)
        meant = self.context.organisation if role.organisation is None else None
        if self._kind(role.end) != ",":
            return Subject(meant, None, role.end)
        if self._word(role.end + 1) in {"which", "who"}:
            return Subject(meant, None, self._relative(role.end, meant))
        return self._with_role(role, owner, role.end)

    def _beside(self, at: int, end: int, name: int) -> Subject:
        """ "His sister, NAME," and "the supplier, NAME,": the name, which stands after other nouns."""
        comma = name > end
        kin = next((clause_words.KIN[one.word] for one in self.items[at:end] if one.word in clause_words.KIN), None)
        if kin is not None and self.items[at].kind == "o":
            self._related(self.items[at], kin, name)
            return Subject(self._name(name), None, self._past_comma(name, comma=comma))
        if comma and self._kind(name + 1) == "c":
            return self._firm(name)
        if not comma and self.items[at].kind not in "do":
            return Subject(None, None, at)
        after = self._past_comma(name, comma=comma)
        self.context.note(self._name(name))
        return Subject(self._name(name), None, after)

    def _firm(self, at: int) -> Subject:
        """ "The auditors, NAME and NAME,": one name."""
        if self._kind(at + 2) != "N" or self._kind(at + 3) != ",":
            return Subject(None, None, at)
        self._read |= {at, at + 2}
        name = f"{self.items[at].text} {self.items[at + 1].text} {self.items[at + 2].text}"
        self.context.note(name)
        return Subject(name, None, at + 4)

    def _with_role(self, role: Role, owner: str | None, at: int) -> Subject:
        """A role before a name, with a comma or without; before a verb it is said of a name after that."""
        comma = self._kind(at) == ","
        name = at + 1 if comma else at
        if self._kind(name) == "N":
            end = self._past_comma(name, comma=comma)
            if not comma or end > name + 1:
                subject = self._name(name)
                self.call(subject, role, owner, beside=not comma)
                self.context.note(subject)
                return Subject(subject, None, end)
        if owner is None and role.owner is not None and role.owner.word in {"its", "his", "her", "their"}:
            return Subject(None, None, at)
        if self._kind(at) == "b":
            known = role if role.organisation is not None or owner is None else _of(role, owner)
            return Subject(None, known, at)
        return Subject(None, None, at)

    def _past_comma(self, name: int, *, comma: bool) -> int:
        """The place after a name and what it is called by, and after the comma that closes an apposition."""
        end = self.apposition(name)
        return end + 1 if comma and self._kind(end) == "," and end == name + 1 else end

    def apposition(self, at: int) -> int:
        """Read what follows a name between commas or in brackets: a role, a relative, "who ..."; where it ends."""
        if at in self._read:
            return at + 1
        self._read.add(at)
        name, end = self._name(at), at + 1
        if self._kind(end) == "(":
            return self._bracket(name, end)
        if self._kind(end) == "c" and self._kind(end + 1) == "o":
            return self._kin_of_name(name, end)
        start = end + (self._kind(end) == ",")
        if self._word(start) in {"who", "which"}:
            return self._relative(start - 1, name)
        return end if start == end else self._between_commas(name, start)

    def _bracket(self, name: str, at: int) -> int:
        """ "NAME (treasurer)"."""
        role = read_role(self.items, at + 1)
        if role is not None and self._kind(role.end) == ")":
            self.call(name, role, None, beside=False)
        while at < len(self.items) and self.items[at].kind != ")":
            at += 1
        return at + 1

    def _between_commas(self, name: str, start: int) -> int:
        """Read an apposition from behind its first comma on; the place after it, or of that comma."""
        if self._kind(start) == "#" and self._kind(start + 1) == ",":
            return start + 2  # "NAME, 48,"
        kin_end = self.kin(start, name)
        if kin_end:
            return kin_end + (self._kind(kin_end) == ",")
        role = read_role(self.items, start)
        if role is not None and self._describes(role, start) and not self._lists(role.end):
            self.call(name, role, None, beside=False)
            return role.end + (self._kind(role.end) == ",")
        if self._word(start) in _ASIDES or self._kind(start) == "d":
            ahead = range(start, min(start + LOOK, len(self.items)))
            closing = next((place + 1 for place in ahead if self.items[place].kind in ",;"), start - 1)
            return closing if self._kind(closing) in "bxv" else start - 1
        return start - 1

    def _describes(self, role: Role, start: int) -> bool:
        """Whether a role stands by itself between commas; one that is no post has an article, or is an -ist."""
        plain = role.kind == "office" or self._kind(start) in "do" or role.noun.endswith("ist")
        return plain and role.end > start and self._kind(role.end) in ",.;)"

    def _lists(self, at: int) -> bool:
        return self._kind(at) == "," and self._kind(at + 1) == "c"

    def _relative(self, at: int, name: str | None) -> int:
        """ "NAME, who ...,": said of the name; the place after the closing comma."""
        end = self.predicates(at + 2, name, None)
        while end < len(self.items) and self.items[end].kind not in ",;.":
            end += 1
        return end + (self._kind(end) == ",")

    def kin(self, at: int, name: str) -> int:
        """ "the daughter of NAME and NAME"; the place after it, 0 if it is none."""
        items, place = self.items, at
        while place < len(items) and place < at + 4 and items[place].kind in "dwa#":
            if (
                items[place].word in clause_words.KIN
                and self._word(place + 1) == "of"
                and self._kind(place + 2) == "N"
            ):
                break
            place += 1
        if (
            self._word(place) not in clause_words.KIN
            or self._word(place + 1) != "of"
            or self._kind(place + 2) != "N"
        ):
            return 0
        relation = clause_words.INVERSE[clause_words.KIN[items[place].word]]
        other = place + 2
        self._state(name, "father" if relation == "parent" else relation, self._name(other), "entity")
        if relation == "parent" and self._kind(other + 1) == "c" and self._kind(other + 2) == "N":
            self._state(name, "mother", self._name(other + 2), "entity")
            self._read.add(other + 2)
            other += 2
        self._read.add(place + 2)
        return other + 1

    def _kin_of_name(self, name: str, at: int) -> int:
        """ "NAME and his brother NAME"."""
        kin, other = self._kin_before(at + 2)
        if kin is not None:
            self._state(name, kin, self._name(other), "entity")
        return at

    def _related(self, pronoun: Item, kin: str, name: int) -> None:
        """ "his sister, NAME"."""
        owner = self.context.meant(pronoun.word)
        if owner is not None:
            self._state(owner, kin, self._name(name), "entity")

    def called(self, at: int) -> int:
        """A role or a relative before a name that is no subject: "the botanist NAME", "her husband NAME"."""
        items = self.items
        role = read_role(items, at)
        if role is not None and role.end > at:
            name = role.end + (self._kind(role.end) == ",")
            if self._kind(name) == "N" and (name == role.end or self._kind(name + 1) in ",."):
                owner = self.context.meant(role.owner.word) if role.owner is not None else None
                self.call(self._name(name), role, owner, beside=name == role.end)
                return self.apposition(name)
            return role.end
        kin, name = self._kin_before(at + 1) if items[at].kind == "o" else (None, at)
        if kin is None:
            return at + 1
        self._related(items[at], kin, name)
        return self.apposition(name)

    def call(self, name: str, role: Role, owner: str | None, *, beside: bool) -> None:
        """Take what a name is called by; a bare title before a name ("Coach NAME") says no post.

        Neither does "its chairman, NAME" where nobody can tell whose.
        """
        unknown = owner is None and role.owner is not None and role.owner.word in {"its", "his", "her", "their"}
        if role.kind == "office" and (role.is_post or beside):
            if not unknown and (not beside or role.organisation or owner):
                self.roles[name] = role.at(owner)
                employer = role.organisation or owner
                if employer is not None:
                    self._employers[name] = employer
        elif role.kind == "person" or not role.definite:
            self._is_a(name, role)


def _of(role: Role, owner: str) -> Role:
    return replace(role, organisation=owner, owner=None)
