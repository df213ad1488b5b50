"""State of the reading of one sentence: its items, its facts so far, and the posts of the names in it."""

from engram.core.knowledge.triples import Kind, Triple
from engram.providers.language.facts.confirmation import has_clear_type, is_confirmed
from engram.providers.language.facts.context import Context
from engram.providers.language.facts.name_types import is_organisation
from engram.providers.language.facts.roles import Role
from engram.providers.language.facts.sentence_items import Item
from engram.providers.language.facts.verb_arguments import TIMELESS, Days

CONFIDENCE = 0.85
LOOK_AHEAD = 8
"""Most items that are looked at ahead of a place."""


class SentenceState:
    """State of the reading of one sentence.

    Attributes:
        items: of the sentence, names split from titles.
        context: names of the sentences before.
        facts: stated so far.
        posts: post of a name by an apposition or a title, until a verb gives it days.
        employers: organisation of that post.
        last_post: post that the last verb named ("stepped down as chairman and was succeeded by").
        opening: date in front of the clause's subject.
    """

    def __init__(self, items: list[Item], context: Context, ordinal: int) -> None:
        self.items = items
        self.context = context
        self.facts: list[Triple] = []
        self.posts: dict[str, tuple[str, Days]] = {}
        self.employers: dict[str, str] = {}
        self.last_post: str | None = None
        self.opening: Item | None = None
        self._ordinal = ordinal

    def state(
        self, subject: str | None, predicate: str, object_text: str, kind: Kind, days: Days = TIMELESS
    ) -> None:
        """Add a fact if its types fit and its days are in order."""
        start, end = days
        ordered = start is None or end is None or start < end
        if subject is not None and ordered and is_confirmed(subject, predicate, object_text):
            self.facts.append(Triple(subject, predicate, object_text, self._ordinal, kind, *days, CONFIDENCE))

    def state_type(self, subject: str | None, role: Role) -> None:
        """Add what a role says without a post: a profession or a kind of organisation, and a nationality."""
        if role.kind == "person" and subject is not None and is_organisation(subject):
            return
        if role.nation is not None:
            nation = "country of origin" if role.kind == "organisation" else "citizenship"
            self.state(subject, nation, role.nation.text, "entity")
        if has_clear_type(role.text):
            self.state(subject, "is a", role.text, "text")
        if role.noun == "subsidiary" and role.organisation is not None:
            self.state(subject, "subsidiary of", role.organisation, "entity")

    def get_name(self, at: int) -> str:
        """Return the name at a place, a short form completed."""
        return self.context.resolve(self.items[at].text)

    def get_kind(self, at: int) -> str:
        """Return the kind of the item at a place; a full stop behind the last."""
        return self.items[at].kind if at < len(self.items) else "."

    def get_word(self, at: int) -> str:
        """Return the word at a place; empty behind the last."""
        return self.items[at].word if at < len(self.items) else ""
