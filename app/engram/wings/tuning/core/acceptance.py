"""Whether a tuned question encoder is used: held-out verdicts decide.

The judged questions are divided into folds. Each fold's questions are ranked by an adapter that is learned from the
other folds, and by the encoder as it is; the difference of nDCG@10 is a question's gain. A held-out question that
shares a supported passage with none of the other folds counts as one of ``others``, and as ``sharing`` else.
Questions that share evidence, directly or by way of others, form a need. Most needs stay in one fold; of those with
several questions every second one is divided, so that both groups are measured by the same trainings.

The vote of judged questions (``neighbour_vote``) shall find no less with an adapter, so it is repeated by cosine
alone: a held-out question is left out, and its nearest questions vote for their passages. Does most weight fall on
its evidence? The difference between tuned and base vectors is a question's ``recall``.

Gains of one need are not independent, so standard errors are those of needs (cluster-robust, Liang and Zeger,
1986). A judge's weight is capped, in learning too, and the gain must be there without any one judge: a judge who is
wrong in a way that can be learned gains on his own held-out questions.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking.neighbour_vote import NEIGHBOURS, VOTE_WIDTH
from engram.wings.tuning.core.bert_gradients import BertWeights, Ids, Matrix
from engram.wings.tuning.core.learn_adapter import (
    DEFAULT_OPTIONS,
    Adapter,
    PreparedQuestions,
    TuningOptions,
    TuningSamples,
    learn_prepared,
    prepare_questions,
)

Floats = NDArray[np.float64]
DEPTH = 10
"""Places that nDCG counts."""
FIRST_PLACES = 5
"""Places whose overlap is measured on questions that nobody judged."""
_RANKED_AT_ONCE = 128
"""Questions that are compared with all passages at once: bounds memory."""


@dataclass(frozen=True)
class AcceptanceRule:
    """The conditions for using an adapter.

    Attributes:
        folds: parts that the judged questions are divided into.
        least_needs: needs whose gain is measured, at the least.
        z: the mean gain of ``others`` is so many standard errors above 0 at least: a one-sided level of 2.3% for 2.
        most_loss: ``sharing`` and ``recall`` lose no more than this, after ``loss_z`` standard errors are added.
        loss_z: see ``most_loss``.
        least_overlap: mean share of the first five passages that unjudged questions keep, at the least.
        without_each_judge: whether the gain must be there without any one judge.
        judge_share: most of all weight that one judge's verdicts have, if there are several judges.
    """

    folds: int = 3
    least_needs: int = 20
    z: float = 2.0
    most_loss: float = 0.005
    loss_z: float = 1.0
    least_overlap: float = 0.4
    without_each_judge: bool = True
    judge_share: float = 0.25


DEFAULT_RULE = AcceptanceRule()


@dataclass(frozen=True)
class Gain:
    """Mean gain of a group of held-out questions: tuned minus base.

    Attributes:
        mean: over the questions.
        error: its standard error, over needs; infinite for fewer than two needs.
        questions: how many.
        needs: how many needs they belong to.
    """

    mean: float
    error: float
    questions: int
    needs: int

    @property
    def z(self) -> float:
        """The mean in standard errors; 0 where nothing changes."""
        return self.mean / self.error if self.error > 0 else 0.0

    def __str__(self) -> str:
        return f"{_signed(self.mean)} ± {_plain(self.error)}"


@dataclass(frozen=True)
class Acceptance:
    """The result of trying an adapter on held-out verdicts.

    Attributes:
        accepted: whether the adapter is used.
        reason: one line for people.
        all: gain of all held-out questions in nDCG@10.
        others: the same of those that share no passage with the questions learned from.
        sharing: the same of those that share one.
        recall: gain in the share of questions whose evidence their neighbours vote for, of those that share
            evidence with another question.
        overlap: mean share of the first five passages that unjudged questions keep; None without such questions.
    """

    accepted: bool
    reason: str
    all: Gain
    others: Gain
    sharing: Gain
    recall: Gain
    overlap: float | None


@dataclass(frozen=True)
class Trial:
    """An adapter learned from all samples, and whether it is used."""

    adapter: Adapter
    acceptance: Acceptance


def try_tuning(
    weights: BertWeights,
    samples: TuningSamples,
    probes: Sequence[Ids],
    options: TuningOptions = DEFAULT_OPTIONS,
    rule: AcceptanceRule = DEFAULT_RULE,
    seed: int = 0,
    check: Callable[[], None] = lambda: None,
) -> Trial:
    """Learn an adapter from all samples, and one without each fold, and decide. A pure function of its input.

    Args:
        probes: token ids of stored questions that nobody judged.
        check: called before each step of learning. It may raise to stop, or wait.
    """
    samples = _sort_and_cap(samples, rule)
    prepared = prepare_questions(weights, samples.questions, options)
    folds, needs = divide_samples(samples.supported, rule.folds, seed)
    everything = np.arange(len(folds))
    gains, recalls = np.zeros(len(folds)), np.full(len(folds), np.nan)
    shares = np.zeros(len(folds), dtype=bool)
    for fold in range(rule.folds):
        held, rest = np.flatnonzero(folds == fold), np.flatnonzero(folds != fold)
        if len(held) == 0 or len(rest) == 0:
            continue
        learned = learn_prepared(weights, samples, prepared, options, seed, check, rest.tolist())
        gains[held], recalls[held] = _compare(
            prepared, samples, prepared.embed(weights, everything, learned.widen()), held
        )
        seen = {passage for row in rest.tolist() for passage in samples.supported[row]}
        shares[held] = [not seen.isdisjoint(samples.supported[row]) for row in held.tolist()]
    adapter = learn_prepared(weights, samples, prepared, options, seed, check)
    overlap = _measure_overlap(weights, probes, adapter, samples.passages, options)
    return Trial(adapter, decide(gains, recalls, shares, needs, samples.weights, samples.judges, overlap, rule))


def try_adapter(
    weights: BertWeights,
    samples: TuningSamples,
    probes: Sequence[Ids],
    adapter: Adapter,
    known: Set[str],
    options: TuningOptions = DEFAULT_OPTIONS,
    rule: AcceptanceRule = DEFAULT_RULE,
) -> Trial:
    """Decide on an adapter that another collection's verdicts taught: all samples are held out.

    Args:
        probes: see ``try_tuning``.
        known: keys of the samples whose question or evidence the other collection has as well. They may be among
            those that the adapter was learned from, so their needs do not count as ``others``.
    """
    samples = _sort_and_cap(samples, rule)
    prepared = prepare_questions(weights, samples.questions, options)
    everything = np.arange(len(samples.keys))
    gains, recalls = _compare(prepared, samples, prepared.embed(weights, everything, adapter.widen()), everything)
    needs = find_needs(samples.supported)
    shares = np.isin(needs, needs[[key in known for key in samples.keys]])
    overlap = _measure_overlap(weights, probes, adapter, samples.passages, options)
    return Trial(adapter, decide(gains, recalls, shares, needs, samples.weights, samples.judges, overlap, rule))


def _sort_and_cap(samples: TuningSamples, rule: AcceptanceRule) -> TuningSamples:
    """The samples in the order of their keys, with the weight of each judge capped."""
    samples = samples.sort()
    return replace(samples, weights=cap_judges(samples.weights, samples.judges, rule.judge_share))


def _compare(
    prepared: PreparedQuestions, samples: TuningSamples, tuned: Matrix, rows: Ids
) -> tuple[Floats, Floats]:
    """Gains of questions ``rows`` in nDCG@10 and in recalled evidence, (r,), by tuned vectors (n, d) of all."""
    relevant = [samples.supported[row] for row in rows.tolist()]
    (quality, recall), (base_quality, base_recall) = (
        (rank_quality(vectors[rows], samples.passages, relevant), recall_evidence(vectors, samples.supported, rows))
        for vectors in (tuned, prepared.base)
    )
    return quality - base_quality, recall - base_recall


def divide_samples(supported: Sequence[Sequence[int]], folds: int, seed: int) -> tuple[Ids, Ids]:
    """Fold and need of each question, both (n,).

    A need is a connected component of questions that share passages. The largest are placed first, each in the fold
    with the fewest questions. Every second need with several questions is divided between folds.
    """
    needs = find_needs(supported)
    random = np.random.Generator(np.random.PCG64([seed, 2]))
    members: dict[int, list[int]] = {}
    for row in random.permutation(len(needs)):
        members.setdefault(int(needs[row]), []).append(int(row))
    chosen = np.zeros(len(needs), dtype=np.int64)
    sizes = [0] * folds
    for place, rows in enumerate(sorted(members.values(), key=len, reverse=True)):
        parts = [[row] for row in rows] if place % 2 == 0 and len(rows) > 1 else [rows]
        smallest = sizes.index(min(sizes))
        for number, part in enumerate(parts):
            fold = (smallest + number) % folds
            chosen[part] = fold
            sizes[fold] += len(part)
    return chosen, needs


def find_needs(supported: Sequence[Sequence[int]]) -> Ids:
    """Number of the connected component of each question; two questions with a common passage are connected."""
    parent = list(range(len(supported)))

    def root(row: int) -> int:
        while parent[row] != row:
            parent[row] = parent[parent[row]]
            row = parent[row]
        return row

    first: dict[int, int] = {}
    for row, passages in enumerate(supported):
        for passage in passages:
            one, two = sorted((root(row), root(first.setdefault(passage, row))))
            parent[two] = one
    return np.array([root(row) for row in range(len(supported))], dtype=np.int64)


def rank_quality(vectors: Matrix, passages: Matrix, relevant: Sequence[Sequence[int]]) -> Floats:
    """nDCG@10 of each question, (n,), with binary relevance (Järvelin and Kekäläinen, 2002)."""
    discounts = 1 / np.log2(np.arange(DEPTH) + 2)
    quality = np.zeros(len(vectors))
    for row, (top, wanted) in enumerate(zip(rank_first(vectors, passages, DEPTH), relevant, strict=True)):
        hits = np.isin(top, wanted)
        quality[row] = discounts[: len(top)][hits].sum() / discounts[: min(DEPTH, len(wanted))].sum()
    return quality


def rank_first(vectors: Matrix, passages: Matrix, depth: int) -> Ids:
    """Rows of the nearest passages of each question, the nearest first, (n, depth)."""
    depth = min(depth, len(passages))
    ranked = np.zeros((len(vectors), depth), dtype=np.int64)
    for start in range(0, len(vectors), _RANKED_AT_ONCE):
        rows = slice(start, start + _RANKED_AT_ONCE)
        cosines = vectors[rows] @ passages.T
        first = np.sort(np.argpartition(-cosines, depth - 1, axis=1)[:, :depth], axis=1)
        order = np.argsort(-np.take_along_axis(cosines, first, axis=1), axis=1, kind="stable")
        ranked[rows] = np.take_along_axis(first, order, axis=1)
    return ranked


def recall_evidence(vectors: Matrix, supported: Sequence[Sequence[int]], rows: Ids) -> Floats:
    """Whether the nearest other questions vote for evidence of a question, (r,), for questions ``rows`` of (n, d).

    1 if the passage with most weight is evidence, 0 if not, NaN if no other question shares evidence with it. The
    weight of a vote is that of ``neighbour_vote``, without contrasts; standard units are those of the question's
    cosines.
    """
    counts = Counter(passage for passages in supported for passage in set(passages))
    recalled = np.full(len(rows), np.nan)
    for place, row in enumerate(rows.tolist()):
        evidence = set(supported[row])
        if all(counts[passage] == 1 for passage in evidence):
            continue
        cosines = vectors @ vectors[row]
        cosines[row] = -np.inf
        nearest = np.argsort(-cosines, kind="stable")[: min(NEIGHBOURS, len(vectors) - 1)]
        unit = max(float(np.delete(cosines, row).std()), 1e-6)
        votes: defaultdict[int, float] = defaultdict(float)
        for neighbour in nearest.tolist():
            for passage in supported[neighbour]:
                votes[passage] += float(np.exp((cosines[neighbour] - cosines[nearest[0]]) / unit / VOTE_WIDTH))
        recalled[place] = max(votes, key=lambda passage: (votes[passage], -passage)) in evidence
    return recalled


def _measure_overlap(
    weights: BertWeights, probes: Sequence[Ids], adapter: Adapter, passages: Matrix, options: TuningOptions
) -> float | None:
    """Mean share of the first five passages that questions keep with an adapter; None without questions."""
    if not probes:
        return None
    prepared = prepare_questions(weights, probes, options)
    tuned = prepared.embed(weights, np.arange(len(probes)), adapter.widen())
    before, after = (rank_first(vectors, passages, FIRST_PLACES) for vectors in (prepared.base, tuned))
    return float(np.mean([np.isin(one, two).mean() for one, two in zip(before, after, strict=True)]))


def cap_judges(weights: Floats, judges: Sequence[str] | None, share: float) -> Floats:
    """Weights of questions, (n,), of which no judge's sum is above ``share`` of all, or above an equal part."""
    if judges is None:
        return weights
    names = sorted(set(judges))
    owner = np.array([names.index(judge) for judge in judges])
    sums = np.bincount(owner, weights, len(names))
    limit = max(share, 1 / len(names))
    capped = sums.copy()
    while (above := capped > limit * capped.sum() * (1 + 1e-9)).any() and not above.all():
        rest = capped[~above].sum()
        allowed = limit * rest / max(1 - limit * above.sum(), 1e-9) if limit * above.sum() < 1 else rest
        capped[above] = np.minimum(capped[above], allowed)
        if allowed >= sums[above].max():
            break
    result: Floats = weights * (capped / sums)[owner]
    return result


