"""What a sentence of any text states of posts, places, relatives and lives, clause by clause.

Only what is stated outright in a known way is read; what is not understood is left out. It reads news, minutes and
e-mails, whose titles are headings, where ``reader`` reads pages about one topic.
"""

from collections.abc import Sequence

from engram.core.knowledge.triples import Kind, Triple
from engram.providers.language.facts import clause_words
from engram.providers.language.facts.adjuncts import Adjuncts, Days
from engram.providers.language.facts.assertion import stated
from engram.providers.language.facts.context import Context, is_organisation
from engram.providers.language.facts.roles import Role, read_role, with_roles
from engram.providers.language.facts.sentence_items import Item

CONFIDENCE = 0.85
_MODALS = frozenset("will would shall should".split())
_SEATS = frozenset("headquarters headquarter office offices seat base home".split())
_LATER_CLAUSES = frozenset("before after until till when once while during".split())
_ASIDES = frozenset("formerly previously aged then now".split())
_HARDLY = frozenset("almost nearly formerly never".split())
_CITIZEN = frozenset("citizen national".split())
_APPOINTED = frozenset(
    "appointed named elected made promoted chosen hired installed reappointed re-elected reelected".split()
)
_RESIGNED = frozenset("resigned retired stepped stood quit".split())
_SUCCEEDED = frozenset("succeeded replaced followed succeeds replaces".split())
_PLACED = frozenset("based headquartered located situated".split())
_LEARNED = frozenset("studied graduated educated trained".split())
_SCHOOLS = frozenset(
    "university college school academy institute polytechnic eth mit gymnasium conservatory conservatoire".split()
)
_VERBS = (
    frozenset(
        """lives resides works teaches lectures belongs became becomes moved relocated left joined died married took serves
    served worked taught lived founded established won acquired bought owns employs leaves attended passed
    """.split()
    )
    | _APPOINTED
    | _RESIGNED
    | _SUCCEEDED
    | _LEARNED
)
_OPEN = {
    "founded": "founded",
    "established": "founded",
    "won": "won",
    "acquired": "acquired",
    "bought": "acquired",
    "owns": "owns",
    "employs": "employs",
}
"""Verbs whose object is a name or a number."""
TIMELESS: Days = (None, None)
LOOK = 8
"""Items that are looked ahead for a verb."""


def read_statements(text: str, items: Sequence[Item], context: Context, ordinal: int) -> list[Triple]:
    """What one sentence states, by what its passage said before."""
    reader = _Reader(stated(text, with_roles(items)), context, ordinal)
    found = reader.read()
    context.finish()
    return found


