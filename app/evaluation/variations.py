"""What ``ablation``, ``noise`` and ``time`` compare: parts of learning left out or changed, and judges that err."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from app.evaluation.dataset import Question
from app.evaluation.judges import Judge, Shown
from app.evaluation.metrics import same
from app.services.feedback import Named, Verdict

FIXED_GAIN = 0.1
NO_HUB_LIMIT = 1_000_000
FLIPPED = (0.0, 0.2)


@dataclass(frozen=True, slots=True)
class Variation:
    """One way to learn.

    Attributes:
        name: its arm in reports.
        fixed_gain: every verdict moves a state by this share, whatever its perplexity; None for the Kalman gain.
        frozen: scopes that verdicts leave alone.
        hub_limit: sentences read per entity and hop; None for the configured number.
        flipped: the share of verdicts that say the opposite.
    """

    name: str
    fixed_gain: float | None = None
    frozen: frozenset[str] = frozenset()
    hub_limit: int | None = None
    flipped: float = 0.0


FULL = Variation("full")
ABLATION = (
    FULL,
    Variation("without task memory", frozen=frozenset({"task"})),
    Variation("without time memory", frozen=frozenset({"time"})),
    Variation("without Kalman gain", fixed_gain=FIXED_GAIN),
    Variation("without recall", frozen=frozenset({"recall"})),
    Variation("without hub cap", hub_limit=NO_HUB_LIMIT),
)
TIME = (FULL, Variation("without time memory", frozen=frozenset({"time"})))
NOISE = tuple(
    Variation(f"{name}, {flipped:.0%} flipped", fixed_gain=gain, flipped=flipped)
    for flipped in FLIPPED
    for name, gain in (("Kalman gain", None), (f"fixed gain {FIXED_GAIN}", FIXED_GAIN))
)


class FlippingJudge:
    """Says the opposite of another judge in a share of its verdicts, the same ones whenever it is asked again.

    A flipped verdict rejects what helped and supports what else was shown.
    """

    def __init__(self, judge: Judge, share: float, seed: str) -> None:
        self._judge = judge
        self._share = share
        self._seed = seed

    def verdict(
        self, collection: str, query_id: UUID, question: Question, shown: Sequence[Shown]
    ) -> Verdict | None:
        """The verdict, or None where the other judge has none."""
        verdict = self._judge.verdict(collection, query_id, question, shown)
        honest = random.Random(f"{self._seed}/{question.id}").random() >= self._share  # noqa: S311 - repeatable, not secret
        if verdict is None or honest:
            return verdict
        helped = {named.sentence_id for named in verdict.supporting}
        wrong = [
            Named(s.sentence_id)
            for s in shown
            if s.sentence_id not in helped and not any(same(gold, s.place) for gold in question.gold)
        ]
        return replace(verdict, supporting=wrong, rejected=verdict.supporting)
