"""Posts that begin and end: "was promoted to", "succeeded NAME as", "resigned as director in 2017"."""

from engram.providers.language.facts.adjuncts import Days
from engram.providers.language.facts.roles import read_role
from engram.providers.language.facts.sentence import TIMELESS, Sentence, Verb
from engram.providers.language.facts.sentence_items import Item


class Posts(Sentence):
    """Reads who gets a post and who leaves one."""

    def _became(self, verb: Verb) -> int | None:
        role = read_role(self.items, verb.at + 1)
        if role is None or role.end == verb.at + 1 or not role.is_post:
            return None
        adjuncts = self._adjuncts(role.end)
        self._hold(verb.subject, role.at(self._employer(verb.subject)), adjuncts.beginning())
        return adjuncts.end

    def _took_over(self, verb: Verb) -> int | None:
        """ "took over as director"."""
        if self._word(verb.at + 1) != "over":
            return None
        adjuncts = self._adjuncts(verb.at + 2)
        role = adjuncts.role()
        if role is not None:
            self._hold(verb.subject, role.at(self._employer(verb.subject)), adjuncts.beginning())
        return adjuncts.end

    def _serves(self, verb: Verb) -> int:
        adjuncts = self._adjuncts(verb.at + 1)
        role, days = adjuncts.role(), verb.days(adjuncts)
        if role is not None and days is not None:
            self._hold(verb.subject, role.at(None), days)
        return adjuncts.end

    def _served(self, verb: Verb) -> int:
        return self._serves(verb.in_past())

    def _appointed(self, verb: Verb) -> int:
        """ "was elected mayor of NAME", "was promoted to", "was appointed in 2015"."""
        role = read_role(self.items, verb.at + 1)
        beside = role is not None and role.kind != "organisation" and role.end > verb.at + 1
        adjuncts = self._adjuncts(role.end if role is not None and beside else verb.at + 1)
        role = role if beside else adjuncts.role()
        if role is not None:
            self._hold(verb.subject, role.at(self._employer(verb.subject)), adjuncts.beginning())
        elif verb.subject in self.roles:
            self._hold(verb.subject, self.roles[verb.subject], adjuncts.beginning())
        return adjuncts.end

    def _appoint(self, verb: Verb) -> int | None:
        """ "NAME appointed NAME as treasurer": the post is the second name's."""
        name = verb.at + 1
        if self._kind(name) != "N" or self._kind(name + 1) == ",":
            return None
        role = read_role(self.items, name + 1)
        adjuncts = self._adjuncts(name + 1 if role is None else role.end)
        role = role or adjuncts.role()
        if role is not None and role.kind != "organisation":
            self._read.add(name)
            self._hold(self._name(name), role.at(verb.subject), adjuncts.beginning())
        return adjuncts.end

    def _resigned(self, verb: Verb) -> int:
        adjuncts = self._adjuncts(verb.at + 1 + (self._word(verb.at + 1) in {"down", "aside"}))
        role, days = adjuncts.role(), adjuncts.ending()
        employer = adjuncts.name("from")
        known = self.roles.pop(verb.subject or "", None)
        text = role.at(self._employer(verb.subject)) if role is not None else known
        self.role = text
        if days is not None and text is not None:
            self._hold(verb.subject, text, days)
        elif days is not None and employer is not None:
            self._state(verb.subject, "affiliation", self._name(employer), "entity", days)
        return adjuncts.end

    def _succeeded(self, verb: Verb) -> int | None:
        """ "succeeded NAME as director"."""
        place = verb.at + 1
        if self._kind(place) != "N" or self._kind(place + 1) in "w'-":
            return None
        adjuncts = self._adjuncts(place + 1)
        role = adjuncts.role()
        if role is not None:
            self._hand_over(self._name(place), verb.subject, role.at(self._employer(verb.subject)), adjuncts.date)
        return adjuncts.end

    def _succeeded_by(self, verb: Verb) -> int:
        """ "was succeeded as director by NAME"."""
        adjuncts = self._adjuncts(verb.at + 1)
        role, name = adjuncts.role(), adjuncts.name("by")
        known = self.role or self.roles.get(verb.subject or "")
        text = role.at(self._employer(verb.subject)) if role is not None else known
        if name is not None and text is not None:
            # "Stepped down in December 2015 and was succeeded by": the date is the sentence's.
            date = adjuncts.date or next((item for item in self.items[: adjuncts.end] if item.kind == "D"), None)
            self._hand_over(verb.subject, self._name(name), text, date)
        return adjuncts.end

    def _hand_over(self, old: str | None, new: str | None, role: str, date: Item | None) -> None:
        begin, end = _turn(date)
        self._hold(new, role, begin)
        if end is not None:
            self._hold(old, role, end)

    def _employer(self, subject: str | None) -> str | None:
        """The organisation of the post that the sentence calls somebody by: "NAME's finance chief, NAME,"."""
        return self._employers.get(subject or "")

    def _hold(self, subject: str | None, role: str, days: Days) -> None:
        """Somebody holds a post; what the sentence calls them by is the same post, or the one before."""
        self.roles.pop(subject or "", None)
        self.role = role
        self._state(subject, "position held", role, "text", days)


def _turn(date: Item | None) -> tuple[Days, Days | None]:
    """The days of a successor and of a predecessor."""
    if date is None or date.time is None or date.time.start is None or date.time.end is None:
        return TIMELESS, None
    return (date.time.start.toordinal(), None), (None, date.time.end.toordinal())
