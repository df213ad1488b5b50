"""What a sentence of any text states of posts, places, relatives and lives, clause by clause.

Only what is stated outright in a known way is read; what is not understood is left out. It reads news, minutes and
e-mails, whose titles are headings, where ``reader`` reads pages about one topic.
"""

from collections.abc import Sequence

from engram.core.knowledge.triples import Triple
from engram.providers.language.facts.assertion import stated
from engram.providers.language.facts.context import Context
from engram.providers.language.facts.roles import read_role, with_roles
from engram.providers.language.facts.sentence import LOOK
from engram.providers.language.facts.sentence_items import Item
from engram.providers.language.facts.verbs import VERBS, Predicates

_LATER_CLAUSES = frozenset("before after until till when once while during".split())


def read_statements(text: str, items: Sequence[Item], context: Context, ordinal: int) -> list[Triple]:
    """What one sentence states, by what its passage said before."""
    found = _Reader(stated(text, with_roles(items)), context, ordinal).read()
    context.finish()
    return found


class _Reader(Predicates):
    """Reads a sentence clause by clause."""

    def read(self) -> list[Triple]:
        """Read the sentence."""
        self._titles()
        at = self._label()
        while at < len(self.items):
            at = max(at + 1, self._clause(at))
        for name, role in self.roles.items():
            self._state(name, "position held", role, "text")
        return self.found

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
            self.call(self.context.resolve(items[role.end].text), role, employer, beside=True)
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
        subject, role, at = self.subject(at)
        after = self.predicates(at, subject, role)
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
            if item.kind in "bx" or item.word in VERBS or item.kind == "v":
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
            at = self.apposition(at - 1)
        while at < len(items):
            item = items[at]
            if item.kind == ";" or item.word == "that":
                return at + 1
            if item.word in _LATER_CLAUSES and (self._begins(at + 1) or self._word(at + 1).endswith("ing")):
                at = self._comma(at)
                continue
            if (item.kind in "ck," or item.word == "as") and self._begins(at + 1):
                return at + 1
            if item.kind == "N":
                at = self.apposition(at)
            elif item.kind in "do" or read_role(items, at) is not None:
                at = self.called(at)
            else:
                at += 1
        return at
