"""What verbs state: who was born where, holds which post since when, moved to which place."""

from collections.abc import Callable

from engram.providers.language.facts import clause_words
from engram.providers.language.facts.adjuncts import Adjuncts
from engram.providers.language.facts.context import is_organisation
from engram.providers.language.facts.naming import Naming
from engram.providers.language.facts.posts import Posts
from engram.providers.language.facts.roles import Role, read_role
from engram.providers.language.facts.sentence import TIMELESS, Verb

_MODALS = frozenset("will would shall should".split())
_HARDLY = frozenset("almost nearly formerly never".split())
_PAST = frozenset("was were had formerly previously originally once".split())
_SEATS = frozenset("headquarters headquarter office offices seat base home".split())
_SCHOOLS = frozenset(
    "university college school academy institute polytechnic gymnasium conservatory conservatoire".split()
)
_OPEN = {"founded": "founded", "established": "founded", "won": "won", "acquired": "acquired", "bought": "acquired"}
_OPEN |= {"owns": "owns"}
"""Verbs whose object is a name."""


class Predicates(Posts, Naming):
    """Reads verbs with their subject."""

    def predicates(self, at: int, subject: str | None, role: Role | None) -> int:
        """Read verbs that share a subject: "was born in NAME and studied at NAME"; the place after the last."""
        end = self._predicate(at, subject, role)
        while end is not None and end > at:
            at = end
            following = at + 1 + (self._kind(at) == "," and self._kind(at + 1) == "c")
            if self._kind(following - 1) != "c":
                break
            while self._kind(following) == "a":
                following += 1
            if self._kind(following) not in "bxv" and self._word(following) not in VERBS:
                break
            end = self._predicate(following, subject, None)
        return at if end is None else max(at, end)

    def _predicate(self, at: int, subject: str | None, role: Role | None) -> int | None:
        """Read one verb with what follows it; None if there is no verb that is known."""
        place = at
        while self._kind(place) in "axbn":
            place += 1
        before = [item.word for item in self.items[at:place]]
        if place >= len(self.items):
            return None
        denied = any(item.kind == "n" for item in self.items[at:place])
        if denied or self._word(place) == "to" or (_MODALS | _HARDLY).intersection(before):
            return self._silent(place)
        has = {"has", "have", "had"}.intersection(before)
        verb = Verb(place, subject, past=bool(_PAST.intersection(before)), perfect=bool(has))
        if clause_words.BE.intersection(before):
            return self._be(verb, role)
        if has and self._kind(place) in "do":
            return self._seat(verb)
        active = _ACTIVE.get(self._word(place))
        return None if active is None else active(self, verb)

    def _silent(self, at: int) -> int:
        """Pass over what is denied or only planned, up to the end of its clause."""
        while at < len(self.items) and self.items[at].kind not in ",;ck":
            at += 1
        return at

    def _be(self, verb: Verb, role: Role | None) -> int | None:
        passive = _PASSIVE.get(self._word(verb.at))
        if passive is not None:
            return passive(self, verb)
        if self._kind(verb.at) in "vg" and read_role(self.items, verb.at) is None:
            return None
        return self._holder(verb, role) if role is not None else self._complement(verb)

    def _holder(self, verb: Verb, role: Role) -> int | None:
        """ "The chairman of NAME is NAME"."""
        if self._kind(verb.at) != "N" or role.kind != "office":
            return None
        name, days = self._name(verb.at), self._adjuncts(verb.at + 1).lasting()
        if days is not None and (not verb.is_over or days != TIMELESS):
            self._state(name, "position held", role.at(None), "text", days)
        self.context.note(name)
        return self.apposition(verb.at)

    def _complement(self, verb: Verb) -> int | None:
        """What somebody or something is: a relative, a citizen, a member, a post, a kind."""
        if verb.subject is None:
            return None
        kin_end = self.kin(verb.at, verb.subject)
        if kin_end:
            return kin_end
        noun = verb.at + (self._kind(verb.at) == "d")
        if self._word(noun + 1) == "of" and self._word(noun) in {"citizen", "national", "member"}:
            name = noun + 2 + (self._kind(noun + 2) == "d")
            if self._kind(name) == "N":
                return self._belongs(verb, name, self._word(noun))
        role = read_role(self.items, verb.at)
        if role is None or role.end == verb.at:
            return None
        adjuncts = self._adjuncts(role.end)
        if not role.is_post:
            self._is_a(verb.subject, role)
        elif (days := verb.days(adjuncts)) is not None:
            self._state(verb.subject, "position held", role.at(None), "text", days)
            self.role = role.at(None)
        return adjuncts.end

    def _belongs(self, verb: Verb, name: int, noun: str) -> int:
        if noun == "member":
            return self._affiliated(verb, name, self._adjuncts(name + 1))
        if not verb.is_over:
            self._state(verb.subject, "citizenship", self._name(name), "entity")
        return name + 1

    def _affiliated(self, verb: Verb, name: int, adjuncts: Adjuncts) -> int:
        days = verb.days(adjuncts)
        if days is not None:
            self._state(verb.subject, "affiliation", self._name(name), "entity", days)
        return adjuncts.end

    def _born(self, verb: Verb) -> int:
        return self._life(verb, "birth")

    def _died(self, verb: Verb) -> int:
        return self._life(verb, "death")

    def _life(self, verb: Verb, event: str) -> int:
        adjuncts = self._adjuncts(verb.at + 1)
        place, date = adjuncts.name("in", "at", "near"), adjuncts.date
        if place is not None:
            self._state(verb.subject, f"place of {event}", self._name(place), "entity")
            if self._kind(place + 1) == "," and self._kind(place + 2) == "N" and self._kind(place + 3) in ",.;c":
                self._state(self._name(place), "located in", self._name(place + 2), "entity")
                rest = self._adjuncts(place + 3)
                date, adjuncts = date or rest.date, rest
        if date is not None:
            self._state(verb.subject, f"date of {event}", date.text, "date")
        cause = adjuncts.text("of", "from") if event == "death" else None
        if cause is not None:
            self._state(verb.subject, "cause of death", cause, "text")
        return adjuncts.end

    def _based(self, verb: Verb) -> int:
        return self._based_at(verb, verb.at + 1)

    def _lived(self, verb: Verb) -> int:
        return self._based_at(verb.in_past(), verb.at + 1)

    def _based_at(self, verb: Verb, at: int) -> int:
        adjuncts = self._adjuncts(at)
        place, days = adjuncts.name("in", "at", "near"), verb.days(adjuncts)
        if place is not None and days is not None:
            self._state(verb.subject, "based in", self._name(place), "entity", days)
        outer = adjuncts.end + 1
        listed = self._kind(outer - 1) == "," and self._kind(outer) == "N" and self._kind(outer + 1) in ",."
        if place is not None and listed and adjuncts.end == place + 1:  # "in A, B"
            self._state(self._name(place), "located in", self._name(outer), "entity")
            return outer + 1
        return adjuncts.end

    def _seat(self, verb: Verb) -> int | None:
        """ "has its headquarters in NAME"."""
        end = self._seat_end(verb.at)
        return None if end is None or verb.past else self._based_at(verb.present(), end)

    def _seat_end(self, at: int) -> int | None:
        """The place after "its head office"."""
        place = at + 1
        while place < at + 5 and self._kind(place) in "wa":
            place += 1
        return place if self._word(place - 1) in _SEATS else None

    def _moved(self, verb: Verb) -> int | None:
        start: int | None = verb.at + 1
        if self._kind(verb.at + 1) == "o":
            start = self._seat_end(verb.at + 1)
        if start is None:
            return None
        adjuncts = self._adjuncts(start)
        old, new = adjuncts.name("from"), adjuncts.name("to")
        if new is None:
            return adjuncts.end
        # A page tells of moves long past: without a date nobody can tell whether another followed.
        if verb.perfect or adjuncts.date is not None or not self.context.is_page:
            self._state(verb.subject, "based in", self._name(new), "entity", adjuncts.beginning())
        ending = adjuncts.ending()
        if old is not None and ending is not None:
            self._state(verb.subject, "based in", self._name(old), "entity", ending)
        return adjuncts.end

    def _is_married(self, verb: Verb) -> int:
        adjuncts = self._adjuncts(verb.at + 1)
        name = adjuncts.name("to")
        if name is not None:
            self._state(verb.subject, "spouse", self._name(name), "entity")
        return adjuncts.end

    def _named(self, verb: Verb) -> int:
        if self._word(verb.at + 1) not in {"after", "for"}:
            return self._appointed(verb)
        adjuncts = self._adjuncts(verb.at + 1)
        name = adjuncts.name("after")
        if name is not None:
            self._state(verb.subject, "named after", self._name(name), "entity")
        return adjuncts.end

    def _learned(self, verb: Verb) -> int:
        """ "studied law at NAME"."""
        start = verb.at + 1
        while self._kind(start) in "wa":
            start += 1
        adjuncts = self._adjuncts(start)
        place = adjuncts.name("at", "from")
        if place is not None and (not is_organisation(self.items[place].text) or self._is_school(place)):
            self._state(verb.subject, "educated at", self._name(place), "entity")
        return adjuncts.end

    def _is_school(self, at: int) -> bool:
        return bool(_SCHOOLS.intersection(self._word(at).split()))

    def _works(self, verb: Verb) -> int:
        adjuncts = self._adjuncts(verb.at + 1)
        name, role, days = adjuncts.name("for", "at", "to", "with"), adjuncts.role(), verb.days(adjuncts)
        if days is None:
            return adjuncts.end
        if role is not None and (role.is_post or name is not None):
            employer = self._name(name) if name is not None else None
            self._state(verb.subject, "position held", role.at(employer), "text", days)
        elif role is not None:
            self._is_a(verb.subject, role)
        elif name is not None:
            self._state(verb.subject, "affiliation", self._name(name), "entity", days)
        return adjuncts.end

    def _worked(self, verb: Verb) -> int:
        return self._works(verb.in_past())

    def _was_founded(self, verb: Verb) -> int:
        adjuncts = self._adjuncts(verb.at + 1)
        if adjuncts.date is not None:
            self._state(verb.subject, "founded in", adjuncts.date.text, "date")
        place, founder = adjuncts.name("in"), adjuncts.name("by")
        if place is not None:
            self._state(verb.subject, "founded in", self._name(place), "entity")
        if founder is not None:
            self._state(verb.subject, "founded by", self._name(founder), "entity")
            other = founder + 2
            while self._kind(founder + 1) == "c" and self._kind(other) in "ow":
                other += 1
            if self._kind(founder + 1) == "c" and self._kind(other) == "N":
                self._state(verb.subject, "founded by", self._name(other), "entity")
        return adjuncts.end

    def _object(self, verb: Verb) -> int | None:
        """The place of the name that is a verb's object."""
        place = verb.at + 1 + (self._kind(verb.at + 1) == "d")
        return place if self._kind(place) == "N" and self._kind(place + 1) not in "w'-" else None

    def _has_object(self, verb: Verb) -> int | None:
        """ "founded NAME", "won the NAME"."""
        place = self._object(verb)
        if place is None:
            return None
        self._state(verb.subject, _OPEN[self._word(verb.at)], self._name(place), "entity")
        return self._adjuncts(place + 1).end

    def _employs(self, verb: Verb) -> int | None:
        if self._kind(verb.at + 1) != "#":
            return None
        end = verb.at + 2 + (self._kind(verb.at + 2) == "w")
        text = " ".join(item.text for item in self.items[verb.at + 1 : end])
        self._state(verb.subject, "employs", text, "number")
        return end

    def _marries(self, verb: Verb) -> int | None:
        place = self._object(verb)
        if place is None:
            return None
        adjuncts = self._adjuncts(place + 1)
        self._state(verb.subject, "spouse", self._name(place), "entity", adjuncts.beginning())
        return adjuncts.end

    def _attended(self, verb: Verb) -> int | None:
        place = self._object(verb)
        if place is None or not self._is_school(place):
            return place
        self._state(verb.subject, "educated at", self._name(place), "entity")
        return place + 1

    def _joined(self, verb: Verb) -> int | None:
        place = self._object(verb)
        if place is None:
            return None
        name, adjuncts = self._name(place), self._adjuncts(place + 1)
        role, days = adjuncts.role(), adjuncts.beginning()
        if role is not None:
            self._state(verb.subject, "position held", role.at(name), "text", days)
        elif days != TIMELESS or verb.perfect:
            self._state(verb.subject, "affiliation", name, "entity", days)
        return adjuncts.end

    def _left(self, verb: Verb) -> int | None:
        """ "left NAME in 2004", but of "left Bergen for Oslo" nothing."""
        place = self._object(verb)
        if place is None:
            return None
        name, adjuncts = self._name(place), self._adjuncts(place + 1)
        ending = adjuncts.ending()
        if ending is not None and (is_organisation(name) or " " in name) and adjuncts.name("for") is None:
            self._state(verb.subject, "affiliation", name, "entity", ending)
        return adjuncts.end

    def _leaves(self, verb: Verb) -> int | None:
        """ "leaves a daughter, NAME"."""
        kin, name = self._kin_before(verb.at + 1 + (self._kind(verb.at + 1) == "d"))
        if kin is None:
            return None
        self._state(verb.subject, kin, self._name(name), "entity")
        return name + 1


