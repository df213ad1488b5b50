"""What one sentence says, read from left to right: subject, verb with its prepositions, objects.

One pass over the items. What stands in brackets is read apart. A clause's subject is the name before its verb, or the
passage's topic where a pronoun, "the film" or nothing stands there; what the verb and the words up to a name say is the
predicate. Reading is shallow, so what is far from its verb is left out rather than guessed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.core.triples import Kind, Triple
from app.providers.language.facts import words
from app.providers.language.facts.countries import ADJECTIVES, COUNTRIES
from app.providers.language.facts.reading import Item

MAX_PREDICATE_WORDS = 5
_PARTS = re.compile(r"[\s–-]+")
_KINDS: dict[str, Kind] = {"N": "entity", "D": "date", "#": "number"}
_AFTER_ADJECTIVES = frozenset("born language based style".split())
"""Of "Danish-born painter" and "Tamil language film" the last word is what it is."""
_ABOUT = frozenset("over about around under".split())
_ENDURING = frozenset("became joined married moved appointed elected named founded established inherited".split())
"""Verbs whose date is when something began."""


@dataclass(frozen=True, slots=True)
class Topic:
    """What the passage is about.

    Attributes:
        name: its title.
        words: words of the title and of what else the lead calls it; a name made of them means the topic.
        kind: "person", "work", "place" or "thing".
        nouns: what the lead says it is, word by word ("film", "band").
    """

    name: str
    words: frozenset[str]
    kind: str
    nouns: frozenset[str]


@dataclass(slots=True)
class _Clause:
    """Where the reading stands.

    Attributes:
        subject: None where nobody can tell.
        head: nouns that stand for the subject ("the music was composed by").
        verbs: several where they share what follows ("written and directed by"); "" is a bare "be".
        gap: items since the verb, or since the last object.
        predicates: of the last object, which a list goes on with.
        kin: what the names that follow are of the subject: "father", "mother", ...
        denied: the verb is negated, or only possible.
        listed: an object followed another.
        spoken: the verb has had an object.
        direct: the first of them without a preposition.
        number: tells a sentence's clauses apart, for their dates.
    """

    subject: str | None
    number: int
    head: list[Item] = field(default_factory=list)
    verbs: list[str] = field(default_factory=list)
    gap: list[Item] = field(default_factory=list)
    predicates: tuple[str, ...] = ()
    kin: str | None = None
    relatives: int = 0
    denied: bool = False
    relative: bool = False
    copula: bool = False
    listed: bool = False
    spoken: bool = False
    direct: bool = False

    def head_words(self) -> list[str]:
        """The last two nouns of the head, before any preposition."""
        end = next((place for place, item in enumerate(self.head) if item.kind == "p"), len(self.head))
        return [item.word for item in self.head[:end] if item.kind == "w"][-2:]


class Reader:
    """Reads one sentence; :meth:`read` gives what it says."""

    def __init__(self, topic: Topic | None, ordinal: int, *, lead: bool) -> None:
        self._topic = topic
        self._ordinal = ordinal
        self._lead = lead and topic is not None
        self._found: list[tuple[Triple, int]] = []
        self._times: dict[int, tuple[int | None, int | None]] = {}
        self._number = 0
        self._main: str | None = topic.name if topic is not None else None

    def read(self, items: Sequence[Item]) -> list[Triple]:
        """What the items say, dates of a clause as the days of its facts."""
        clause = _Clause(self._main if self._lead else None, 0)
        at = self._after_subject(items) if self._lead else 0
        started = self._lead
        outer: _Clause | None = None
        while at < len(items):
            item = items[at]
            before = items[at - 1] if at else None
            if item.kind == "," and outer is not None:
                clause, outer = outer, None
                clause.gap = [item]
            elif item.kind == "," and before is not None and self._opens_apposition(items, at, clause):
                outer, clause = clause, _Clause(self._resolved(before.text), self._next())
                clause.verbs, clause.copula = [""], True
                at = self._phrase(items, at + 1, clause) - 1
            elif item.kind in ";k" or (item.kind == "," and clause.relative):
                if item.kind != "k" or self._begins_clause(items, at + 1):
                    clause = _Clause(self._main, self._next())
                    outer = None
            elif item.kind == "h":
                clause = _Clause(self._meant(item), self._next())
                self._main = clause.subject
                started, outer = True, None
            elif item.kind == "r":
                clause = self._relative(items, at, clause)
            elif item.kind == "R":
                clause = _Clause(None, self._next(), relative=True)
            elif item.kind == "n":
                clause.denied = True
            elif item.kind in "bxv":
                if outer is not None and item.kind in "bx":
                    clause, outer = outer, None
                clause, at = self._verb(items, at, clause, started=started)
                if clause.subject is not None and not started:
                    self._main, started = clause.subject, True
            elif item.kind in "ND#":
                at = self._mention(items, at, clause)
            elif item.kind != "a":
                clause.gap.append(item)
                if item.word in {"of", "from"} and clause.verbs == ["died"]:
                    at = self._cause(items, at, clause)
            at += 1
        return [self._dated(triple, number) for triple, number in self._found]

    # -- subjects

    def _meant(self, pronoun: Item) -> str | None:
        """Whom a pronoun means: the sentence's first subject, else the topic; a film is no "he", a painter no "it"."""
        meant = self._main if self._main is not None else self._topic_name()
        if self._topic is None or meant != self._topic.name:
            return meant
        personal = pronoun.word in {"he", "she", "his", "her"}
        if personal and self._topic.kind in {"work", "place"}:
            return None
        return None if pronoun.word in {"it", "its"} and self._topic.kind == "person" else meant

    def _topic_name(self) -> str | None:
        return self._topic.name if self._topic is not None else None

    def _resolved(self, name: str) -> str:
        """The title for a name made of words of it."""
        if self._topic is not None and _means(name, self._topic):
            return self._topic.name
        return name

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _after_subject(self, items: Sequence[Item]) -> int:
        """Where the lead's first verb stands: what comes before names the topic."""
        for at, item in enumerate(items):
            following = items[at + 1].kind if at + 1 < len(items) else ""
            aside = following == "p" and all(one.kind != "," for one in items[max(0, at - 2) : at])
            if item.kind in "bx" or (item.kind == "v" and at and not aside):
                return at
        return 0

    @staticmethod
    def _begins_clause(items: Sequence[Item], at: int) -> bool:
        """Whether a subject and a verb follow within a few items."""
        for item in items[at : at + 8]:
            if item.kind in "hbxv":
                return True
            if item.kind in ",;p":
                return False
        return False

    def _opens_apposition(self, items: Sequence[Item], at: int, clause: _Clause) -> bool:
        """Whether "NAME, a ..." says what the name is."""
        if items[at - 1].kind != "N" or at + 2 >= len(items) or clause.denied:
            return False
        first, second = items[at + 1], items[at + 2]
        article = first.word in {"a", "an", "the"} and (second.kind in "w#" or second.word in ADJECTIVES)
        kin = next(
            (place for place in range(at + 1, at + 4) if items[min(place, len(items) - 1)].word in words.KIN), 0
        )
        related = 0 < kin < len(items) - 1 and items[kin + 1].word == "of"
        return article or (related and all(item.kind in "wda" for item in items[at + 1 : kin]))

    def _relative(self, items: Sequence[Item], at: int, clause: _Clause) -> _Clause:
        """The clause after "who", "which" or "that": about the name before it, or what the subject is said to be."""
        back = at - 1
        while back >= 0 and items[back].kind in ",a":
            back -= 1
        if back >= 0 and items[back].kind == "N":
            said = clause.predicates[0] if clause.predicates else ""
            remote = said.endswith((" in", " of", " from", " at", "is")) or said in {"in", "of", "from"}
            if items[at].word == "who" and clause.copula and (remote or items[back].word in COUNTRIES):
                return _Clause(clause.subject, self._next(), relative=True)
            if items[at].word != "who" and said.endswith("by"):
                return _Clause(None, self._next(), relative=True)
            return _Clause(self._resolved(items[back].text), self._next(), relative=True)
        is_own = clause.copula and not clause.predicates and all(item.kind not in "pND" for item in clause.gap)
        return _Clause(clause.subject if is_own else None, self._next(), relative=True)

    # -- verbs

    def _verb(self, items: Sequence[Item], at: int, clause: _Clause, *, started: bool) -> tuple[_Clause, int]:
        """The clause with this verb; where its last item stands."""
        item = items[at]
        participle = item.kind == "v" and self._is_participle(items, at)
        if not clause.verbs and not clause.relative and not (self._lead and clause.number == 0):
            self._begin(items, at, clause, started=started)
        elif clause.verbs and not participle:
            subject = self._new_subject(items, at, clause)
            if subject is not None:
                clause = _Clause(subject, self._next())
        denied = clause.denied and not clause.verbs
        noun_before = at > 0 and items[at - 1].kind == "w" and not (clause.copula and not clause.spoken)
        if item.word == "including" or (item.word.endswith("ing") and item.kind == "v" and noun_before):
            clause.subject = None  # it is said of the noun, and nobody knows which thing that is
        if item.kind == "x":
            clause.denied = denied or (clause.denied and not clause.gap)
            if not clause.verbs:
                clause.verbs = []
            clause.gap = []
            return clause, at
        if participle and clause.copula and items[at - 1].kind == "," and _of_another_work(clause.predicates):
            clause.subject = None
        shared = (
            bool(clause.verbs)
            and clause.verbs != [""]
            and item.kind == "v"
            and not clause.spoken
            and _joins(clause.gap)
        )
        if clause.verbs and not shared and clause.verbs != [""]:
            clause = replace(clause, number=self._next(), denied=False, head=[])
        keeps_head = clause.verbs in ([], [""])
        clause.verbs = [*clause.verbs, item.word] if shared else [item.word if item.kind == "v" else ""]
        clause.copula = item.kind == "b"
        clause.head = clause.head if keeps_head or shared else []
        clause.gap, clause.predicates, clause.kin = [], (), None
        clause.listed = clause.spoken = False
        if clause.copula:
            return clause, self._phrase(items, at + 1, clause) - 1
        return clause, at

    @staticmethod
    def _is_participle(items: Sequence[Item], at: int) -> bool:
        item = items[at]
        following = items[at + 1] if at + 1 < len(items) else None
        if item.word.endswith("ing"):
            return True
        passive = item.word.endswith("ed") or item.word in words.PARTICIPLES
        return passive and following is not None and following.kind in "pc,a"

    def _begin(self, items: Sequence[Item], at: int, clause: _Clause, *, started: bool) -> None:
        """Find the subject of a clause's first verb among what stands before it."""
        before = [item for item in clause.gap if item.kind not in "a.'\""]
        while before and before[0].kind in "p,cD":  # "In 1920," or "and"
            comma = next((place for place, item in enumerate(before) if item.kind == ","), None)
            if before[0].kind in ",cD":
                before = before[1:]
            elif comma is None:
                return self._unknown(clause) if not started else None
            else:
                before = before[comma + 1 :]
        names = [item for item in before if item.kind == "N"]
        if not before:
            if clause.subject is None:
                clause.subject = self._topic_name() if not started else self._main
            return None
        owned = before[0].kind == "o"
        place = next((place for place, item in enumerate(before) if item.kind == "p"), None)
        if names and before[0] is not names[0] and place is not None and before.index(names[0]) > place:
            # "The director of NAME was ...": what is said is said of the name.
            of = before[place].word == "of" and not owned
            clause.subject = self._resolved(names[0].text) if of else None
            clause.head = [item for item in before[:place] if item.kind == "w"]
            return None
        if names and (not owned or before[-1].kind == "N"):
            clause.subject = self._resolved(names[-1].text) if before[-1].kind in "N," else None
            return None
        nouns = [item for item in before if item.kind in "wpc"]
        clause.subject = self._meant(before[0]) if owned else self._topic_name()
        if not owned and self._is_topic_noun(before):
            return None
        clause.head = nouns
        return None

    @staticmethod
    def _unknown(clause: _Clause) -> None:
        clause.subject = None

    def _is_topic_noun(self, before: Sequence[Item]) -> bool:
        """Whether "the film", "the village" is what the passage is about."""
        nouns = [item.word for item in before if item.kind == "w"]
        return bool(self._topic is not None and before[0].kind == "d" and nouns and nouns[-1] in self._topic.nouns)

    def _new_subject(self, items: Sequence[Item], at: int, clause: _Clause) -> str | None:
        """The name before a second verb where a boundary stands before the name."""
        back = at - 1
        while back >= 0 and items[back].kind in "ax":
            back -= 1
        if back < 1 or items[back].kind != "N" or items[back - 1].kind not in ",c;k":
            return None
        return self._resolved(items[back].text) if not clause.listed or items[back - 1].kind != "c" else None

    # -- what "is a ..." says

    def _phrase(self, items: Sequence[Item], at: int, clause: _Clause) -> int:
        """Read the noun phrase after "is", and the nouns that follow in a list; where the reading goes on."""
        subject = clause.subject
        first = at
        while at < len(items) and items[at].kind in "dwaND#-oc'\"" and not self._ends_phrase(items, at, first):
            at += 1
        phrase = items[first:at]
        nouns = [item for item in phrase if item.kind == "w"]
        following = items[at] if at < len(items) else None
        if subject is None or clause.denied or not nouns or clause.head or phrase[0].kind == "o":
            return first
        if phrase[-1].kind in "ND#" or phrase[-1].kind == "o":  # "is a film NAME": the name is an object
            return first
        self._modifiers(phrase, clause, subject)
        owned = following is not None and following.word == "of"
        if not owned:
            named = following is not None and following.kind == "N"  # "a medieval NAME"
            self._types(phrase[: _last_article(phrase)] if named else phrase, clause, subject)
        clause.gap = [replace(item, kind="w" if item.kind == "N" else item.kind) for item in phrase]
        return at

    @staticmethod
    def _ends_phrase(items: Sequence[Item], at: int, first: int) -> bool:
        """Whether a name ends the phrase, since no noun of it follows."""
        item = items[at]
        following = items[at + 1].kind if at + 1 < len(items) else ""
        if item.kind == "c":
            adjective = at + 1 < len(items) and items[at + 1].word in ADJECTIVES
            return not (following == "w" or adjective) or at == first
        return item.kind in "ND#" and following not in "wND#-'\"ca" and item.word not in ADJECTIVES

    def _modifiers(self, phrase: Sequence[Item], clause: _Clause, subject: str) -> None:
        """What stands before the noun: a year, a nationality, a name."""
        kind = self._kind(subject, phrase)
        nouns = [item.word for item in phrase if item.kind == "w"]
        named = {"person": "citizenship", "place": "country"}.get(kind, "country of origin")
        for place, item in enumerate(phrase):
            following = phrase[place + 1] if place + 1 < len(phrase) else None
            if item.kind == "D" and item.time is not None and kind == "work":
                self._say(subject, "release date", item, clause, 0.9)
            elif item.kind == "N" and (item.word in ADJECTIVES or item.word in COUNTRIES):
                if following is not None and following.kind == "-":
                    if place + 2 < len(phrase) and phrase[place + 2].word == "born":
                        self._say(subject, "country of birth", item, clause, 0.85)
                    continue  # "Tamil-language"
                self._say(subject, named, item, clause, 0.9)
            elif item.kind == "N" and following is not None and following.kind in "w":
                national = [part for part in _PARTS.split(item.text) if part.casefold() in ADJECTIVES]
                if national:
                    for part in national:
                        self._say(subject, named, replace(item, text=part), clause, 0.8)
                else:
                    self._say(subject, f"{nouns[-1]} of", item, clause, 0.7)

    def _types(self, phrase: Sequence[Item], clause: _Clause, subject: str) -> None:
        """What it is: the nouns, and each of a list of them."""
        part: list[Item] = []
        for item in [*phrase, None]:
            if item is None or item.kind in "c":
                if part and _is_noun(part[-1].word):
                    text = " ".join(one.text for one in part).replace(" - ", "-")
                    self._add(subject, "is a", text, "text", clause, 0.9)
                part = []
            elif item.kind in "w-" and (part or (item.kind == "w" and item.word not in _AFTER_ADJECTIVES)):
                part.append(item)
            elif item.kind in "NdD#":
                part = []

    def _kind(self, subject: str, phrase: Sequence[Item]) -> str:
        if self._topic is not None and subject == self._topic.name:
            return self._topic.kind
        return kind_of([item.word for item in phrase if item.kind == "w"])

    # -- objects

    def _mention(self, items: Sequence[Item], at: int, clause: _Clause) -> int:
        """A name, date or number: an object if there is a verb, else what may become the subject."""
        item = items[at]
        following = items[at + 1] if at + 1 < len(items) else None
        if item.kind == "N" and following is not None and following.kind == "'":
            owner = self._owned(items, at, clause)
            if owner is not None:
                return owner
        adjective = item.word in ADJECTIVES and following is not None and following.kind in "wN-"
        if adjective or (item.kind == "N" and self._qualifies(items, at)):
            clause.gap.append(replace(item, kind="w"))
            return at
        if item.kind == "D" and (_describes(clause.gap, following) or (following and following.kind == "'")):
            clause.gap.append(replace(item, kind="a"))
            return at
        if item.kind == "D" and not clause.copula:
            self._time(item, clause)
        opening = not clause.verbs and item.kind == "N" and self._opening_kin(clause)
        said = (opening or bool(clause.verbs)) and self._object(item, items, at, clause)
        if not said and item.kind == "N":
            self._possessed(item, clause)
        if said and not clause.spoken:
            clause.direct = item.kind == "N" and all(one.kind not in "p" for one in clause.gap)
        clause.spoken = clause.spoken or said
        clause.gap = [] if said else [*clause.gap, item]
        return at

    @staticmethod
    def _qualifies(items: Sequence[Item], at: int) -> bool:
        """Whether a noun and then another name follow, which is the one that is meant: "Pixar president NAME"."""
        end = at + 1
        while end < len(items) and items[end].kind == "w" and end <= at + 3:
            end += 1
        return at + 1 < end < len(items) and items[end].kind == "N"

    def _object(self, item: Item, items: Sequence[Item], at: int, clause: _Clause) -> bool:
        """Say it if the words since the verb make a predicate; whether they did."""
        if clause.denied or clause.subject is None:
            return False
        if clause.kin is not None or self._starts_kin(clause):
            return self._kin(item, clause)
        if self._possessed(item, clause):
            clause.predicates = ()
            return True
        if item.kind == "D" and clause.copula and not clause.head:
            self._time(item, clause)
            return False
        if [one.kind for one in clause.gap] == [","] and _is_title(item):
            return False
        if clause.predicates and item.kind != "D" and _continues(clause.gap, clause.predicates[0]):
            predicates: tuple[str, ...] = clause.predicates
            clause.listed = True
        else:
            predicates = tuple(self._predicates(item, clause))
        text = _with_unit(items, at) if item.kind == "#" else item.text
        if not predicates or (item.kind == "#" and not self._counts(text, item, clause)):
            return False
        for predicate in predicates:
            named = words.PREDICATES.get(predicate, predicate)
            if item.kind == "D":
                named = named.replace("place of", "date of")
                if named in {"spouse", "is"} or predicate.startswith("married"):
                    continue
            elif named.startswith("date of"):
                continue
            confidence = 0.85 if self._lead else 0.75
            self._add(clause.subject, named, text, _KINDS[item.kind], clause, confidence)
            self._place(item, items, at, predicate, clause)
        if item.kind != "D":
            clause.predicates = predicates
        return True

    @staticmethod
    def _counts(text: str, item: Item, clause: _Clause) -> bool:
        """Whether a number says something: of what there are so many, or what the subject's noun amounts to."""
        if clause.spoken or any(one.kind in "pND" and one.word not in _ABOUT for one in clause.gap):
            return False
        return bool(clause.head) or (text != item.text and not clause.copula)

    def _cause(self, items: Sequence[Item], at: int, clause: _Clause) -> int:
        """What somebody died of, in words; where the last of them stands."""
        end = at + 1
        while end < len(items) and items[end].kind in "dwvN-" and end <= at + 5:
            end += 1
        said = [item for item in items[at + 1 : end] if item.kind != "d"]
        if said and clause.subject is not None and not clause.denied:
            text = " ".join(item.text for item in said).replace(" - ", "-")
            self._add(clause.subject, "cause of death", text, "text", clause, 0.8)
            clause.gap = []
            return end - 1
        return at

    def _predicates(self, item: Item, clause: _Clause) -> list[str]:
        """Verb and what stands between it and the object; empty if that is too much or says nothing."""
        gap = [one for one in clause.gap if one.kind not in ".'\"-" and not (item.kind == "#" and one.kind == "p")]
        last = max((place for place, one in enumerate(gap) if one.kind == "p"), default=-1)
        left, right = gap[: last + 1], gap[last + 1 :]
        if any(one.kind in ",;(" for one in right) or (any(one.kind in ",;" for one in left) and not clause.copula):
            tail = _after_comma(left)
            if any(one.kind in ",;(" for one in right) or tail is None:
                return []
            left = tail
        if any(one.kind in "ND" for one in right):
            return []
        if item.kind == "D" and (any(one.kind == "w" for one in gap) or (clause.spoken and clause.direct)):
            return []
        if clause.direct and clause.spoken and left:
            return []  # what else is said after "joined NAME" is about that
        if left and left[0].word == "of" and clause.predicates:
            return []  # of the last object, not of the verb
        nouns = [one for one in left if one.kind in "wp"]
        if clause.copula and any(one.kind == "N" for one in left):
            return []  # of that name
        if clause.copula:
            return self._copular(item, nouns, right, clause)
        tail_words = [one.word for one in nouns]
        head = clause.head_words()
        found = []
        for verb in clause.verbs:
            said = [*head, verb, *tail_words]
            if verb and len(said) <= MAX_PREDICATE_WORDS:
                found.append(" ".join(said))
        return found

    def _copular(self, item: Item, nouns: Sequence[Item], right: Sequence[Item], clause: _Clause) -> list[str]:
        """The predicate after "is": "village in", or what the subject's noun says ("the director was")."""
        head = clause.head_words()
        if head:
            own = next((words.KIN[word] for word in head if word in words.KIN), None)
            if nouns:
                tail = [one.word for one in nouns]
                return [" ".join([*head, *tail])] if len(head) + len(tail) <= MAX_PREDICATE_WORDS else []
            return [own or " ".join(head)]
        if not nouns:
            bare = not clause.spoken and all(one.kind in "da" for one in clause.gap)
            return ["is"] if item.kind == "N" and bare else []
        first = next(place for place, one in enumerate(nouns) if one.kind == "p")
        said = [one.word for one in nouns[max(0, first - 1) :]]
        place_noun = first > 0 and nouns[first - 1].word in words.PLACES
        if place_noun and said[-1] in {"in", "near", "within", "on", "at"}:
            return ["located in" if said[-1] in {"in", "within"} else f"located {said[-1]}"]
        if len(said) == 1:  # a second preposition: "a tributary of NAME in NAME"
            apart = clause.subject is None or self._kind(clause.subject, []) == "person" or said[0] != "in"
            return [] if apart else ["located in"]
        return [" ".join(said)] if len(said) <= MAX_PREDICATE_WORDS else []

    def _place(self, item: Item, items: Sequence[Item], at: int, predicate: str, clause: _Clause) -> None:
        """A country at the end of "in A, B, COUNTRY" is the subject's, unless somebody was only born there."""
        if item.kind != "N" or item.word not in COUNTRIES or not clause.copula or clause.subject is None:
            return
        kind = self._kind(clause.subject, [])
        if predicate.split()[-1] in {"in", "of", "from", "at", "near"} and kind != "person":
            self._say(clause.subject, "country", item, clause, 0.85)

    # -- kin and other belongings

    def _opening_kin(self, clause: _Clause) -> bool:
        """ "The son of NAME and NAME, he ...": said of the topic before there is any verb."""
        if clause.kin is not None:
            return True
        nouns = [one.word for one in clause.gap if one.kind in "w"]
        opens = all(one.kind in "dwapo" for one in clause.gap) and nouns and self._number == 0
        if not opens or not any(word in words.KIN for word in nouns) or self._topic is None:
            return False
        clause.subject = self._topic.name
        return self._starts_kin(clause)

    @staticmethod
    def _starts_kin(clause: _Clause) -> bool:
        """Set ``kin`` where the words before are "son of", "married to", "born to"."""
        gap = clause.gap
        if clause.spoken and gap and gap[0].kind == "w":
            return clause.kin is not None  # "NAME wife of NAME": said of the first name
        stated = not clause.verbs or clause.copula or (bool(gap) and gap[0].word == "as")
        for place, one in enumerate(gap if stated else ()):
            following = gap[place + 1].word if place + 1 < len(gap) else ""
            relation = words.KIN.get(one.word) or words.KIN_PLURALS.get(one.word)
            if one.kind == "w" and relation in words.INVERSE and following == "of":
                clause.kin = words.INVERSE[relation]
                break
        if clause.verbs == ["born"] and any(one.word == "to" for one in gap):
            clause.kin = "parent"
        if clause.copula and any(one.word == "parents" for one in clause.head):
            clause.kin = "parent"
        clause.relatives = 0
        return clause.kin is not None

    def _kin(self, item: Item, clause: _Clause) -> bool:
        """A relative: a parent is the father or the mother by the words before, else by the order."""
        if item.kind != "N" or clause.subject is None:
            clause.kin = None if item.kind != "D" else clause.kin
            return False
        if item.text[0].isdigit():  # "6th Duke of": another title of the one before
            return False
        said = {one.word for one in clause.gap} | set(item.word.split()[:1])
        far = [one for one in clause.gap if one.kind in "pv"]
        wifely = "wife" in said
        apart = clause.relatives and all(one.kind != "c" for one in clause.gap)
        if (clause.relatives and far and not wifely) or (apart and not wifely):
            clause.kin = None
            return False
        relation = clause.kin
        if relation == "parent":
            if wifely or said & words.FEMALE - {"she"}:
                relation = "mother"
            elif said & words.MALE - {"he"} or clause.relatives == 0:
                relation = "father"
            else:
                relation = "mother" if clause.relatives == 1 else None
        clause.relatives += 1
        if relation is None or clause.relatives > 4:
            return False
        if item.text != clause.subject:
            self._add(clause.subject, relation, item.text, "entity", clause, 0.8, resolve=False)
        return True

    def _possessed(self, item: Item, clause: _Clause) -> bool:
        """ "his wife NAME": a noun between a possessive and a name says what the name is to the owner."""
        gap = clause.gap
        place = next((place for place in range(len(gap) - 1, -1, -1) if gap[place].kind in "o"), None)
        if place is None or item.kind != "N" or clause.denied:
            return False
        between = gap[place + 1 :]
        nouns = [one.word for one in between if one.kind == "w"]
        if not nouns or any(one.kind not in "wa,-#" for one in between) or len(nouns) > 3:
            return False
        commas = [one for one in between if one.kind == ","]
        kin = next((words.KIN[word] for word in nouns if word in words.KIN), None)
        owner = self._meant(gap[place])
        if owner is None or (commas and kin is None) or (commas and between[-1].kind != ","):
            return False
        self._say(owner, kin or " ".join(nouns), item, clause, 0.75 if kin else 0.65)
        return True

    def _owned(self, items: Sequence[Item], at: int, clause: _Clause) -> int | None:
        """ "NAME's wife NAME": where the second name stands if it is one."""
        if at + 2 >= len(items) or items[at + 2].word != "s":
            return None
        end = at + 3
        while end < len(items) and end < at + 7 and items[end].kind in "w":
            end += 1
        nouns = [item.word for item in items[at + 3 : end]]
        if nouns and end < len(items) and items[end].kind == "N" and len(nouns) <= 3:
            kin = next((words.KIN[word] for word in nouns if word in words.KIN), None)
            if not clause.denied:
                self._say(self._resolved(items[at].text), kin or " ".join(nouns), items[end], clause, 0.7)
        clause.gap.append(replace(items[at], kind="w"))
        return at + 2

    # -- saying

    def _say(self, subject: str, predicate: str, item: Item, clause: _Clause, confidence: float) -> None:
        self._add(subject, predicate, item.text, _KINDS[item.kind], clause, confidence)

    def _add(
        self,
        subject: str,
        predicate: str,
        text: str,
        kind: Kind,
        clause: _Clause,
        confidence: float,
        *,
        resolve: bool = True,
    ) -> None:
        value = self._resolved(text) if resolve and kind == "entity" else text
        if value == subject or not text.strip():
            return
        triple = Triple(subject, predicate, value, self._ordinal, kind, None, None, confidence)
        self._found.append((triple, clause.number))

    def _time(self, item: Item, clause: _Clause) -> None:
        if item.time is None:
            return
        start = item.time.start.toordinal() if item.time.start is not None else None
        end = item.time.end.toordinal() if item.time.end is not None else None
        if set(clause.verbs) & _ENDURING:
            end = None
        self._times.setdefault(clause.number, (start, end))

    def _dated(self, triple: Triple, number: int) -> Triple:
        if triple.kind == "date" or number not in self._times:
            return triple
        start, end = self._times[number]
        return replace(triple, valid_from=start, valid_to=end)