class _Reader:
    """Where the reading of one sentence stands.

    Attributes:
        roles: what the sentence calls a name beside it; a verb may say since when, or until when.
        opening: the date in front of the clause's subject.
        role: the role that the last verb spoke of ("stepped down as chairman and was succeeded by").
    """

    def __init__(self, items: list[Item], context: Context, ordinal: int) -> None:
        self.items = items
        self.context = context
        self.found: list[Triple] = []
        self.roles: dict[str, str] = {}
        self.role: str | None = None
        self.opening: Item | None = None
        self._ordinal = ordinal
        self._employers: dict[str, str] = {}
        self._read: set[int] = set()

    def read(self) -> list[Triple]:
        """Read the sentence."""
        self._titles()
        at = self._label()
        while at < len(self.items):
            at = max(at + 1, self._clause(at))
        for name, role in self.roles.items():
            self._state(name, "position held", role, "text")
        return self.found

    # Clauses

    def _titles(self) -> None:
        """Take what stands right before a name out of the sentence: "the botanist NAME", "NAME chairman NAME"."""
        items, kept, at = self.items, list[Item](), 0
        while at < len(items):
            role = read_role(items, at) if items[at].kind in "dowavN" else None
            owned = bool(kept) and kept[-1].word == "s"
            if role is None or role.end <= at or owned or role.end >= len(items) or items[role.end].kind != "N":
                kept.append(items[at])
                at += 1
                continue
            employer = None
            if kept and kept[-1].kind == "N" and role.owner is None and not role.definite:
                employer = self.context.resolve(kept.pop().text)
            elif role.owner is not None:
                employer = self.context.meant(role.owner.word)
            self._call(self.context.resolve(items[role.end].text), role, employer, beside=True)
            at = role.end
        self.items = kept

    def _label(self) -> int:
        """ "Fire warden: NAME" and the openings of letters; where the first clause begins."""
        items = self.items
        role = read_role(items, 0)
        if (
            role is not None
            and role.kind == "office"
            and self._kind(role.end) == ";"
            and self._kind(role.end + 1) == "N"
        ):
            self.roles[self._name(role.end + 1)] = role.at(None)
            return role.end + 2
        if self._word(0) in {"yes", "no", "well"} and self._kind(1) == ",":
            return 2
        return 0

    def _clause(self, at: int) -> int:
        """Read a clause from its subject on; where the next one begins."""
        self.opening = None
        at = self._opening(at)
        if self._word(at) in _LATER_CLAUSES and self._begins(at + 1):
            return self._comma(at)
        subject, role, at = self._subject(at)
        after = self._predicates(at, subject, role)
        return self._boundary(max(after, at))

    def _opening(self, at: int) -> int:
        """Pass over "In 1995", "Founded in 1954," and the like."""
        items = self.items
        start = at
        while at < len(items) and at < start + 2 * LOOK:
            if items[at].kind in ",ak" and self._word(at) not in _LATER_CLAUSES:
                at += 1
            elif items[at].kind == "p" and self._kind(at + 1) == "D":
                self.opening = items[at + 1]
                at += 2
            elif items[at].kind == "D":
                self.opening = items[at]
                at += 1
            elif (
                items[at].kind == "v"
                and self._kind(at + 1) == "p"
                and self._kind(at + 2) == "D"
                and self._kind(at + 3) == ","
            ):
                at += 4
            else:
                break
        return at

    def _begins(self, at: int) -> bool:
        """Whether a clause begins: a subject, and a verb soon after it."""
        place = at
        while place < min(at + LOOK, len(self.items)):
            item = self.items[place]
            if item.kind == "," and self._kind(place + 1) == "N" and self._kind(place + 2) == ",":
                place += 3  # "his wife, NAME, is"
                continue
            if item.kind in "bx" or item.word in _VERBS or item.kind == "v":
                return place > at
            if item.kind in ".;,p" and item.word != "of":
                return False
            place += 1
        return False

    def _comma(self, at: int) -> int:
        """The place after the next comma."""
        while at < len(self.items) and self.items[at].kind not in ",;":
            at += 1
        return at + 1

    def _boundary(self, at: int) -> int:
        """Read what names are called up to the end of the clause; where the next one begins."""
        items = self.items
        at = min(at, len(items))
        if at and items[at - 1].kind == "N" and at - 1 not in self._read:
            at = self._apposition(at - 1)
        while at < len(items):
            item = items[at]
            if item.kind == ";":
                return at + 1
            if item.word == "that":
                return at + 1
            if item.word in _LATER_CLAUSES and (self._begins(at + 1) or self._word(at + 1).endswith("ing")):
                at = self._comma(at)
                continue
            if (item.kind in "ck," or item.word == "as") and self._begins(at + 1):
                return at + 1
            if item.kind == "N":
                at = self._apposition(at)
            elif item.kind in "do" or read_role(items, at) is not None:
                at = self._called(at)
            else:
                at += 1
        return at

    # Subjects

    def _subject(self, at: int) -> tuple[str | None, Role | None, int]:
        """The name before the verb, or what stands for one; the role that is said of somebody after the verb."""
        items = self.items
        if at >= len(items):
            return None, None, at
        item = items[at]
        if item.kind == "h":
            subject = self.context.meant(item.word)
            self.context.note(subject)
            return subject, None, at + 1
        if item.kind == "N":
            if self._kind(at + 1) == "'":
                return self._owned(at)
            end = self._apposition(at)
            name = self._name(at)
            several = self._kind(end) == "c" and self._kind(end + 1) == "N"
            if several:
                return None, None, end
            self.context.note(name)
            return name, None, end
        return self._described(at)

    def _owned(self, at: int) -> tuple[str | None, Role | None, int]:
        """ "NAME's chief executive, NAME," and "NAME's father, NAME,": the second name."""
        start = at + 2 + (self._word(at + 2) == "s")
        role = read_role(self.items, start)
        self._read.add(at)
        if role is not None:
            return self._with_role(role, self._name(at), role.end)
        kin, name = self._kin_before(start)
        if kin is None:
            return None, None, start
        self._state(self._name(at), kin, self._name(name), "entity")
        return self._name(name), None, self._past_comma(name, comma=self._kind(name - 1) == ",")

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

    def _described(self, at: int) -> tuple[str | None, Role | None, int]:
        """ "The principal, NAME,", "his sister, NAME,", "the supplier, NAME,", "the company"."""
        items = self.items
        role = read_role(items, at)
        if role is not None and role.end > at:
            owner = self.context.meant(role.owner.word) if role.owner is not None else None
            if role.kind == "organisation" and role.definite and self._kind(role.end) not in "N,":
                return (self.context.organisation if role.organisation is None else None), None, role.end
            subject = self._with_role(role, owner, role.end)
            if role.kind == "organisation" and subject[0] is None and self._word(role.end + 1) in {"which", "who"}:
                name = self.context.organisation
                return name, None, self._relative(role.end, name)
            return subject
        end = at
        while end < len(items) and end < at + 5 and items[end].kind in "dowa":
            end += 1
        comma = self._kind(end) == ","
        name = end + 1 if comma else end
        if end > at and self._kind(name) == "N":
            kin = next((clause_words.KIN[one.word] for one in items[at:end] if one.word in clause_words.KIN), None)
            if kin is not None and items[at].kind == "o":
                self._related(items[at], kin, name)
                return self._name(name), None, self._past_comma(name, comma=comma)
            if comma or items[at].kind in "do":
                subject = self._name(name)
                after = self._past_comma(name, comma=comma)
                if comma and after < len(items) and self._kind(name + 1) == "c":
                    return self._firm(name)
                self.context.note(subject)
                return subject, None, after
        return None, None, max(at, end if end < len(items) and items[end].kind in "bxv" else at)

    def _firm(self, at: int) -> tuple[str | None, Role | None, int]:
        """ "The auditors, NAME and NAME,": one name."""
        if self._kind(at + 2) != "N" or self._kind(at + 3) != ",":
            return None, None, at
        self._read |= {at, at + 2}
        name = f"{self.items[at].text} {self.items[at + 1].text} {self.items[at + 2].text}"
        self.context.note(name)
        return name, None, at + 4

    def _with_role(self, role: Role, owner: str | None, at: int) -> tuple[str | None, Role | None, int]:
        """A role before a name, with a comma or without; before a verb it is said of a name after that."""
        comma = self._kind(at) == ","
        name = at + 1 if comma else at
        if self._kind(name) == "N":
            end = self._past_comma(name, comma=comma)
            if not comma or end > name + 1:
                subject = self._name(name)
                self._call(subject, role, owner, beside=not comma)
                self.context.note(subject)
                return subject, None, end
        if owner is None and role.owner is not None and role.owner.word in {"its", "his", "her", "their"}:
            return None, None, at
        if self._kind(at) == "b":
            known = role if role.organisation is not None or owner is None else _of(role, owner)
            return None, known, at
        return None, None, at

    def _past_comma(self, name: int, *, comma: bool) -> int:
        """The place after a name and what it is called by, and after the comma that closes an apposition."""
        end = self._apposition(name)
        return end + 1 if comma and self._kind(end) == "," and end == name + 1 else end

    # What stands beside a name

    def _apposition(self, at: int) -> int:
        """Read what follows a name between commas or in brackets: a role, a relative, "who ..."; the place after."""
        if at in self._read:
            return at + 1
        self._read.add(at)
        items, name, end = self.items, self._name(at), at + 1
        if self._kind(end) == "(":
            role = read_role(items, end + 1)
            if role is not None and self._kind(role.end) == ")":
                self._call(name, role, None, beside=False)
            while end < len(items) and items[end].kind != ")":
                end += 1
            return end + 1
        if self._kind(end) == "c" and self._kind(end + 1) == "o":
            return self._kin_of_name(name, end)
        if self._kind(end) != "," and self._word(end) not in {"who", "which"}:
            return end
        start = end + 1 if self._kind(end) == "," else end
        if self._kind(start) == "#" and self._kind(start + 1) == ",":
            return start + 2
        if self._word(start) in {"who", "which"}:
            return self._relative(start - 1, name)
        kin_end = self._kin(start, name)
        if kin_end:
            return kin_end + (self._kind(kin_end) == ",")
        role = read_role(items, start)
        if role is not None and self._describes(role, start) and not self._lists(role.end):
            self._call(name, role, None, beside=False)
            return role.end + (self._kind(role.end) == ",")
        if self._word(start) in _ASIDES or self._kind(start) == "d":
            ahead = range(start, min(start + LOOK, len(items)))
            closing = next((place + 1 for place in ahead if items[place].kind in ",;"), end)
            return closing if self._kind(closing) in "bxv" else end
        return end

    def _describes(self, role: Role, start: int) -> bool:
        """Whether a role stands by itself between commas; one that is no post has an article, or is an -ist."""
        plain = role.kind == "office" or self._kind(start) in "do" or role.noun.endswith("ist")
        return plain and role.end > start and self._kind(role.end) in ",.;)"

    def _lists(self, at: int) -> bool:
        return self._kind(at) == "," and self._kind(at + 1) == "c"

    def _relative(self, at: int, name: str | None) -> int:
        """ "NAME, who ...,": said of the name; the place after the closing comma."""
        end = self._predicates(at + 2, name, None)
        if self._kind(end) == "," and end > at + 2:
            return end + 1
        while end < len(self.items) and self.items[end].kind not in ",;.":
            end = self._apposition(end) if self.items[end].kind == "N" else end + 1
        return end + (self._kind(end) == ",")

    def _kin(self, at: int, name: str) -> int:
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

    def _called(self, at: int) -> int:
        """A role or a relative before a name that is no subject: "the botanist NAME", "her husband NAME"."""
        items = self.items
        role = read_role(items, at)
        if role is not None and role.end > at:
            name = role.end + (self._kind(role.end) == ",")
            if self._kind(name) == "N" and (name == role.end or self._kind(name + 1) in ",."):
                owner = self.context.meant(role.owner.word) if role.owner is not None else None
                self._call(self._name(name), role, owner, beside=name == role.end)
                return self._apposition(name)
            return role.end
        kin, name = self._kin_before(at + 1) if items[at].kind == "o" else (None, at)
        if kin is None:
            return at + 1
        self._related(items[at], kin, name)
        return self._apposition(name)

    def _call(self, name: str, role: Role, owner: str | None, *, beside: bool) -> None:
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

    # Verbs

    def _predicates(self, at: int, subject: str | None, role: Role | None) -> int:
        """Read verbs that share a subject: "was born in NAME and studied at NAME"; the place after the last."""
        end = self._predicate(at, subject, role)
        while end is not None and end > at:
            at = end
            following = at + 1
            if self._kind(at) == "," and self._kind(at + 1) == "c":
                following = at + 2
            elif self._kind(at) != "c":
                break
            while self._kind(following) == "a":
                following += 1
            if self._kind(following) not in "bxv" and self._word(following) not in _VERBS:
                break
            end = self._predicate(following, subject, None)
        return at if end is None else max(at, end)

    def _predicate(self, at: int, subject: str | None, role: Role | None) -> int | None:
        """Read one verb with what follows it; None if there is no verb that is known."""
        items, place = self.items, at
        denied = past = perfect = is_be = False
        while place < len(items) and items[place].kind in "axbn":
            word = items[place].word
            denied = denied or items[place].kind == "n" or word in _MODALS or word in _HARDLY
            past = past or word in {"was", "were", "had", "formerly", "previously", "originally", "once"}
            perfect = perfect or word in {"has", "have", "had"}
            is_be = is_be or items[place].kind == "b"
            place += 1
        if place >= len(items):
            return None
        if denied or self._word(place) == "to":
            return self._silent(place)
        verb = items[place].word
        if is_be:
            return self._be(place, verb, subject, role, past=past, perfect=perfect)
        if perfect and items[place].kind in "do" and place > at:
            return self._seat(place, subject, past=past)
        return self._active(place, verb, subject, perfect=perfect)

    def _silent(self, at: int) -> int:
        """Pass over what is denied or only planned, up to the end of its clause."""
        while at < len(self.items) and self.items[at].kind not in ",;ck":
            at += 1
        return at

    def _be(
        self, at: int, verb: str, subject: str | None, role: Role | None, *, past: bool, perfect: bool
    ) -> int | None:
        adjuncts = self._adjuncts(at + 1)
        if verb == "born":
            return self._life(subject, "birth", adjuncts)
        if verb in _PLACED:
            return self._based(subject, adjuncts, past=past)
        if verb == "married":
            return self._married(subject, adjuncts.name("to"), TIMELESS, adjuncts.end)
        if verb in _APPOINTED:
            return self._appointed(at, subject, verb)
        if verb in _SUCCEEDED:
            return self._succeeded_by(adjuncts, subject)
        if verb in {"founded", "established"}:
            return self._founded(adjuncts, subject)
        if verb == "named" or verb == "educated":
            return self._learned(subject, adjuncts)
        if self.items[at].kind in "vg" and read_role(self.items, at) is None:
            return None
        return self._complement(at, subject, role, past=past, perfect=perfect)

    def _complement(
        self, at: int, subject: str | None, role: Role | None, *, past: bool, perfect: bool
    ) -> int | None:
        """What somebody or something is: a relative, a post, a kind; or who has a post."""
        items = self.items
        if role is not None:
            if items[at].kind != "N" or role.kind != "office":
                return None
            days = self._adjuncts(at + 1).lasting()
            if days is not None and (not past or perfect or days != TIMELESS):
                self._state(self._name(at), "position held", role.at(None), "text", days)
            self.context.note(self._name(at))
            return self._apposition(at)
        if subject is None:
            return None
        kin_end = self._kin(at, subject)
        if kin_end:
            return kin_end
        place = at + (items[at].kind == "d")
        if self._word(place) in _CITIZEN and self._word(place + 1) == "of" and self._kind(place + 2) == "N":
            if not past or perfect:
                self._state(subject, "citizenship", self._name(place + 2), "entity")
            return place + 3
        if self._word(place) == "member" and self._word(place + 1) == "of":
            name = place + 2 + (self._kind(place + 2) == "d")
            if self._kind(name) == "N":
                return self._affiliated(
                    subject, self._name(name), self._adjuncts(name + 1), past=past and not perfect
                )
        found = read_role(items, at)
        if found is None or found.end == at:
            return None
        adjuncts = self._adjuncts(found.end)
        over = past and not perfect
        if found.is_post:
            days = adjuncts.lasting()
            if days is not None and not (over and days[1] is None):
                self._state(subject, "position held", found.at(None), "text", days)
                self.role = found.at(None)
        else:
            self._is_a(subject, found)
        return adjuncts.end

    def _is_a(self, subject: str | None, role: Role) -> None:
        if role.nation is not None:
            nation = "country of origin" if role.kind == "organisation" else "citizenship"
            self._state(subject, nation, role.nation.text, "entity")
        self._state(subject, "is a", role.text, "text")
        if role.kind == "organisation" and role.organisation is not None and role.noun == "subsidiary":
            self._state(subject, "subsidiary of", role.organisation, "entity")

    def _active(self, at: int, verb: str, subject: str | None, *, perfect: bool) -> int | None:
        items = self.items
        if verb not in _VERBS:
            return None
        if verb in _APPOINTED - {"made"} or verb == "made":
            return self._appoint(at, subject)
        if verb in {"moved", "relocated"}:
            return self._moved(at, subject, perfect=perfect)
        if verb in {"left", "joined", "married", "attended", *_OPEN, *_SUCCEEDED}:
            return self._transitive(at, verb, subject, perfect=perfect)
        adjuncts = self._adjuncts(at + 1)
        if verb in {"became", "becomes"}:
            return self._became(at + 1, subject)
        if verb in {"died", "passed"}:
            return self._life(subject, "death", adjuncts)
        if verb in _LEARNED:
            start = at + 1
            while self._kind(start) in "wa":
                start += 1
            return self._learned(subject, self._adjuncts(start))
        if verb in {"lives", "resides", "lived"}:
            return self._based(subject, adjuncts, past=verb == "lived" and not perfect)
        if verb in {"works", "teaches", "lectures", "belongs", "worked", "taught"}:
            return self._works(subject, adjuncts, past=verb in {"worked", "taught"} and not perfect)
        if verb in {"serves", "served"}:
            return self._serves(subject, adjuncts, past=verb == "served" and not perfect)
        if verb == "took" and self._word(at + 1) == "over":
            return self._begin(subject, self._adjuncts(at + 2))
        if verb in _RESIGNED:
            start = at + 1 + (self._word(at + 1) in {"down", "aside"})
            return self._resigned(subject, self._adjuncts(start))
        if verb == "leaves":
            return self._leaves(at, subject)
        return adjuncts.end

    # What verbs say

    def _life(self, subject: str | None, event: str, adjuncts: Adjuncts) -> int:
        place, date = adjuncts.name("in", "at", "near"), adjuncts.date
        if place is not None:
            self._state(subject, f"place of {event}", self._name(place), "entity")
            if self._kind(place + 1) == "," and self._kind(place + 2) == "N" and self._kind(place + 3) in ",.;c":
                self._state(self._name(place), "located in", self._name(place + 2), "entity")
                rest = self._adjuncts(place + 3)
                date, adjuncts = date or rest.date, rest
        if date is not None:
            self._state(subject, f"date of {event}", date.text, "date")
        cause = adjuncts.text("of", "from") if event == "death" else None
        if cause is not None:
            self._state(subject, "cause of death", cause, "text")
        return adjuncts.end

    def _based(self, subject: str | None, adjuncts: Adjuncts, *, past: bool) -> int:
        place, days = adjuncts.name("in", "at", "near"), adjuncts.lasting()
        if place is not None and days is not None and not (past and days[1] is None):
            self._state(subject, "based in", self._name(place), "entity", days)
        return self._within(place, adjuncts.end)

    def _within(self, place: int | None, end: int) -> int:
        """ "in A, B": A is located in B."""
        if place is not None and end == place + 1 and self._kind(end) == "," and self._kind(end + 1) == "N":
            if self._kind(end + 2) in ",." or end + 2 >= len(self.items):
                self._state(self._name(place), "located in", self._name(end + 1), "entity")
                return end + 2
        return end

    def _seat(self, at: int, subject: str | None, *, past: bool) -> int | None:
        """ "has its headquarters in NAME"."""
        place = at + 1
        while place < len(self.items) and place < at + 5 and self.items[place].kind in "wa":
            place += 1
        if self._word(place - 1) not in _SEATS or past:
            return None
        return self._based(subject, self._adjuncts(place), past=False)

    def _moved(self, at: int, subject: str | None, *, perfect: bool) -> int | None:
        start = at + 1
        if self._kind(start) == "o":
            while start < len(self.items) and start < at + 5 and self.items[start].kind in "owa":
                start += 1
            if self._word(start - 1) not in _SEATS:
                return None
        adjuncts = self._adjuncts(start)
        old, new = adjuncts.name("from"), adjuncts.name("to")
        if new is not None and (perfect or adjuncts.date is not None or not self.context.is_page):
            self._state(subject, "based in", self._name(new), "entity", adjuncts.beginning())
        ending = adjuncts.ending()
        if new is not None and old is not None and ending is not None:
            self._state(subject, "based in", self._name(old), "entity", ending)
        return adjuncts.end

    def _married(self, subject: str | None, name: int | None, days: Days, end: int) -> int:
        if name is not None:
            self._state(subject, "spouse", self._name(name), "entity", days)
        return end

    def _learned(self, subject: str | None, adjuncts: Adjuncts) -> int:
        place = adjuncts.name("at", "from")
        if place is not None and subject is not None and not is_company_like(self.items[place].text):
            self._state(subject, "educated at", self._name(place), "entity")
        return adjuncts.end

    def _affiliated(self, subject: str | None, name: str, adjuncts: Adjuncts, *, past: bool) -> int:
        days = adjuncts.lasting()
        if days is not None and not (past and days[1] is None):
            self._state(subject, "affiliation", name, "entity", days)
        return adjuncts.end

    def _works(self, subject: str | None, adjuncts: Adjuncts, *, past: bool) -> int:
        place, role = adjuncts.name("for", "at", "to", "with"), adjuncts.role()
        days = adjuncts.lasting()
        if days is None or (past and days[1] is None):
            return adjuncts.end
        if role is not None and (role.is_post or place is not None):
            self._state(
                subject, "position held", role.at(self._name(place) if place is not None else None), "text", days
            )
        elif role is not None:
            self._is_a(subject, role)
        elif place is not None:
            self._state(subject, "affiliation", self._name(place), "entity", days)
        return adjuncts.end

    def _serves(self, subject: str | None, adjuncts: Adjuncts, *, past: bool) -> int:
        role, days = adjuncts.role(), adjuncts.lasting()
        if role is not None and days is not None and not (past and days[1] is None):
            self._hold(subject, role.at(None), days)
        return adjuncts.end

    def _became(self, at: int, subject: str | None) -> int | None:
        role = read_role(self.items, at)
        if role is None or role.end == at or not role.is_post:
            return None
        adjuncts = self._adjuncts(role.end)
        self._hold(subject, role.at(self._employer(subject)), adjuncts.beginning())
        return adjuncts.end

    def _begin(self, subject: str | None, adjuncts: Adjuncts) -> int:
        role = adjuncts.role()
        if role is not None:
            self._hold(subject, role.at(self._employer(subject)), adjuncts.beginning())
        return adjuncts.end

    def _appointed(self, at: int, subject: str | None, verb: str) -> int:
        """ "was elected mayor of NAME", "was promoted to", "was appointed in 2015"."""
        if verb == "named" and self._word(at + 1) in {"after", "for"}:
            adjuncts = self._adjuncts(at + 1)
            name = adjuncts.name("after")
            end = adjuncts.end
            if name is not None:
                self._state(subject, "named after", self._name(name), "entity")
            return end
        role = read_role(self.items, at + 1)
        start = at + 1 if role is None or role.kind == "organisation" else role.end
        adjuncts = self._adjuncts(start)
        if start == at + 1:
            role = adjuncts.role()
        days = adjuncts.beginning()
        if role is not None:
            self._hold(subject, role.at(self._employer(subject)), days)
        elif subject in self.roles:
            self._hold(subject, self.roles[subject], days)
        return adjuncts.end

    def _appoint(self, at: int, subject: str | None) -> int | None:
        """ "NAME appointed NAME as treasurer": the post is the second name's."""
        name = at + 1
        beside = read_role(self.items, name)
        if beside is not None and self._kind(beside.end) == "N":
            name = beside.end
        if self._kind(name) != "N":
            return None
        person = self._name(name)
        role = read_role(self.items, name + 1)
        if self._kind(name + 1) == ",":
            return name + 1
        start = name + 1 if role is None else role.end
        adjuncts = self._adjuncts(start)
        role = role or adjuncts.role()
        if role is not None and role.kind != "organisation":
            self._read.add(name)
            self._hold(person, role.at(subject), adjuncts.beginning())
        return adjuncts.end

    def _resigned(self, subject: str | None, adjuncts: Adjuncts) -> int:
        role, days = adjuncts.role(), adjuncts.ending()
        employer = adjuncts.name("from")
        text = role.at(self._employer(subject)) if role is not None else self.roles.get(subject or "")
        self.roles.pop(subject or "", None)
        self.role = text
        if days is not None and text is not None:
            self._hold(subject, text, days)
        elif days is not None and employer is not None:
            self._state(subject, "affiliation", self._name(employer), "entity", days)
        return adjuncts.end

    def _succeeded_by(self, adjuncts: Adjuncts, subject: str | None) -> int:
        role, name = adjuncts.role(), adjuncts.name("by")
        text = role.at(self._employer(subject)) if role is not None else self.role or self.roles.get(subject or "")
        if name is not None and text is not None:
            date = adjuncts.date or next((item for item in self.items[: adjuncts.end] if item.kind == "D"), None)
            begin, end = _turn(date)
            self._state(self._name(name), "position held", text, "text", begin)
            if end is not None:
                self._hold(subject, text, end)
        return adjuncts.end

    def _founded(self, adjuncts: Adjuncts, subject: str | None) -> int:
        items = self.items
        if adjuncts.date is not None:
            self._state(subject, "founded in", adjuncts.date.text, "date")
        founder = adjuncts.name("by")
        end = adjuncts.end
        if founder is not None:
            self._state(subject, "founded by", self._name(founder), "entity")
            if self._kind(founder + 1) == "c":
                other = founder + 2
                while other < len(items) and items[other].kind in "ow":
                    other += 1
                if self._kind(other) == "N":
                    self._state(subject, "founded by", self._name(other), "entity")
        place = adjuncts.name("in")
        if place is not None:
            self._state(subject, "founded in", self._name(place), "entity")
        return end

    def _transitive(self, at: int, verb: str, subject: str | None, *, perfect: bool) -> int | None:
        items = self.items
        place = at + 1 + (self._kind(at + 1) == "d")
        if verb == "employs" and self._kind(place) == "#":
            end = place + 1 + (self._kind(place + 1) == "w")
            self._state(subject, "employs", " ".join(item.text for item in items[place:end]), "number")
            return end
        if self._kind(place) != "N" or self._kind(place + 1) in "w'-":
            return None
        name = self._name(place)
        adjuncts = self._adjuncts(place + 1)
        if verb in _OPEN:
            self._state(subject, _OPEN[verb], name, "entity")
        elif verb == "married":
            return self._married(subject, place, adjuncts.beginning(), adjuncts.end)
        elif verb == "attended":
            if _SCHOOLS.intersection(items[place].word.split()):
                self._state(subject, "educated at", name, "entity")
        elif verb == "joined":
            self._joined(subject, name, adjuncts, perfect=perfect)
        elif verb == "left":
            ending = adjuncts.ending()
            known = is_organisation(name) or " " in name
            if ending is not None and known and adjuncts.name("for") is None:
                self._state(subject, "affiliation", name, "entity", ending)
        else:
            self._succeeded(subject, name, adjuncts)
        return adjuncts.end

    def _joined(self, subject: str | None, name: str, adjuncts: Adjuncts, *, perfect: bool) -> None:
        role, days = adjuncts.role(), adjuncts.beginning()
        if role is not None:
            self._state(subject, "position held", role.at(name), "text", days)
        elif days != TIMELESS or perfect:
            self._state(subject, "affiliation", name, "entity", days)

    def _succeeded(self, subject: str | None, name: str, adjuncts: Adjuncts) -> None:
        role = adjuncts.role()
        if role is None:
            return
        text = role.at(self._employer(subject))
        begin, end = _turn(adjuncts.date)
        self._hold(subject, text, begin)
        if end is not None:
            self._state(name, "position held", text, "text", end)

    def _leaves(self, at: int, subject: str | None) -> int | None:
        """ "leaves a daughter, NAME"."""
        kin, name = self._kin_before(at + 1 + (self._kind(at + 1) == "d"))
        if kin is None:
            return None
        self._state(subject, kin, self._name(name), "entity")
        return name + 1

    def _adjuncts(self, at: int) -> Adjuncts:
        return Adjuncts(self.items, at, self.opening)

    # Emission

    def _employer(self, subject: str | None) -> str | None:
        """The organisation of the post that the sentence calls somebody by: "NAME's finance chief, NAME,"."""
        return self._employers.get(subject or "")

    def _hold(self, subject: str | None, role: str, days: Days) -> None:
        """Somebody holds a post; what the sentence calls them by is the same post, or the one before."""
        self.roles.pop(subject or "", None)
        self.role = role
        self._state(subject, "position held", role, "text", days)

    def _state(self, subject: str | None, predicate: str, thing: str, kind: Kind, days: Days = TIMELESS) -> None:
        if subject is not None and subject != thing and (days[0] is None or days[1] is None or days[0] < days[1]):
            self.found.append(Triple(subject, predicate, thing, self._ordinal, kind, *days, CONFIDENCE))

    def _name(self, at: int) -> str:
        return self.context.resolve(self.items[at].text)

    def _kind(self, at: int) -> str:
        return self.items[at].kind if at < len(self.items) else "."

    def _word(self, at: int) -> str:
        return self.items[at].word if at < len(self.items) else ""


def is_company_like(name: str) -> bool:
    """Whether a name is an organisation's that is no school."""
    return is_organisation(name) and not _SCHOOLS.intersection(name.casefold().split())


def _of(role: Role, owner: str) -> Role:
    return Role(role.kind, role.text, role.noun, owner, role.nation, None, role.definite, role.end)


def _turn(date: Item | None) -> tuple[Days, Days | None]:
    """The days of a successor and of a predecessor."""
    if date is None or date.time is None or date.time.start is None or date.time.end is None:
        return TIMELESS, None
    return (date.time.start.toordinal(), None), (None, date.time.end.toordinal())
