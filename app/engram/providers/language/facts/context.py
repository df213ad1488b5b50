"""Meaning of pronouns and short names in a passage, by the sentences before."""

from dataclasses import dataclass, field

from engram.providers.language.facts.name_types import is_organisation
from engram.providers.language.facts.sentence_items import name_words


@dataclass(slots=True)
class Context:
    """Names of a passage so far.

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

    def resolve_pronoun(self, pronoun: str) -> str | None:
        """Whom a pronoun means; "it" and "its" never a person that is known as one."""
        if pronoun in {"he", "she", "his", "her"}:
            if self.subject is not None and pronoun in {"his", "her"}:
                return None if is_organisation(self.subject) else self.subject
            return self.person
        if pronoun in {"it", "its"}:
            subject = self.subject if pronoun == "its" else None
            return subject if subject is not None and is_organisation(subject) else self.organisation
        return None
