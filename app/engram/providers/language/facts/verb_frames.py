"""Verb frames: the facts that a verb states together with its subject and its arguments."""

from collections.abc import Callable
from dataclasses import replace

from engram.providers.language.facts import clause_words
from engram.providers.language.facts.countries import ADJECTIVES, COUNTRIES
from engram.providers.language.facts.name_types import is_organisation
from engram.providers.language.facts.noun_phrases import Phrase, follows_name
from engram.providers.language.facts.post_frames import APPOINTMENT_VERBS, PostFrames
from engram.providers.language.facts.roles import read_role
from engram.providers.language.facts.sentence_state import LOOK_AHEAD
from engram.providers.language.facts.verb_arguments import TIMELESS, Argument, Arguments
from engram.providers.language.facts.verb_groups import VerbGroup, read_verb_group

_SCHOOLS = frozenset(
    "university college school academy institute polytechnic gymnasium conservatory conservatoire".split()
)
_DEGREES = frozenset("degree degrees doctorate phd diploma masters bachelors mba studies master bachelor".split())
_NAME_OBJECTS = {
    "founded": "founded",
    "established": "founded",
    "won": "won",
    "acquired": "acquired",
    "bought": "acquired",
    "owns": "owns",
}
"""Predicates of verbs whose object is a name."""
_POST_WORDS = frozenset("job office position post role title".split())
_LOOSE_WORDS = frozenset("again also effect effective today together too unanimously yesterday".split())
_DATE_WORDS = frozenset("effective starting beginning".split())
_CLAUSE_WORDS = frozenset("after although as because before but since so though when where whereas while".split())
"""Words that may begin a clause behind another one without making that one uncertain."""
_OPEN_ENDS = frozenset("if once than till unless until when".split())
"""Words that bound or condition the clause in front of them."""
_MEMBERS = frozenset({"member", "members"})
_MOST_ARGUMENTS = 12
_PLACE_PREPOSITIONS = ("in", "at", "near", "to")


