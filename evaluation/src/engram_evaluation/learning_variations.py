"""Variations of ``levels``, ``noise`` and ``hostile``: learning with parts left out, and judges that err."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any
from uuid import UUID

from engram.core.learning.logged_verdict import Expansion
from engram.core.ranking.profiles import Profile
from engram.services.auth.scope import Scope
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.wings.published.core.paper_profile import PAPER
from engram_evaluation.dataset import Question
from engram_evaluation.retrieval_metrics import is_match
from engram_evaluation.verdict_givers import Judge, ShownSentence

FIXED_GAIN = 0.1
LAST_GAIN = 0.999
"""Believes only the last verdict, but for a rest that keeps the filter's noise above 0."""
FIXED_GAINS = (0.05, FIXED_GAIN, 0.3)
FLIP_RATES = (0.0, 0.2)


@dataclass(frozen=True, slots=True)
class Variation:
    """One way to learn.

    Attributes:
        name: its arm in reports.
        fixed_gain: every verdict moves a state by this share, whatever its perplexity; None for the Kalman gain.
        frozen: scopes that verdicts leave alone.
        flipped: the share of verdicts that say the opposite.
        ungated: what is learned counts in full, however uncertain it is.
        ungated_keys: a verdict's expansions are credited whether or not they were validated.
        attacked: after the last turn comes a hostile judge, who says the opposite of all (``oppose``).
        uncapped: no cap holds a judge back.
        sybils: so many hostile judges of new names contradict each judged question, in place of the one.
        trusted: these names count in full, as if each were trusted.
        expanded: verdicts bring the data set's expansions, and passage keys evolve after each turn.
        ungated_tuning: a tuned question encoder serves whatever held-out verdicts say.
    """

    name: str
    fixed_gain: float | None = None
    frozen: frozenset[str] = frozenset()
    flipped: float = 0.0
    ungated: bool = False
    ungated_keys: bool = False
    attacked: bool = False
    uncapped: bool = False
    sybils: int = 0
    trusted: bool = False
    expanded: bool = False
    ungated_tuning: bool = False

    def parameters(self) -> dict[str, Any]:
        """Every field as plain JSON, the same in every process (a set's order is not)."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values | {"frozen": sorted(self.frozen)}


FULL = Variation("full")
UNGATED_TUNING = Variation("tuned, gate off", ungated_tuning=True)
LEVELS = {"question memory": frozenset({"recall"}), "sentence memories": frozenset({"task", "time"})}
"""Level -> the scopes that verdicts teach of it, but for passage keys, which verdicts with expansions teach."""
PASSAGE_KEYS = "passage keys"
RULES = (
    Variation("Kalman gain"),
    *(Variation(f"fixed gain {gain}", fixed_gain=gain) for gain in FIXED_GAINS),
    Variation("no perplexity gating", ungated=True),
)


def format_noisy_arm(rule: str, flipped: float) -> str:
    """The arm of a rule under a share of flipped verdicts."""
    return f"{rule}, {flipped:.0%} flipped"


NOISE = tuple(
    replace(rule, name=format_noisy_arm(rule.name, flipped), flipped=flipped)
    for flipped in FLIP_RATES
    for rule in RULES
)
HUMAN = (
    Variation("noise per rating"),
    Variation("noise per rating, without caps", uncapped=True),
    Variation(f"fixed gain {FIXED_GAIN}", fixed_gain=FIXED_GAIN),
    Variation("last rating", fixed_gain=LAST_GAIN, uncapped=True),
)
"""What ``human`` compares; a cap would keep the last from being believed."""
ATTACKS = 500
"""Verdicts of the hostile judge."""
SYBILS = 200
"""Names that one attacker judges each question under."""
HOSTILE = (
    Variation("with caps", attacked=True),
    Variation("without caps", attacked=True, uncapped=True),
    Variation(f"{SYBILS} new judges", attacked=True, sybils=SYBILS),
    Variation(f"{SYBILS} trusted judges", attacked=True, sybils=SYBILS, trusted=True),
    Variation(f"{SYBILS} judges without caps", attacked=True, sybils=SYBILS, trusted=True, uncapped=True),
)
COMPARED_VARIATIONS = {"noise": NOISE, "hostile": HOSTILE}
"""Protocol -> the ways to learn that it compares, whatever the data set."""


def list_variations(protocol: str, profile: Profile, *, has_expansions: bool) -> tuple[Variation, ...]:
    """List the ways to learn that a protocol compares; only ``FULL`` where it compares none.

    Args:
        profile: whose levels ``levels`` compares.
        has_expansions: whether the data set has expansions, which teach passage keys.
    """
    if protocol != "levels":
        return COMPARED_VARIATIONS.get(protocol, (FULL,))
    is_read = {
        "question memory": profile.recalls,
        "sentence memories": profile.name == PAPER.name,
        PASSAGE_KEYS: profile.policy.evolved_keys and has_expansions,
    }
    levels = [level for level, read in is_read.items() if read]
    learning = {"all levels": frozenset(levels)}
    learning |= {f"without {level}": frozenset(levels) - {level} for level in levels}
    learning |= {f"{level} alone": frozenset({level}) for level in levels}
    variations: dict[frozenset[str], Variation] = {}
    for name, taught in learning.items():
        frozen = frozenset[str]().union(*(LEVELS.get(level, ()) for level in levels if level not in taught))
        # Of two levels, one left out is the other alone.
        variations.setdefault(taught, Variation(name, frozen=frozen, expanded=PASSAGE_KEYS in taught))
    return tuple(variations.values())


def flip_verdicts(judge: Judge, share: float, seed: str) -> Judge:
    """A judge who says the opposite of another in a share of the verdicts, the same ones whenever asked again.

    A flipped verdict rejects what helped and supports what else was shown.
    """

    def flip(verdict: Verdict, question: Question, sentences: Sequence[ShownSentence]) -> Verdict:
        if random.Random(f"{seed}/{question.id}").random() >= share:  # noqa: S311 - repeatable, not secret
            return verdict
        if verdict.supporting_passages:
            return _invert_verdict(verdict, sentences)
        helped = {named.sentence_id for named in verdict.supporting}
        wrong = [
            NamedSentence(s.sentence_id)
            for s in sentences
            if s.selected
            and s.sentence_id not in helped
            and not any(is_match(gold, s.place) for gold in question.gold)
        ]
        return replace(verdict, supporting=wrong, rejected=verdict.supporting)

    return _change_verdicts(judge, flip)


def _invert_verdict(verdict: Verdict, sentences: Sequence[ShownSentence]) -> Verdict:
    """Invert a verdict by passages: the shown ones are rejected, the other selected sentences supported."""
    helped = set(verdict.supporting_passages)
    wrong = {s.passage_id for s in sentences if s.selected and s.passage_id not in helped}
    rejected = [NamedSentence(s.sentence_id) for s in sentences if s.passage_id in helped]
    return replace(verdict, supporting_passages=sorted(wrong), rejected=rejected)


def add_expansions(judge: Judge, expansions: Mapping[str, Sequence[Expansion]]) -> Judge:
    """A judge who says what another says, and adds the expansions that the data set has of the question."""
    return _change_verdicts(
        judge, lambda verdict, question, _: replace(verdict, expansions=tuple(expansions.get(question.id, ())))
    )


def oppose(judge: Judge) -> Judge:
    """A judge who says the opposite of another, always, under a name of its own."""
    opposite = flip_verdicts(judge, 1.0, "")
    return _change_verdicts(opposite, lambda verdict, *_: replace(verdict, judge="hostile"))


def _change_verdicts(
    judge: Judge, change: Callable[[Verdict, Question, Sequence[ShownSentence]], Verdict]
) -> Judge:
    """A judge whose verdicts are another's after a change."""

    def give(
        scope: Scope, query_id: UUID, question: Question, sentences: Sequence[ShownSentence]
    ) -> Verdict | None:
        verdict = judge(scope, query_id, question, sentences)
        return None if verdict is None else change(verdict, question, sentences)

    return give
