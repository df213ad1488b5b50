"""Reader of statements in any text: posts, places, relatives and lives, clause by clause.

A fact is stated only if its clause is read to the end and nothing in it makes it uncertain. What is not
understood is
left out. ``sentence_reader`` reads pages about one topic more freely.
"""

from collections.abc import Sequence

from engram.core.knowledge.triples import Triple
from engram.providers.language.facts.assertion import select_asserted_items
from engram.providers.language.facts.context import Context
from engram.providers.language.facts.noun_phrases import Phrase
from engram.providers.language.facts.roles import read_role, split_titles
from engram.providers.language.facts.sentence_items import Item
from engram.providers.language.facts.sentence_state import LOOK_AHEAD
from engram.providers.language.facts.verb_frames import VerbFrames
from engram.providers.language.facts.verb_groups import VerbGroup

_LATER_CLAUSES = frozenset("before after until till when once while during since".split())
_JOINING = frozenset("as because but so though although where whereas while".split())
"""Words besides "and" behind which another clause of the same rank may begin."""
_ANSWERS = frozenset({"yes", "no", "well"})
_FRONT_PARTICIPLES = frozenset(
    "based born educated established founded headquartered located situated trained".split()
)


def read_statements(text: str, items: Sequence[Item], context: Context, ordinal: int) -> list[Triple]:
    """Return what one sentence states.

    Args:
        text: of the sentence.
        items: the same as items.
        context: names of the sentences before; it takes up those of this one.
        ordinal: place of the sentence in its passage.
    """
    reader = _StatementReader(select_asserted_items(text, split_titles(items)), context, ordinal)
    facts = reader.read()
    context.finish()
    return facts


class _StatementReader(VerbFrames):
    """Reader of a sentence, clause by clause."""

    def read(self) -> list[Triple]:
        """Return the facts of the sentence."""
        at = self._label()
        while at < len(self.items):
            at = max(at + 1, self._clause(at))
        for name, (post, days) in self.posts.items():
            self.state(name, "position held", post, "text", days)
        return self.facts

    def _label(self) -> int:
        """Read "Fire warden: NAME" and pass over "Yes,"; return where the first clause begins."""
        role = read_role(self.items, 0)
        if role is not None and role.kind == "office" and self.get_kind(role.end) == ";":
            name = role.end + 1
            if self.get_word(role.end) == ":" and self.get_kind(name) == "N" and self.get_kind(name + 1) in ".,;(":
                self.posts[self.get_name(name)] = (role.with_organisation(None), (None, None))
                return name + 1
        if self.get_word(0) in _ANSWERS and self.get_kind(1) == ",":
            return 2
        return 0

    def _clause(self, at: int) -> int:
        """Read a clause from its subject on; return where the next one begins."""
        self.opening = None
        at, participle = self._skip_opening(at)
        if self.get_word(at) in _LATER_CLAUSES and self.begins_clause(at + 1):
            return self._past_comma_from(at)
        subject = self.noun_phrase(at, subject=True)
        if subject is None:
            return self._find_next_clause(at)
        if participle is not None and subject.name is not None:
            self._read_front_participle(subject, participle)
        if self.get_kind(subject.end) == "c" and self.get_kind(subject.end + 1) in "Nod":
            second = self.noun_phrase(subject.end + 1, subject=False)  # several subjects
            return self._find_next_clause(max(subject.end + 1, at + 1, second.end if second is not None else 0))
        end = self.predicates(subject, subject.end)
        return self._find_next_clause(max(end, at + 1))

    def _skip_opening(self, at: int) -> tuple[int, int | None]:
        """Pass over "In 1995," and "Born in NAME,"; return the subject's place and that of a participle."""
        start, participle = at, None
        while at < len(self.items) and at < start + 2 * LOOK_AHEAD:
            kind = self.get_kind(at)
            if kind in ",ack" and self.get_word(at) not in _LATER_CLAUSES:
                at += 1
            elif kind == "p" and self.get_kind(at + 1) == "D":
                self.opening = self.items[at + 1]
                at += 2
            elif kind == "D":
                self.opening = self.items[at]
                at += 1
            elif self.get_word(at) in _FRONT_PARTICIPLES and self.get_kind(at + 1) in "pD":
                participle = at
                arguments = self.arguments(at + 1)
                if self.get_kind(arguments.end) != "," or not arguments.members:
                    break
                at = arguments.end + 1
            else:
                break
        return at, participle

    def _read_front_participle(self, subject: Phrase, at: int) -> None:
        """State "Born in NAME," of the subject behind it."""
        group = VerbGroup(self.get_word(at), at + 1, passive=True, perfect=False, past=False, asserted=True)
        arguments = self.arguments(at + 1)
        arguments.complete = self.get_kind(arguments.end) == ","
        self._apply(subject, group, arguments)

    def _past_comma_from(self, at: int) -> int:
        """Return the place after the next comma."""
        while at < len(self.items) and self.get_kind(at) not in ",;":
            at += 1
        return at + 1

    def _find_next_clause(self, at: int) -> int:
        """Read the appositions of names up to the end of the clause; return where the next one begins."""
        while at < len(self.items):
            kind, word = self.get_kind(at), self.get_word(at)
            if kind == ";" or word == "that":
                return at + 1
            if word in _LATER_CLAUSES and (self.begins_clause(at + 1) or self.get_word(at + 1).endswith("ing")):
                at = self._past_comma_from(at)
                continue
            if (kind in "ck," or word in _JOINING) and self.begins_clause(at + 1):
                return at + 1
            phrase = self.noun_phrase(at, subject=False) if kind in "Ndo" or self._begins_role(at) else None
            at = max(at + 1, phrase.end) if phrase is not None else at + 1
        return at

    def _begins_role(self, at: int) -> bool:
        return self.get_kind(at) in "wv" and read_role(self.items, at) is not None