def measure_gain(gains: Floats, needs: Ids, counts: Floats) -> Gain:
    """Weighted mean of gains (n,), with its standard error over needs."""
    if len(gains) == 0:
        return Gain(0.0, np.inf, 0, 0)
    share = counts / counts.sum()
    mean = float(share @ gains)
    _, place = np.unique(needs, return_inverse=True)
    number = int(place.max()) + 1
    if number < 2:
        return Gain(mean, np.inf, len(gains), number)
    sums = np.bincount(place, share * (gains - mean))
    return Gain(mean, float(np.sqrt(number / (number - 1) * (sums @ sums))), len(gains), number)


def decide(
    gains: Floats,
    recalls: Floats,
    shares: NDArray[np.bool_],
    needs: Ids,
    counts: Floats,
    judges: Sequence[str] | None,
    overlap: float | None,
    rule: AcceptanceRule,
) -> Acceptance:
    """Decide by held-out gains, (n,).

    Args:
        recalls: gains in recalled evidence, (n,); NaN of questions that share no evidence with another.
        shares: whether a question shares a passage with those that were learned from, (n,).
        needs: (n,), as ``find_needs`` numbers them.
        counts: (n,), weights of the questions.
        judges: of each question; None: not known.
        overlap: mean share of the first five passages that unjudged questions keep; None: not measured.
    """

    def measure(values: Floats, which: NDArray[np.bool_]) -> Gain:
        return measure_gain(values[which], needs[which], counts[which])

    others, sharing = measure(gains, ~shares), measure(gains, shares)
    recall = measure(recalls, ~np.isnan(recalls))
    refusal = _find_refusal(others, sharing, recall, overlap, rule)
    asked = judges if rule.without_each_judge else None
    if refusal is None and asked is not None and not _gain_without_each(gains, ~shares, counts, asked):
        refusal = "not used: held-out questions gain by one judge's verdicts alone"
    reason = refusal or f"used: held-out questions {others}"
    everything = measure(gains, np.ones(len(gains), dtype=bool))
    return Acceptance(refusal is None, reason, everything, others, sharing, recall, overlap)


