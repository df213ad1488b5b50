"""Reader of a page's sentence from left to right: subject, verb with its prepositions, objects.

One pass over the items; what stands in brackets is read apart. A clause's subject is the name before its verb, or
the passage's topic where a pronoun, "the film" or nothing stands there; what the verb and the words up to a name
say is the predicate. Reading is shallow, so what is far from its verb is left out rather than guessed.
"""

from collections.abc import Sequence
from dataclasses import replace

from engram.wings.facts.core.triples import Triple
from engram.wings.facts.reading import clause_words
from engram.wings.facts.reading.clause import Clause, joins, names_other_work
from engram.wings.facts.reading.objects import cause, mention
from engram.wings.facts.reading.phrases import read_phrase
from engram.wings.facts.reading.sentence_items import Item
from engram.wings.facts.reading.stated_facts import SentenceFacts
from engram.wings.facts.reading.subjects import (
    begins_clause,
    find_apposed_name,
    find_first_verb,
    find_new_subject,
    find_subject,
    opens_apposition,
    relative_clause,
)


def read_sentence(saying: SentenceFacts, items: Sequence[Item]) -> list[Triple]:
    """Return the facts of the items, with a clause's dates as their days."""
    return _SentenceParser(saying, items).read()


class _SentenceParser:
    """State of the reading of one sentence.

    Attributes:
        outer: the clause that an apposition interrupts.
        started: the sentence has had its first subject.
        denied: the verb that comes next is negated, or only possible.
    """

    def __init__(self, saying: SentenceFacts, items: Sequence[Item]) -> None:
        self.saying = saying
        self.items = items
        self.clause = Clause(saying.main if saying.lead else None, 0)
        self.outer: Clause | None = None
        self.started = saying.lead
        self.denied = False

    def read(self) -> list[Triple]:
        """Read all items."""
        at = find_first_verb(self.items) if self.saying.lead else 0
        while at < len(self.items):
            kind = self.items[at].kind
            if kind in ",;khrR":
                at = self._turn(at)
            elif kind in "bxv":
                at = self._verb(at)
            elif kind in "ND#":
                at = mention(self.saying, self.items, at, self.clause)
            elif kind == "n":
                self.denied = True
                if at and self.items[at - 1].kind == "b":  # "is not a painter"
                    self.clause.denied = True
            elif kind != "a":
                self.clause.pass_by(self.items[at])
                at = cause(self.saying, self.items, at, self.clause)
            at += 1
        return self.saying.facts()

    def _turn(self, at: int) -> int:
        """A comma, a pronoun or another word at which a clause may begin or end; where its last item stands."""
        saying, item = self.saying, self.items[at]
        if item.kind == "h":
            self.clause = Clause(saying.resolve_pronoun(item), saying.start_clause())
            saying.main = self.clause.subject
            self.started, self.outer = True, None
        elif item.kind == "r":
            self.clause = relative_clause(saying, self.items, at, self.clause)
        elif item.kind == "R":
            self.clause = Clause(None, saying.start_clause(), relative=True)
        elif item.kind == ",":
            return self._comma(at)
        elif item.kind == ";" or begins_clause(self.items, at + 1):
            self.clause, self.outer = Clause(saying.main, saying.start_clause()), None
        return at

    def _comma(self, at: int) -> int:
        """A comma ends an apposition or a relative clause, and may begin an apposition."""
        saying = self.saying
        if self.outer is not None:
            self.clause, self.outer = self.outer, None
            self.clause.gap = [self.items[at]]
        elif not self.clause.denied and opens_apposition(self.items, at):
            self.outer = self.clause
            self.clause = Clause(
                find_apposed_name(saying, self.items, at, self.clause),
                saying.start_clause(),
                verbs=[""],
                copula=True,
            )
            return read_phrase(saying, self.items, at + 1, self.clause) - 1
        elif self.clause.relative:
            self.clause = Clause(saying.main, saying.start_clause())
        else:
            self.clause.pass_by(self.items[at])
        return at

    def _verb(self, at: int) -> int:
        """A verb begins a predicate, and maybe a clause; where its last item stands."""
        saying, items, item = self.saying, self.items, self.items[at]
        if self.outer is not None and item.kind in "bx":
            self.clause, self.outer = self.outer, None
        participle = item.kind == "v" and _is_participle(items, at)
        self._subject(at, participle=participle)
        clause = self.clause
        if item.kind == "x":
            clause.gap = []
        else:
            self.clause = clause = self._predicate(at)
        if clause.subject is not None and not self.started:
            saying.main, self.started = clause.subject, True
        return read_phrase(saying, items, at + 1, clause) - 1 if item.kind == "b" else at

    def _subject(self, at: int, *, participle: bool) -> None:
        """Settle whom the verb is about."""
        saying, items, clause = self.saying, self.items, self.clause
        if not clause.verbs and not clause.relative and not (saying.lead and clause.number == 0):
            find_subject(saying, clause, started=self.started)
        elif clause.verbs and not participle:
            subject = find_new_subject(saying, items, at, clause)
            if subject is not None:
                self.clause = clause = Clause(subject, saying.start_clause())
        before = items[at - 1].kind if at else "."
        # "content covering", "an agency called": said of the noun; the film "starring" NAME is the subject.
        of_noun = participle and bool(clause.verbs) and before == "w" and not (clause.copula and not clause.spoken)
        another = participle and clause.copula and before == "," and names_other_work(clause.predicates)
        if items[at].word == "including" or of_noun or another:
            clause.subject = None

    def _predicate(self, at: int) -> Clause:
        """The clause from this verb on; "could not be elected" denies both of its verbs."""
        item, clause = self.items[at], self.clause
        has_verb = bool(clause.verbs) and clause.verbs != [""]
        shared = has_verb and item.kind == "v" and not clause.spoken and joins(clause.gap)
        verbs = [*clause.verbs, item.word] if shared else [item.word if item.kind == "v" else ""]
        another = not shared and (has_verb or clause.spoken or bool(clause.gap and clause.copula))
        denied, self.denied = self.denied, False
        return replace(
            clause,
            number=self.saying.start_clause() if another else clause.number,
            denied=denied or (clause.denied and not another),
            head=[] if another else clause.head,
            verbs=verbs,
            copula=item.kind == "b",
            gap=[],
            predicates=(),
            kin=None,
            has_list=False,
            spoken=False,
            direct=False,
        )


def _is_gerund(item: Item) -> bool:
    return item.kind == "v" and item.word.endswith("ing")


def _is_participle(items: Sequence[Item], at: int) -> bool:
    """Whether a verb can follow the noun that it describes: "starring", "directed by"."""
    if _is_gerund(items[at]):
        return True
    passive = items[at].word.endswith("ed") or items[at].word in clause_words.PARTICIPLES
    return passive and at + 1 < len(items) and items[at + 1].kind in "pc,a"
