"""Whom pronouns and short names mean in a passage, by the sentences before."""

from dataclasses import dataclass, field

from engram.providers.language.facts.roles import ORGANISATIONS
from engram.providers.language.facts.sentence_items import name_words
from engram.providers.language.name_words import NAME_PARTICLES

_ORGANISATION_WORDS = ORGANISATIONS | frozenset(
    """academy air airlines airways analytics authority bakery bank brothers bureau capital chamber church co
    commission committee community computing consulting corp corporation council court dairy department
    developments electric electronics energie energy engineering enterprises faculty films finance foods fund
    gallery games gas glass gmbh holding holdings inc industries insurance international investments labs
    library limited line lines llc logistics ltd media mills mining ministry mobility motors office oil
    orchestra parliament partners party pharma plc police power press productions properties rail railway
    railways records republic robotics sa se services shipping software solutions sons steel studios systems
    team technologies technology telecom textiles trading transport travel ventures water wines works""".split()
)
_HEADINGS = frozenset(
    """about absences action actions agenda announcement announcements annual apologies appendix appointments
    article attendance birthdays board brief briefing bulletin calendar changes chapter code contact contacts
    correction corrections council details digest directory election elections emergency faq faqs farewell
    feedback finance follow-up football fw fwd guide guidelines handbook hello help history hr index
    information internal introduction introductions invitation invoice jobs letter letters list lunch manual
    meeting meetings memo memorandum minutes news newsletter note notes notice notices obituaries obituary
    office offices onboarding our out overview page part people personnel policies policy press procedure
    procedures profile profiles project question questions re reception reminder reorganisation report reports
    request results review rules schedule section sport sports staff statement status summary supplement team
    terms thanks update updates vacancies visit weekly welcome who your""".split()
)
"""Words of headings that name no person, place or organisation."""


_SMALL = NAME_PARTICLES | frozenset("a an and as at by for from in on or the to up with".split())
"""Words that names hold in lower case."""


def is_heading(title: str) -> bool:
    """Whether a title is a heading, not the name of a person, a place, an organisation or a work.

    A name has no word in lower case but those that names hold, and no word of a heading.
    """
    parts = title.split()
    plain = {part.strip(".,:;!?").casefold() for part in parts}
    small = [part for part in parts if part[0].islower() and part not in _SMALL]
    return bool(small or plain & _HEADINGS or title.rstrip().endswith(("?", "!")))


def is_organisation(name: str) -> bool:
    """Whether a word of a name tells that it is an organisation's."""
    return bool({part.strip(".,").casefold() for part in name.split()} & _ORGANISATION_WORDS)


@dataclass(slots=True)
class Context:
    """What a passage has named so far.

    Attributes:
        title: of the passage if it is a name, which pronouns of its first sentence mean.
        topic: words that names of the title's own bearer are made of.
        kind: of the title's bearer: person, work, place or thing.
        is_page: the passage tells of its title, often in the past.
        person, organisation: whom "she" and "it" mean: the subject of the last sentence that had a name for one.
        subject: of the sentence that is read.
        longer: the names of several words that begin or end with a word, which may stand for them.
    """

    title: str | None = None
    topic: frozenset[str] = frozenset()
    kind: str = "thing"
    is_page: bool = False
    person: str | None = None
    organisation: str | None = None
    subject: str | None = None
    longer: dict[str, set[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.title is not None:
            self.note(self.title)
            self.finish()

    def resolve(self, name: str) -> str:
        """The whole name for a part of it that one name of the passage begins or ends with."""
        own = name_words(name)
        if self.title is not None and own and (own <= name_words(self.title) or own <= self.topic):
            return self.title
        first, _, last = name.partition(" ")
        if not last:
            longer = self.longer.get(name, set())
            return next(iter(longer)) if len(longer) == 1 else name
        if not is_organisation(name):
            for part in {first, last.rpartition(" ")[2]}:
                self.longer.setdefault(part, set()).add(name)
        return name

    def note(self, subject: str | None) -> None:
        """Take the first subject of a sentence."""
        if self.subject is None and subject is not None:
            self.subject = subject

    def finish(self) -> None:
        """End a sentence: its subject is whom the next one may mean."""
        subject, self.subject = self.subject, None
        if subject is None:
            return
        if self.title == subject and self.kind in {"work", "place"}:
            self.person, self.organisation = None, subject
        elif self.title == subject and self.kind == "person":
            self.person, self.organisation = subject, None
        elif is_organisation(subject):
            self.organisation = subject
        else:
            self.person = subject
            self.organisation = (
                subject if self.organisation is None or len(subject.split()) == 1 else self.organisation
            )

    def meant(self, pronoun: str) -> str | None:
        """Whom a pronoun means; "it" and "its" never a person that is known as one."""
        if pronoun in {"he", "she", "his", "her"}:
            if self.subject is not None and pronoun in {"his", "her"}:
                return None if is_organisation(self.subject) else self.subject
            return self.person
        if pronoun in {"it", "its"}:
            subject = self.subject if pronoun == "its" else None
            return subject if subject is not None and is_organisation(subject) else self.organisation
        return None
