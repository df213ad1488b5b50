"""One sentence while it is read: its items, what it has stated, and what it calls the names in it."""

from dataclasses import dataclass, replace

from engram.core.knowledge.triples import Kind, Triple
from engram.providers.language.facts.adjuncts import Adjuncts, Days
from engram.providers.language.facts.context import Context
from engram.providers.language.facts.roles import Role
from engram.providers.language.facts.sentence_items import Item

CONFIDENCE = 0.85
TIMELESS: Days = (None, None)
LOOK = 8
"""Items that are looked ahead."""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb with its subject.

    Attributes:
        at: where it stands.
        past, perfect: by the auxiliaries before it.
    """

    at: int
    subject: str | None
    past: bool = False
    perfect: bool = False

    @property
    def is_over(self) -> bool:
        """Whether what it states was so, and need not be any more."""
        return self.past and not self.perfect

    def days(self, adjuncts: Adjuncts) -> Days | None:
        """The days of a state; None if it was so at a time that nobody can tell."""
        days = adjuncts.lasting()
        return None if days is None or (self.is_over and days[1] is None) else days

    def in_past(self) -> "Verb":
        """The same verb in a past form of its own ("lived")."""
        return replace(self, past=True)

    def present(self) -> "Verb":
        """The same verb where "has" is no auxiliary."""
        return replace(self, past=False, perfect=False)


class Sentence:
    """Where the reading of one sentence stands.

    Attributes:
        roles: what the sentence calls a name beside it; a verb may state since when, or until when.
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

    def _adjuncts(self, at: int) -> Adjuncts:
        return Adjuncts(self.items, at, self.opening)

    def _state(self, subject: str | None, predicate: str, thing: str, kind: Kind, days: Days = TIMELESS) -> None:
        if subject is not None and subject != thing and (days[0] is None or days[1] is None or days[0] < days[1]):
            self.found.append(Triple(subject, predicate, thing, self._ordinal, kind, *days, CONFIDENCE))

    def _is_a(self, subject: str | None, role: Role) -> None:
        if role.nation is not None:
            nation = "country of origin" if role.kind == "organisation" else "citizenship"
            self._state(subject, nation, role.nation.text, "entity")
        self._state(subject, "is a", role.text, "text")
        if role.noun == "subsidiary" and role.organisation is not None:
            self._state(subject, "subsidiary of", role.organisation, "entity")

    def _name(self, at: int) -> str:
        return self.context.resolve(self.items[at].text)

    def _kind(self, at: int) -> str:
        return self.items[at].kind if at < len(self.items) else "."

    def _word(self, at: int) -> str:
        return self.items[at].word if at < len(self.items) else ""
