"""Types of names by their words: organisations, and headings that are no names."""

import re

from engram.providers.language.name_words import NAME_PARTICLES

_ORGANISATION_WORDS = frozenset(
    """academy agency air airline airlines airways analytics association authority bakery bank brand brewery
    broadcaster brothers bureau business capital carrier chain chamber charity church club co college
    commission committee community company computing consultancy consulting cooperative corp corporation
    council court dairy department developments electric electronics energie energy engineering enterprises
    faculty federation films finance firm foods foundation fund gallery games gas glass gmbh group holding
    holdings hospital hotel inc industries institute insurance international investments laboratory labs
    library limited line lines llc logistics ltd maker manufacturer media mills mining ministry mobility
    motors museum network newspaper office oil operator orchestra organisation organization parliament
    partners party pharma plc police power practice press productions properties publisher rail railway
    railways records republic retailer robotics sa school se services shipping society software solutions sons
    startup steel studios subsidiary supplier systems team technologies technology telecom textiles theater
    theatre trading transport travel trust union university utility ventures water wholesaler wines works""".split()
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


_LOWER_CASE_WORDS = NAME_PARTICLES | frozenset("a an and as at by for from in on or the to up with".split())
"""Words that names hold in lower case."""


def is_heading(title: str) -> bool:
    """Whether a title is a heading, not the name of a person, a place, an organisation or a work.

    A name has no word in lower case but those that names hold, and no word of a heading.
    """
    parts = title.split()
    plain = {part.strip(".,:;!?").casefold() for part in parts}
    small = [part for part in parts if part[0].islower() and part not in _LOWER_CASE_WORDS]
    dated = re.search(r",\s*[0-9]", title) is not None
    return bool(small or dated or plain & _HEADINGS or title.rstrip().endswith(("?", "!")))


def is_organisation(name: str) -> bool:
    """Return whether a word of a name marks an organisation."""
    return bool({part.strip(".,").casefold() for part in name.split()} & _ORGANISATION_WORDS)