class VerbFrames(PostFrames):
    """Frames of all verbs, and the reading of their arguments."""

    def predicates(self, subject: Phrase, at: int) -> int:
        """Read verbs that share a subject: "was born in NAME and studied at NAME"."""
        last, passive = at, False
        while (group := self._verb_group(at)) is not None:
            if passive and not group.passive and self.get_kind(at) == "v" and group.verb in _PASSIVE:
                group = replace(group, passive=group.verb not in _ACTIVE)
            if group.verb == "be" and (end := self._read_relative(subject, group)) > group.end:
                last = end
            else:
                arguments = self.arguments(group.end)
                self._apply(subject, group, arguments)
                last = arguments.end
                if group.verb == "be" and self.get_kind(last) == "c":
                    last = self._read_relative(subject, replace(group, end=last + 1), last)
            following = self._find_next_verb(last)
            if following == last:
                break
            at, passive = following, group.passive
        return last

    def _find_next_verb(self, at: int) -> int:
        """Return the place of a verb that "and" joins to the last one; the same place if there is none."""
        following = at + (self.get_kind(at) == ",")
        if self.get_kind(following) != "c" and self.get_word(following) != "but":
            return at
        following += 1
        return following if read_verb_group(self.items, following, VERBS) is not None else at

    def _verb_group(self, at: int) -> VerbGroup | None:
        """Read a verb group; "is managing director" has no other verb than "is"."""
        group = read_verb_group(self.items, at, VERBS)
        if group is None or not group.passive or group.verb in _PASSIVE:
            return group
        role = read_role(self.items, group.end - 1)
        if role is not None and role.end > group.end - 1:
            return replace(group, verb="be", end=group.end - 1, passive=False)
        return group

    def participle(self, subject: str, at: int) -> int:
        """Read "based in NAME" behind a subject, as if "is" stood in front; return the place after it."""
        if self.get_word(at) not in _PASSIVE or self.get_kind(at + 1) not in "pD":
            return at
        group = VerbGroup(self.get_word(at), at + 1, passive=True, perfect=False, past=False, asserted=True)
        arguments = self.arguments(group.end)
        if arguments.end == group.end:
            return at
        self._apply(Phrase(at, subject, subject), group, arguments)
        return arguments.end

    def _apply(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """State what a verb says, if it is asserted and its clause is read to the end."""
        if not group.asserted or not arguments.complete:
            if not group.asserted:
                self.posts.pop(subject.name or "", None)
            return
        if subject.noun == "seat":
            if group.verb in {"be", "located", "situated", "based"}:
                self._read_place(Phrase(subject.end, subject.owner), group, arguments)
            return
        if subject.noun:
            objects = arguments.objects
            if group.verb == "be" and len(objects) == 1 and objects[0].name is not None and not arguments.has_list:
                self.state(subject.owner, subject.noun, objects[0].name, "entity")
            return
        frames = _PASSIVE if group.passive else _ACTIVE
        if subject.role is not None:
            if group.verb == "be":
                self.read_holder(subject, group, arguments)
                return
            if frames.get(group.verb) is not VerbFrames.hold_active:
                return
        frame = frames.get(group.verb)
        if frame is not None:
            frame(self, subject, group, arguments)

    def arguments(self, at: int) -> Arguments:
        """Read the arguments that begin at a place."""
        arguments = Arguments(end=at, opening=self.opening)
        while len(arguments.members) < _MOST_ARGUMENTS and self._read_argument(arguments):
            pass
        arguments.complete = arguments.complete or self._is_boundary(arguments.end)
        return arguments

    def _read_argument(self, arguments: Arguments) -> bool:  # noqa: PLR0911 - a case each
        """Read one more argument; return whether there was one."""
        at = arguments.end
        kind, word = self.get_kind(at), self.get_word(at)
        if at >= len(self.items):
            return False
        if kind == "D":
            arguments.members.append(Argument("", date=self.items[at]))
            arguments.end = at + 1
            return True
        if kind == "a" or word in _LOOSE_WORDS:
            arguments.end = at + 1
            return True
        if kind == ",":
            return self._read_after_comma(arguments)
        if kind == "c":
            return self._read_list(arguments)
        if kind == "p" or word in _DATE_WORDS:
            if word in _CLAUSE_WORDS | _OPEN_ENDS and self.begins_clause(at + 1):
                return False
            if word == "of" and self._extends_words(arguments):
                return self._extend_words(arguments)
            return self._add(arguments, self._prepositional(at, word))
        return kind in "Ndowv#h" and self._add(arguments, self._object(at, ""))

    def _add(self, arguments: Arguments, reading: tuple[Argument, int] | None) -> bool:
        """Add an argument that was read, with the place after it; return whether there was one."""
        if reading is None:
            return False
        argument, end = reading
        arguments.members.append(argument)
        arguments.end = end
        return True

    def _extends_words(self, arguments: Arguments) -> bool:
        """Return whether "of" belongs to the words in front of it: "at the age of 70", "law of NAME"."""
        last = arguments.members[-1] if arguments.members else None
        return last is not None and bool(last.text) and last.text not in _MEMBERS

    def _extend_words(self, arguments: Arguments) -> bool:
        """Read "of" and what follows it as part of the last argument's words."""
        phrase = self.noun_phrase(arguments.end + 1, subject=False)
        end = arguments.end + 1 if phrase is None else max(phrase.end, arguments.end + 1)
        while end < arguments.end + LOOK_AHEAD and self.get_kind(end) in "dwvN#ao-":
            end += 1
        if end == arguments.end + 1:
            return False
        words = [item.text for item in self.items[arguments.end : end] if item.kind != "d"]
        last = arguments.members[-1]
        arguments.members[-1] = replace(last, text=" ".join([last.text, *words]))
        arguments.end = end
        return True

    def _read_after_comma(self, arguments: Arguments) -> bool:
        """Read ", effective 1 March 2021", ", in 2015" and the outer place of "NAME, NAME"."""
        at = arguments.end
        following, after = self.get_kind(at + 1), self.get_kind(at + 2)
        timed = following == "D" or self.get_word(at + 1) in _DATE_WORDS or (following == "p" and after == "D")
        if timed or (self.get_word(at + 1) == "with" and self.get_word(at + 2) == "effect"):
            arguments.end = at + 1
            return True
        last = arguments.members[-1] if arguments.members else None
        placed = last is not None and last.name is not None and last.preposition in _PLACE_PREPOSITIONS
        if placed and following == "N" and after in ",.;pD" and self.get_kind(at - 1) == "N":
            if after == "," and not (self.get_kind(at + 3) in "cDp." or self.begins_clause(at + 3)):
                return False
            arguments.members.append(Argument("within", self.items[at + 1].text))
            arguments.end = at + 2
            return True
        return False

    def _read_list(self, arguments: Arguments) -> bool:
        """Read another member of a list that "and" joins; return whether there was one."""
        at = arguments.end
        verb = read_verb_group(self.items, at + 1, VERBS)
        is_denial = self.get_kind(at + 1) == "n"
        if verb is not None or is_denial or self.begins_clause(at + 1) or self._is_kin_list(at + 1):
            return False
        reading = self._object(at + 1, "and") if self.get_kind(at + 1) in "Ndowv#" else None
        arguments.has_list = True
        return self._add(arguments, reading)

    def _is_kin_list(self, at: int) -> bool:
        """Return whether "(the) brother of" stands at a place."""
        relation, after = self._kin_noun(at + (self.get_kind(at) == "d"))
        return relation is not None and self.get_word(after) == "of"

    def _prepositional(self, at: int, preposition: str) -> tuple[Argument, int] | None:
        """Read a prepositional phrase; None if it is an infinitive or is not understood."""
        place = at + 1
        if self.get_kind(place) == "D":
            return Argument(preposition, date=self.items[place]), place + 1
        if preposition == "with" and self.get_word(place) == "effect":
            return Argument(preposition, text="effect"), place + 1
        if preposition == "out" and self.get_word(place) == "of":
            return self._prepositional(place, "out of")
        post = place + (self.get_kind(place) in "do")
        if self.get_word(post) in _POST_WORDS and self.get_word(post + 1) in {"of", "as"}:
            place = post + 2
        if preposition == "to" and self.get_kind(place) == "w" and read_role(self.items, place) is None:
            return None
        return self._object(place, preposition)

    def _object(self, at: int, preposition: str) -> tuple[Argument, int] | None:  # noqa: PLR0911 - a case each
        """Read a name, a role or other words behind a preposition or a verb."""
        start = at + (self.get_kind(at) == "d" and self.get_kind(at + 1) == "N")
        national = self.get_kind(start) == "N" and self.items[start].word in ADJECTIVES
        if national and self.get_kind(start + 1) in "wv":
            start = at  # "a Swiss architect"
        elif self.get_kind(start) == "N":
            plain = follows_name(self.items, start + 1) or self.get_kind(start + 1) == "'"
            title = read_role(self.items, start + 1) if not plain else None
            if title is not None and self.get_kind(title.end) == "N":
                plain = True
            if (
                title is not None
                and start == at
                and not preposition
                and not title.is_general
                and title.end > start + 1
                and not plain
            ):
                return Argument(preposition, self.get_name(start)), start + 1  # "named NAME chief executive"
            if not plain:
                return self._words(at, preposition)
        if self.get_kind(start) == "#":
            return self._words(at, preposition)
        phrase = self.noun_phrase(start, subject=False)
        if phrase is None or phrase.end <= at:
            return self._words(at, preposition)
        if phrase.role is not None:
            return Argument(preposition, role=phrase.role), phrase.end
        if phrase.noun:
            return Argument(preposition, text=phrase.noun, noun=phrase.noun), phrase.end
        if phrase.name is not None:
            return Argument(preposition, phrase.name), phrase.end
        return self._words(at, preposition, phrase.end)

    def _words(self, at: int, preposition: str, least: int = 0) -> tuple[Argument, int] | None:
        """Read other words; a name may stand among them."""
        end = max(at, least)
        while end < len(self.items) and end < at + 2 * LOOK_AHEAD:
            verb = self.get_kind(end) == "v" and self.get_word(end) not in _ACTIVE
            name = self.get_kind(end) == "N" and (end > at or not follows_name(self.items, end + 1))
            if not (verb or name or self.get_kind(end) in "dwo#a-"):
                break
            end += 1
        if end == at:
            return None
        words = [item.text for item in self.items[at:end] if item.kind != "d"]
        return Argument(preposition, text=" ".join(words).replace(" - ", "-")), end

    def _is_boundary(self, at: int) -> bool:
        """Return whether a clause may end at a place without a word of it left unread."""
        kind, word = self.get_kind(at), self.get_word(at)
        if kind == "(":
            return True
        if kind == ",":
            return self.get_kind(at + 1) != "N" or self.begins_clause(at + 1)
        if kind in "ck" or word in _CLAUSE_WORDS:
            return word not in _OPEN_ENDS | {"as", "since"}
        return kind in ".;)" or word in {"who", "which", "where", "whom"}

    def begins_clause(self, at: int) -> bool:
        """Return whether a clause begins at a place: a subject, and a verb soon after it."""
        place = at
        while place < min(at + LOOK_AHEAD, len(self.items)):
            item = self.items[place]
            if item.kind == "," and self.get_kind(place + 1) == "N" and self.get_kind(place + 2) == ",":
                place += 3  # "his wife, NAME, is"
                continue
            if item.kind in "bxv" or item.word in VERBS:
                return place > at and self.items[at].kind not in "pc,"
            if item.kind in ".;,pck" and item.word != "of":
                return False
            place += 1
        return False

    def _read_relative(self, subject: Phrase, group: VerbGroup, least: int | None = None) -> int:
        """Read "is the brother of NAME and the husband of NAME"; return the place after it."""
        at = group.end
        least = at if least is None else least
        if subject.name is None or not group.asserted:
            return least
        end = self.read_kin(at, subject.name)
        while end and self.get_kind(end) == "c":
            other = self.read_kin(end + 1, subject.name)
            if not other:
                break
            end = other
        return end or least

    def read_complement(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read a complement: a post, a profession, a nationality, a membership."""
        objects, name = arguments.objects, subject.name
        if name is None or not objects:
            return
        first = objects[0]
        if first.role is not None:
            self._read_role(subject, group, arguments, first)
        elif first.name is not None and len(objects) == 1 and not group.is_over:
            word = first.name.casefold()
            if word in ADJECTIVES and word not in COUNTRIES:
                self.state(name, "citizenship", first.name, "entity")
        elif first.text in _MEMBERS:
            organisation, days = arguments.name("of"), self._compute_state_days(group, arguments)
            if organisation is not None and days is not None:
                self.state(name, "affiliation", organisation.name or "", "entity", days)

    def _read_role(self, subject: Phrase, group: VerbGroup, arguments: Arguments, first: Argument) -> None:
        """Read "is ROLE": state a citizenship, a profession or a post."""
        role = first.role
        if role is None:
            return
        if role.noun in {"citizen", "national"}:
            if role.organisation is not None and not group.is_over:
                self.state(subject.name, "citizenship", role.organisation, "entity")
        elif not role.is_post:
            self.state_type(subject.name, role)
        elif (days := self._compute_state_days(group, arguments)) is not None and not arguments.has_list:
            self.hold(subject.name, role.with_organisation(None), days)

    def _compute_state_days(self, group: VerbGroup, arguments: Arguments) -> tuple[int | None, int | None] | None:
        """Return the days of a state; None if they are vague, or if the state is over and its end is unknown."""
        days = arguments.state_days()
        return None if days is None or (group.is_over and days[1] is None) else days

    def read_birth(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "was born in NAME on DATE"."""
        self._state_life_event(subject.name, "birth", arguments)

    def die(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "died in NAME on DATE of pneumonia"."""
        self._state_life_event(subject.name, "death", arguments)
        role = arguments.role("of", "from")  # "cancer" has the form of a profession
        cause = role.text if role is not None else arguments.text("of", "from")
        if cause is not None and not arguments.has_list:
            self.state(subject.name, "cause of death", _drop_articles(cause), "text")

    def _state_life_event(self, name: str | None, event: str, arguments: Arguments) -> None:
        """State the place and the date of an event, "birth" or "death", in somebody's life."""
        place, outer, date = arguments.name("in", "at", "near"), arguments.name("within"), arguments.date
        if place is not None and place.name is not None:
            self.state(name, f"place of {event}", place.name, "entity")
            if outer is not None and outer.name is not None:
                self.state(place.name, "located in", outer.name, "entity")
        if date is not None and not date.word.startswith(("before", "after", "by")):
            self.state(name, f"date of {event}", date.text, "date")

    def _read_place(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "is based in NAME", "lives in NAME" and "has its seat in NAME"."""
        place, outer, days = arguments.name("in", "at", "near", "from", "out of"), arguments.name("within"), None
        days = self._compute_state_days(group, arguments)
        objects = [one for one in arguments.objects if one.noun != "seat"]
        if place is None or place.name is None or days is None or objects or arguments.has_list:
            return
        self.state(subject.name, "based in", place.name, "entity", days)
        if outer is not None and outer.name is not None:
            self.state(place.name, "located in", outer.name, "entity")

    def read_past_residence(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "lived in NAME until 2010"."""
        self._read_place(subject, replace(group, past=True), arguments)

    def read_possession(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "has its head office in NAME" and "has a degree from NAME"."""
        if arguments.objects and arguments.objects[0].noun == "seat":
            if not group.past:
                self._read_place(subject, replace(group, perfect=False), arguments)
            return
        self.take_degree(subject, group, arguments)

    def take_degree(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "holds a degree in physics from NAME"."""
        words = arguments.objects[0].text.casefold().replace("’", "'").split() if arguments.objects else []
        school = arguments.name("from", "at")
        if _DEGREES.intersection(words) and school is not None and school.name is not None:
            self.state(subject.name, "educated at", school.name, "entity")

    def move(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "moved from NAME to NAME in 2019" and "moved its head office to NAME"."""
        new, old, days = arguments.name("to"), arguments.name("from"), arguments.compute_first_days()
        if new is None or new.name is None or days is None or arguments.has_list:
            return
        if any(one.noun != "seat" for one in arguments.objects) or arguments.text("as") or arguments.role("to"):
            return
        if group.verb in {"transferred", "shifted", "switched"} and not arguments.objects:
            return
        # A page tells of moves long past: without a date nobody can tell whether another followed.
        if group.perfect or arguments.date is not None or not self.context.is_page:
            self.state(subject.name, "based in", new.name, "entity", days)
        ending = arguments.compute_last_days()
        if old is not None and old.name is not None and ending is not None:
            self.state(subject.name, "based in", old.name, "entity", ending)

    def read_marriage(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "is married to NAME"."""
        partner = arguments.name("to")
        if partner is not None and partner.name is not None:
            self.state(subject.name, "spouse", partner.name, "entity")

    def marry(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "married NAME in 2004"."""
        objects, days = arguments.objects, arguments.compute_first_days()
        if len(objects) == 1 and objects[0].name is not None and days is not None and not arguments.has_list:
            self.state(subject.name, "spouse", objects[0].name, "entity", days)

    def read_naming(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "was named after NAME" and "was named director"."""
        namesake = arguments.name("after", "for")
        if namesake is None:
            self.hold_passive(subject, group, arguments)
        elif namesake.name is not None and namesake.preposition == "after":
            self.state(subject.name, "named after", namesake.name, "entity")

    def read_alias(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "is also known as NAME"."""
        alias = arguments.name("as")
        if alias is not None and alias.name is not None and not arguments.has_list:
            self.state(subject.name, "also known as", alias.name, "entity")

    def study(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "studied law at NAME"."""
        for school in arguments.members:
            if school.name is None or school.preposition not in {"at", "from"}:
                continue
            if not is_organisation(school.name) or _is_school(school.name):
                self.state(subject.name, "educated at", school.name, "entity")

    def attend(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "attended NAME"."""
        objects = arguments.objects
        if objects and objects[0].name is not None and _is_school(objects[0].name):
            self.state(subject.name, "educated at", objects[0].name, "entity")

    def work(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "works for NAME", "employed by NAME", "belongs to NAME" and "works as ROLE", with a name or without.

        A name alone states an affiliation, a role with a name a post, and a role alone a post or a profession.
        """
        employer_argument, role = arguments.name("for", "at", "to", "with", "by"), arguments.role("as")
        days = self._compute_state_days(group, arguments)
        if days is None or arguments.has_list:
            return
        organisation = employer_argument.name if employer_argument is not None else None
        if role is not None and (role.is_post or organisation is not None):
            self.hold(subject.name, role.with_organisation(organisation), days)
        elif role is not None:
            self.state_type(subject.name, role)
        elif organisation is not None:
            self.state(subject.name, "affiliation", organisation, "entity", days)

    def work_in_past(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "worked for NAME until 2019"."""
        self.work(subject, replace(group, past=True), arguments)

    def join(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "joined NAME in 1999" and "joined NAME as ROLE"."""
        objects, days = arguments.objects, arguments.compute_first_days()
        if not objects or objects[0].name is None or days is None or arguments.has_list:
            return
        if arguments.role("as") is not None:
            self.begin(subject, group, arguments)
        elif days != TIMELESS or group.perfect:
            self.state(subject.name, "affiliation", objects[0].name, "entity", days)

    def leave(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "left NAME in 2004" and "leaves a daughter, NAME"; "left NAME for NAME" states nothing."""
        objects = arguments.objects
        if arguments.role("as") is not None and not any(one.name for one in objects):
            self.resign(subject, group, arguments)
            return
        if not objects or objects[0].name is None or arguments.name("for") is not None or arguments.has_list:
            return
        days = arguments.compute_last_days()
        if days is not None and (is_organisation(objects[0].name) or " " in objects[0].name):
            self.state(subject.name, "affiliation", objects[0].name, "entity", days)

    def leave_behind(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "leaves a daughter, NAME"."""
        relation, after = self._kin_noun(group.end + (self.get_kind(group.end) == "d"))
        name = after + (self.get_kind(after) == ",")
        if relation is not None and self.get_kind(name) == "N":
            self.state(subject.name, relation, self.items[name].text, "entity")

    def read_founding(self, subject: Phrase, _: VerbGroup, arguments: Arguments) -> None:
        """Read "was founded in NAME in 1987 by NAME and NAME"."""
        place, founder = arguments.name("in"), arguments.name("by")
        if arguments.date is not None:
            self.state(subject.name, "founded in", arguments.date.text, "date")
        if place is not None and place.name is not None:
            self.state(subject.name, "founded in", place.name, "entity")
        founders = [founder, arguments.name("and")] if founder is not None else []
        for one in founders:
            if one is not None and one.name is not None:
                self.state(subject.name, "founded by", one.name, "entity")

    def take_object(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "founded NAME" and "won the NAME"."""
        objects = arguments.objects
        if objects and objects[0].name is not None and not arguments.has_list:
            self.state(subject.name, _NAME_OBJECTS[group.verb], objects[0].name, "entity")

    def employ(self, subject: Phrase, group: VerbGroup, arguments: Arguments) -> None:
        """Read "employs 340 people"."""
        if self.get_kind(group.end) == "#" and arguments.objects:
            self.state(subject.name, "employs", arguments.objects[0].text, "number")


def _is_school(name: str) -> bool:
    """Return whether a word of a name marks a school or a university."""
    return bool(_SCHOOLS.intersection(name.casefold().split()))


def _drop_articles(words: str) -> str:
    """Return the words without determiners."""
    return " ".join(word for word in words.split() if word not in clause_words.DETERMINERS)


Frame = Callable[[VerbFrames, Phrase, VerbGroup, Arguments], None]
_PASSIVE: dict[str, Frame] = {
    **dict.fromkeys(APPOINTMENT_VERBS, VerbFrames.hold_passive),
    **dict.fromkeys(("based", "headquartered", "located", "situated"), VerbFrames._read_place),
    **dict.fromkeys(("succeeded", "replaced", "followed"), VerbFrames.read_succession),
    **dict.fromkeys(("dismissed", "fired", "ousted", "removed", "sacked"), VerbFrames.resign),
    **dict.fromkeys(("founded", "established", "started", "created"), VerbFrames.read_founding),
    **dict.fromkeys(("educated", "schooled", "trained"), VerbFrames.study),
    **dict.fromkeys(("known", "called"), VerbFrames.read_alias),
    "employed": VerbFrames.work,
    "born": VerbFrames.read_birth,
    "killed": VerbFrames.die,
    "married": VerbFrames.read_marriage,
    "named": VerbFrames.read_naming,
}
"""Frames of verbs behind "is" or "was"."""
_ACTIVE: dict[str, Frame] = {
    **dict.fromkeys(APPOINTMENT_VERBS, VerbFrames.hold_active),
    **dict.fromkeys(
        (
            *("became", "rose", "ascended", "advanced", "took over", "came in", "stepped in", "stepped up"),
            *("came back", "moved up", "started", "began", "returned"),
        ),
        VerbFrames.begin,
    ),
    **dict.fromkeys(("lives", "resides", "dwells", "sits", "operates"), VerbFrames._read_place),
    **dict.fromkeys(("lived", "resided", "operated"), VerbFrames.read_past_residence),
    **dict.fromkeys(("moved", "relocated", "transferred", "shifted", "switched"), VerbFrames.move),
    **dict.fromkeys(("works", "teaches", "lectures", "belongs"), VerbFrames.work),
    **dict.fromkeys(("worked", "taught", "lectured"), VerbFrames.work_in_past),
    **dict.fromkeys(("serves", "served", "acts", "acted", "remains"), VerbFrames.serve),
    **dict.fromkeys(
        ("resigned", "retired", "stepped down", "stepped aside", "stood down", "quit", "withdrew", "stepped back"),
        VerbFrames.resign,
    ),
    **dict.fromkeys(("succeeded", "replaced", "succeeds", "replaces"), VerbFrames.succeed),
    **dict.fromkeys(("studied", "graduated", "trained", "qualified"), VerbFrames.study),
    **dict.fromkeys(
        ("holds", "earned", "received", "gained", "completed", "obtained", "do"), VerbFrames.take_degree
    ),
    **dict.fromkeys(("died", "passed away"), VerbFrames.die),
    **dict.fromkeys(_NAME_OBJECTS, VerbFrames.take_object),
    "be": VerbFrames.read_complement,
    "have": VerbFrames.read_possession,
    "handed over": VerbFrames.hand_over,
    "married": VerbFrames.marry,
    "attended": VerbFrames.attend,
    "joined": VerbFrames.join,
    "left": VerbFrames.leave,
    "leaves": VerbFrames.leave_behind,
    "employs": VerbFrames.employ,
}
"""Frames of verbs in the active voice."""
VERBS = frozenset(word for verb in (*_ACTIVE, *_PASSIVE) for word in (verb, verb.split()[0])) - {"be", "have", "do"}
"""Verbs that count even if their form could be a noun's; with a particle, also their first word."""
