"""Arguments of a verb: "as director of NAME", "in PLACE", "on DATE"."""

from dataclasses import dataclass, field

from engram.providers.language.facts.roles import Role
from engram.providers.language.facts.sentence_items import Item

_STATE_PREPOSITIONS = ("since", "from", "between")
_VAGUE = ("early", "mid", "late", "before", "after", "by", "prior", "following", "around", "pre", "post")
_END_WORDS = ("until", "till", "up to")
TIMELESS: "Days" = (None, None)
Days = tuple[int | None, int | None]
"""First day and day after the last, as ``date.toordinal`` counts."""


@dataclass(frozen=True, slots=True)
class Argument:
    """An object or a prepositional phrase.

    Exactly one of name, date and role is set, or none of them for other words.

    Attributes:
        preposition: in front of it; empty for an object.
        name: resolved name of a person, place or organisation.
        date: a time expression.
        role: a post, a profession or a kind of organisation.
        text: the words, articles left out.
        noun: "seat" for "its head office".
    """

    preposition: str
    name: str | None = None
    date: Item | None = None
    role: Role | None = None
    text: str = ""
    noun: str = ""


@dataclass(slots=True)
class Arguments:
    """All arguments of one verb.

    Attributes:
        members: in the order of the sentence.
        end: place of the first item that is no argument.
        complete: the clause ends there, so that no word of it is left unread.
        opening: a date in front of the clause's subject; it counts if no other date is there.
        has_list: an argument is a list joined by "and".
    """

    members: list[Argument] = field(default_factory=list)
    end: int = 0
    complete: bool = False
    opening: Item | None = None
    has_list: bool = False

    @property
    def objects(self) -> list[Argument]:
        """Arguments without a preposition, dates left out."""
        return [member for member in self.members if not member.preposition and member.date is None]

    @property
    def has_vague_date(self) -> bool:
        """Whether a date is only a bound or a part of a period ("before 1990", "late 2019")."""
        return self.date is not None and self.date.word.startswith(_VAGUE)

    @property
    def date(self) -> Item | None:
        """The first date."""
        return next((member.date for member in self.members if member.date is not None), self.opening)

    def name(self, *prepositions: str) -> Argument | None:
        """Return the first name after one of the prepositions."""
        return next(
            (member for member in self.members if member.name is not None and member.preposition in prepositions),
            None,
        )

    def role(self, *prepositions: str) -> Role | None:
        """Return the first role after one of the prepositions."""
        return next(
            (one.role for one in self.members if one.role is not None and one.preposition in prepositions), None
        )

    def text(self, *prepositions: str) -> str | None:
        """Return the first other words after one of the prepositions."""
        return next(
            (one.text for one in self.members if one.text and one.name is None and one.preposition in prepositions),
            None,
        )

    def state_days(self) -> Days | None:
        """Return the days of a state; None if a date names only one moment of it or is vague."""
        date = self.date
        if date is None:
            return TIMELESS
        preposition = self._preposition(date)
        bounded = date.word.startswith((*_STATE_PREPOSITIONS, *_END_WORDS)) or preposition in _STATE_PREPOSITIONS
        return None if not bounded else compute_days(date, preposition)

    def compute_first_days(self) -> Days | None:
        """Return the days of a state that begins with the verb; None if the date is vague."""
        date = self.date
        if date is None:
            return TIMELESS
        if self.has_vague_date or date.word.startswith(_END_WORDS):
            return None
        start, end = compute_days(date, self._preposition(date))
        return start, end if date.word.startswith(("from", "between")) else None

    def compute_last_days(self) -> Days | None:
        """Return the days of a state that ends with the verb; None without an exact date."""
        date = self.date
        if date is None or date.time is None or date.time.end is None or date.time.start is None:
            return None
        return None if self.has_vague_date else (None, date.time.end.toordinal())

    def _preposition(self, date: Item) -> str:
        """Return the preposition in front of a date; empty if there is none."""
        return next((member.preposition for member in self.members if member.date is date), "")


def compute_days(date: Item, preposition: str = "") -> Days:
    """Return the days that a date covers; "since" and "from" leave the end open."""
    if date.time is None:
        return TIMELESS
    start, end = date.time.start, date.time.end
    if preposition in {"since", "from"}:
        end = None
    return start.toordinal() if start else None, end.toordinal() if end else None