def kind_of(nouns: Sequence[str]) -> str:
    """What sort of thing the nouns of "is a ..." name, by the last that tells."""
    for noun in reversed(nouns):
        if noun in words.WORKS:
            return "work"
        if noun in words.PLACES:
            return "place"
        if noun in words.PEOPLE or (noun.endswith(words.PERSON_ENDINGS) and noun not in words.NO_PEOPLE):
            return "person"
    return "thing"


def _means(name: str, topic: Topic) -> bool:
    from app.providers.language.facts.reading import name_words

    own = name_words(name)
    return bool(own) and own <= topic.words


def _last_article(phrase: Sequence[Item]) -> int:
    return max((place for place, item in enumerate(phrase) if item.kind in "dc"), default=0)


def _of_another_work(predicates: Sequence[str]) -> bool:
    """Whether what was said last names another work, which what follows may be about."""
    return any(predicate.split()[0] in words.DERIVED for predicate in predicates)


def _is_title(item: Item) -> bool:
    """Whether a name after a comma is another one for the name before: "NAME, Duke of NAME"."""
    first, _, rest = item.word.partition(" ")
    return (first in words.MALE or first in words.FEMALE) and rest.startswith("of ")


def _is_noun(word: str) -> bool:
    """Whether a word that ends a phrase can say what something is: no number, participle or mere rank."""
    return word.isalpha() and not word.endswith("ed") and word not in words.RANKS