def _find_refusal(
    others: Gain, sharing: Gain, recall: Gain, overlap: float | None, rule: AcceptanceRule
) -> str | None:
    """Why an adapter is not used, or None."""
    if others.needs < rule.least_needs:
        return f"not used: held-out verdicts on {others.needs} needs, of {rule.least_needs} at least"
    if others.z < rule.z:
        return f"not used: held-out questions {others}"
    for what, gain in (
        ("held-out questions that share evidence", sharing),
        ("evidence recalled by neighbouring questions", recall),
    ):
        if gain.needs > 1 and gain.mean + rule.loss_z * gain.error < -rule.most_loss:
            return f"not used: {what} {gain}"
    if overlap is not None and overlap < rule.least_overlap:
        return f"not used: unjudged questions keep {overlap:.0%} of their first five passages"
    return None


def _gain_without_each(gains: Floats, others: NDArray[np.bool_], counts: Floats, judges: Sequence[str]) -> bool:
    """Whether the mean gain of ``others`` is above 0 without any one judge; True if there is one judge alone."""
    names, owner = np.unique(np.array(judges), return_inverse=True)
    if len(names) < 2:
        return True
    sums = np.bincount(owner, counts * gains * others, len(names))
    return bool((sums.sum() - sums > 0).all())


def _signed(value: float) -> str:
    return f"{value:+.3f}".replace("0.", ".", 1)


def _plain(value: float) -> str:
    return "unknown" if np.isinf(value) else f"{value:.3f}".replace("0.", ".", 1)
