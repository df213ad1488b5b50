"""What follows a verb: "as director of NAME", "in PLACE", "on DATE"."""

from collections.abc import Sequence
from dataclasses import dataclass

from engram.providers.language.facts.roles import TRAILING, Role, read_role
from engram.providers.language.facts.sentence_items import Item

_ROLE_BEFORE = frozenset({"as", "to"})
_DATE_WORDS = frozenset("effective starting beginning".split())
_STATES = ("since", "from", "until", "till", "between", "up to")
Days = tuple[int | None, int | None]


@dataclass(frozen=True, slots=True)
class Adjunct:
    """A prepositional phrase, or a date without a preposition; one of name, date, role and text is there."""

    preposition: str
    name: int | None = None
    date: Item | None = None
    role: Role | None = None
    text: str = ""


class Adjuncts:
    """All that follows one verb, and where it ends.

    A date in front of the clause's subject counts if none follows the verb.
    """

    def __init__(self, items: Sequence[Item], at: int, opening: Item | None = None) -> None:
        self.found: list[Adjunct] = []
        self._opening = opening
        self.end = at
        while self.end < len(items) and self._take(items, self.end):
            pass

    def name(self, *prepositions: str) -> int | None:
        """The place of the first name after one of these."""
        return next(
            (one.name for one in self.found if one.name is not None and one.preposition in prepositions), None
        )

    def role(self) -> Role | None:
        """The last role: of "from A to B" the one that somebody gets."""
        return next((one.role for one in reversed(self.found) if one.role is not None), None)

    def text(self, *prepositions: str) -> str | None:
        """The first words after one of these."""
        return next((one.text for one in self.found if one.text and one.preposition in prepositions), None)

    @property
    def date(self) -> Item | None:
        """The first date."""
        return next((one.date for one in self.found if one.date is not None), self._opening)

    def lasting(self) -> Days | None:
        """The days of what is or was so; None if a date only tells of one moment in them."""
        date = self.date
        if date is None:
            return None, None
        bounds = date.word.startswith(_STATES) or any(
            one.date is date and one.preposition in {"from", "since"} for one in self.found
        )
        return _days(date, self._preposition(date)) if bounds else None

    def beginning(self) -> Days:
        """The days of what begins with the verb."""
        if self.date is None:
            return None, None
        start, end = _days(self.date, self._preposition(self.date))
        return start, end if self.date.word.startswith(("until", "till", "from", "between")) else None

    def ending(self) -> Days | None:
        """The days of what ends with the verb; None without a date."""
        if self.date is None or self.date.time is None or self.date.time.end is None:
            return None
        return None, self.date.time.end.toordinal()

    def _preposition(self, date: Item) -> str:
        return next((one.preposition for one in self.found if one.date is date), "")

    def _take(self, items: Sequence[Item], at: int) -> bool:
        item, following = items[at], items[at + 1] if at + 1 < len(items) else None
        if item.kind == "D":
            return self._add(Adjunct("", date=item), at + 1)
        if item.kind == "a" or item.word in {"too", "again", "today", "effect"}:
            self.end = at + 1
            return True
        if item.kind == ",":
            timed = following is not None and (following.kind == "D" or following.word in _DATE_WORDS)
            after = items[at + 2] if at + 2 < len(items) else None
            timed = timed or (
                following is not None and following.kind == "p" and after is not None and after.kind == "D"
            )
            if timed or (
                following is not None and following.word == "with" and after is not None and after.word == "effect"
            ):
                self.end = at + 1
                return True
            return False
        if item.kind == "p" or item.word in _DATE_WORDS:
            return following is not None and self._prepositional(items, at, item.word)
        return False

    def _prepositional(self, items: Sequence[Item], at: int, preposition: str) -> bool:
        place = at + 1
        if items[place].kind == "D":
            return self._add(Adjunct(preposition, date=items[place]), place + 1)
        role = read_role(items, place) if preposition in _ROLE_BEFORE or preposition == "from" else None
        if role is not None and role.kind != "organisation":
            return self._add(Adjunct(preposition, role=role), role.end)
        if preposition == "with" and items[place].kind == "o":
            return False  # "with her husband NAME"
        if items[place].kind in "do":
            place += 1
        if place < len(items) and items[place].kind == "N":
            after = items[place + 1] if place + 1 < len(items) else None
            if after is None or after.kind not in "w'-" or after.word in TRAILING:
                return self._add(Adjunct(preposition, name=place), place + 1)
        end = place
        while end < len(items) and items[end].kind in "dwvo#a-":
            end += 1
        if end < len(items) and items[end].kind == "N" and end > place:
            end += 1  # a name within another phrase
        if end == place:
            return False
        text = " ".join(item.text for item in items[place:end] if item.kind != "d").replace(" - ", "-")
        return self._add(Adjunct(preposition, text=text), end)

    def _add(self, adjunct: Adjunct, end: int) -> bool:
        self.found.append(adjunct)
        self.end = end
        return True


def _days(date: Item, preposition: str) -> Days:
    if date.time is None:
        return None, None
    start, end = date.time.start, date.time.end
    if preposition in {"since", "from"}:
        end = None
    return start.toordinal() if start else None, end.toordinal() if end else None