Reading = Callable[[Predicates, Verb], int | None]
_PASSIVE: dict[str, Reading] = {
    "born": Predicates._born,
    "married": Predicates._is_married,
    "named": Predicates._named,
    "educated": Predicates._learned,
    "founded": Predicates._was_founded,
    "established": Predicates._was_founded,
}
_ACTIVE: dict[str, Reading] = {
    "became": Predicates._became,
    "becomes": Predicates._became,
    "died": Predicates._died,
    "lives": Predicates._based,
    "resides": Predicates._based,
    "lived": Predicates._lived,
    "moved": Predicates._moved,
    "relocated": Predicates._moved,
    "works": Predicates._works,
    "teaches": Predicates._works,
    "lectures": Predicates._works,
    "belongs": Predicates._works,
    "worked": Predicates._worked,
    "taught": Predicates._worked,
    "serves": Predicates._serves,
    "served": Predicates._served,
    "took": Predicates._took_over,
    "joined": Predicates._joined,
    "left": Predicates._left,
    "leaves": Predicates._leaves,
    "married": Predicates._marries,
    "attended": Predicates._attended,
    "employs": Predicates._employs,
}
for _word in ("based", "headquartered", "located", "situated"):
    _PASSIVE[_word] = Predicates._based
for _word in (
    "appointed",
    "elected",
    "made",
    "promoted",
    "chosen",
    "hired",
    "installed",
    "reappointed",
    "reelected",
):
    _PASSIVE[_word] = Predicates._appointed
    _ACTIVE[_word] = Predicates._appoint
_ACTIVE["named"] = Predicates._appoint
for _word in ("succeeded", "replaced", "followed"):
    _PASSIVE[_word] = Predicates._succeeded_by
    _ACTIVE[_word] = Predicates._succeeded
for _word in ("succeeds", "replaces"):
    _ACTIVE[_word] = Predicates._succeeded
for _word in ("resigned", "retired", "stepped", "stood", "quit"):
    _ACTIVE[_word] = Predicates._resigned
for _word in ("studied", "graduated", "trained"):
    _ACTIVE[_word] = Predicates._learned
for _word in _OPEN:
    _ACTIVE[_word] = Predicates._has_object
VERBS = frozenset(_ACTIVE)
"""Verbs that are known in the active voice."""
