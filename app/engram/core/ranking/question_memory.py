"""Experience recall: what supported nearby past questions is a prior for this one.

The look-up is gated. Without the gate, verdicts on one question pull the passages of every other question along:
recall@5 of unrelated questions falls by a third.
"""

from collections.abc import Iterable, Mapping

# Width of the ramp from "not heard" to "the same question", in cosine.
RAMP = 0.2
# How much nearer a past question must be whose evidence names none of this question's entities: two questions of
# one mould about different things are near as vectors, and share nothing that helps.
STRANGER_MARGIN = 0.1
# What recall has to give out to one question, in fully supported sentences. Evidence is a few sentences; a verdict
# that supports much more is rather a lenient judge than a question with so much evidence.
BUDGET = 2.0


def nearness(similarity: float, gate: float, *, shares_entity: bool) -> float:
    """Weigh a past question for this one: 0 at the gate, 1 from ``RAMP`` above it, linear between.

    Args:
        similarity: cosine of the two questions.
        gate: in [0, 1), for a past question whose evidence names an entity of this one.
        shares_entity: whether it does.

    Raises:
        ValueError: the gate is out of its range.
    """
    if not 0 <= gate < 1:
        raise ValueError("the gate must lie in [0, 1)")
    start = min(gate if shares_entity else gate + STRANGER_MARGIN, 1.0 - 1e-6)
    full = min(start + RAMP, 1.0)
    return min(1.0, max(0.0, (similarity - start) / (full - start)))


def recall_priors(supports: Iterable[tuple[int, float, float]]) -> dict[int, float]:
    """Sentence -> prior in [0, 1]: its surest support, weighted by how near that past question is.

    The maximum, not the sum, so that many middling neighbours do not outweigh the question itself.

    Args:
        supports: (sentence, nearness of the past question, support in [0, 1]).
    """
    priors: dict[int, float] = {}
    for sentence, near, support in supports:
        if near * support > priors.get(sentence, 0.0):
            priors[sentence] = near * support
    return priors


def net_support(support: float, perplexity: float) -> float:
    """A support less what rejections say against it, in [0, 1].

    A rejection moves a support towards 0, which is also where nobody has judged yet. Counted as -1 instead, the
    same verdicts give s = (1 - π)(2 · mean - 1) in place of (1 - π) · mean: the same where all supported, and
    nothing where as many rejected, so that one wrong verdict among several recalls nothing.
    """
    return min(1.0, max(0.0, 2.0 * support - (1.0 - perplexity)))


def lifts(priors: Mapping[int, float]) -> dict[int, float]:
    """Sentence -> what recall adds to its passage, in [0, 1]: its prior, thinned where many share ``BUDGET``."""
    share = BUDGET / max(sum(priors.values()), BUDGET)
    return {sentence: share * prior for sentence, prior in priors.items()}


def compute_ungated_support(support: float, perplexity: float) -> float:
    """A support as if it were certain: the share of verdicts that supported, whatever their number.

    A support starts at 0 with perplexity 1, and each verdict y moves it by the gain, s' = (1 - K) s + K y, which
    shrinks the perplexity by 1 - K as well. So s = (1 - π) · (the mean verdict), but for the process noise: the
    certainty 1 - π is its gate, taken off here for ablations.
    """
    return min(1.0, support / (1.0 - perplexity)) if perplexity < 1 else support