def _describes(gap: Sequence[Item], following: Item | None) -> bool:
    """Whether a date is part of a noun phrase: "the 1965 novel"."""
    return bool(gap) and gap[-1].kind in "dow" and following is not None and following.kind in "wN"


def _joins(gap: Sequence[Item]) -> bool:
    """Whether two verbs share what follows: "written and directed", "written, produced and directed"."""
    return any(item.kind in "c," for item in gap) and all(item.kind in "c,a" for item in gap)


def _continues(gap: Sequence[Item], predicate: str) -> bool:
    """Whether a list goes on: only commas, "and" and what a name is called by stand between.

    "In the district of COUNTY" goes on as well: what lies in a part lies in the whole.
    """
    if not gap or len(gap) > 6 or predicate.endswith(" as"):
        return False
    if gap[0].word == "of" and len(gap) == 1 and predicate.endswith((" in", " within", " at")):
        return True
    return gap[0].kind in ",c" and all(item.kind in ",cdwa" for item in gap)


def _after_comma(left: Sequence[Item]) -> list[Item] | None:
    """What follows the last comma, if it begins with a preposition: ", in 1920" goes with the verb."""
    last = max((place for place, item in enumerate(left) if item.kind in ",;"), default=-1)
    tail = list(left[last + 1 :])
    return tail if tail and tail[0].kind == "p" else None


def _with_unit(items: Sequence[Item], at: int) -> str:
    """A number with the nouns that it counts, at most two."""
    end = at + 1
    while end < len(items) and end <= at + 2 and items[end].kind == "w":
        end += 1
    return " ".join(item.text for item in items[at:end])
