"""Checks of a fact that the reading of a clause proposes: types of its subject and object."""

from engram.providers.language.facts.name_types import is_heading_word, is_organisation

_OF_PERSONS = frozenset(
    {
        "position held",
        "place of birth",
        "date of birth",
        "place of death",
        "date of death",
        "cause of death",
        "father",
        "mother",
        "spouse",
        "child",
        "sibling",
        "citizenship",
        "educated at",
        "affiliation",
    }
)
_WITH_PERSONS = frozenset({"father", "mother", "spouse", "child", "sibling"})
_WITH_PLACES = frozenset({"place of birth", "place of death", "based in", "located in"})
_JUDGEMENTS = frozenset(
    """big experienced family-owned famous freelance good great independent keen large leading local long major new
    noted old part-time popular private prominent small then veteran well-known young""".split()
)
"""Modifiers that some would leave out of what somebody or something is."""


def is_confirmed(subject: str, predicate: str, object_text: str) -> bool:
    """Return whether the types of subject and object fit the predicate.

    A person has no word of an organisation in the name, and a place has none either. A subject made of words of
    headings only ("Annual report") is no name.
    """
    if all(is_heading_word(word) for word in subject.split()):
        return False
    if (predicate in _WITH_PLACES and _is_address(object_text)) or (
        predicate == "located in" and _is_address(subject)
    ):
        return False
    if predicate in _OF_PERSONS and is_organisation(subject):
        return False
    if predicate in _WITH_PERSONS | _WITH_PLACES and is_organisation(object_text):
        return False
    return subject.casefold() != object_text.casefold()


def has_clear_type(phrase: str) -> bool:
    """Return whether a phrase such as "logistics company" says what its bearer is, without a judgement in it."""
    *modifiers, _ = phrase.casefold().split()
    return not any(word in _JUDGEMENTS or word.endswith(("ed", "est")) for word in modifiers)


def _is_address(name: str) -> bool:
    last = name.rsplit(maxsplit=1)[-1].casefold()
    return any(letter.isdigit() for letter in name) or last in {"avenue", "lane", "road", "square", "street"}
