"""Whom pronouns and short names mean in a passage, by the sentences before."""

from dataclasses import dataclass, field

from engram.providers.language.facts.roles import ORGANISATIONS
from engram.providers.language.facts.sentence_items import name_words

_ORGANISATION_WORDS = ORGANISATIONS | frozenset(
    """academy air airlines airways analytics authority bakery bank brothers bureau capital chamber church committee
    co commission community computing consulting corp corporation court council dairy department developments
    electric electronics energy energie engineering enterprises faculty films finance foods fund gallery gas gmbh
    glass games holding holdings inc industries insurance international investments labs library limited lines line
    llc logistics ltd media mills mining ministry mobility motors office oil orchestra parliament partners party
    pharma plc police power press productions properties rail railway railways records republic robotics sa se
    services shipping software solutions sons steel studios systems team technologies technology telecom textiles
    trading transport travel ventures water wines works""".split()
)
_HEADINGS = frozenset(
    """about absences action actions agenda announcement announcements annual apologies appendix appointments article
    attendance birthdays board brief briefing bulletin calendar changes chapter code contact contacts correction
    corrections council details digest directory election elections emergency faq faqs farewell feedback finance
    follow-up football guide guidelines handbook hello help history hr index information internal introduction
    introductions invitation invoice jobs letter letters list lunch manual meeting meetings memo memorandum minutes
    news newsletter note notes notice notices obituaries obituary office offices onboarding our out overview page
    part people personnel policies policy press procedure procedures profile profiles project question questions re
    reception reminder reorganisation report reports request results review rules schedule section sport sports staff
    statement status summary supplement team terms thanks update updates vacancies visit weekly welcome who
    your fwd fw""".split()
)
"""Words of headings that name no person, place or organisation."""


def is_heading(title: str) -> bool:
    """Whether a title is a heading, not the name of a person, a place, an organisation or a work.

    A name has no word in lower case but those that names hold, and no word of a heading.
    """
    parts = title.split()
    plain = {part.strip(".,:;!?").casefold() for part in parts}
    small = [part for part in parts if part[0].islower() and len(part) > 3]
    return bool(small or plain & _HEADINGS or title.rstrip().endswith(("?", "!")) or ":" in title)


def is_organisation(name: str) -> bool:
    """Whether a word of a name tells that it is an organisation's."""
    return bool({part.strip(".,").casefold() for part in name.split()} & _ORGANISATION_WORDS)


@dataclass(slots=True)
class Context:
    """What a passage has named so far.

    Attributes:
        title: of the passage if it is a name, which pronouns of its first sentence mean.
        person, organisation: whom "she" and "it" mean: the subject of the last sentence that had a name for one.
        subject: of the sentence that is read.
        names: all, for what short forms mean.
    """

    title: str | None = None
    person: str | None = None
    organisation: str | None = None
    subject: str | None = None
    names: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.title is not None:
            self.note(self.title)
            self.finish()

    def resolve(self, name: str) -> str:
        """The whole name for a part of it that one name of the passage begins or ends with."""
        if self.title is not None and name_words(name) and name_words(name) <= name_words(self.title):
            return self.title
        longer = {
            one
            for one in self.names
            if " " not in name and name in (one.split()[0], one.split()[-1]) and one != name
        }
        if len(longer) == 1 and not any(is_organisation(one) for one in longer):
            return longer.pop()
        self.names.append(name)
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
        if is_organisation(subject):
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
