"""Metrics of one answered question, and means over many.

Ranking metrics come from ir_measures (trec_eval's definitions). A ranking is given to it as descending ranks,
so that its own tie-breaking never reorders what was answered.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from engram_evaluation.dataset import GoldSentence, Question

DEPTH = 10
SHOWN_PASSAGES = 5
RANKING = ("recall@2", "recall@5", "all@5", "recall@10", "ndcg@10", "mrr")
"""What main tables show of a ranking."""
COSTS = ("support", "hops", "shown", "llm_calls", "ms")


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """One question, asked once.

    Attributes:
        ranking: passage ids, best first.
        selected_sentences: the sentences selected in any hop, which is what a judge sees.
        llm_calls: requests to a language model while retrieving.
        ms: wall-clock time of the query.
    """

    question: Question
    ranking: Sequence[str]
    selected_sentences: Sequence[GoldSentence] | None = None
    hops: int | None = None
    llm_calls: int = 0
    ms: float = 0.0


@dataclass(frozen=True, slots=True)
class QuestionScores:
    """An observation in numbers: what a report keeps of each question; ``details``: what is worth reading of it."""

    id: str
    type: str
    ranking: tuple[str, ...]
    values: dict[str, float] = field(default_factory=dict)
    details: dict[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON."""
        extra = {"said": self.details} if self.details else {}
        return {"id": self.id, "type": self.type, "ranking": list(self.ranking), "values": self.values, **extra}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> "QuestionScores":
        """The inverse of ``as_json``."""
        return cls(row["id"], row["type"], tuple(row["ranking"]), dict(row["values"]), dict(row.get("said", {})))


def score(observations: Sequence[QuestionResult]) -> list[QuestionScores]:
    """Every metric of every observation, in the order given. Question ids must differ.

    Of a question without a relevant passage nothing is known of its ranking, so none of ``RANKING`` is there.
    """
    ranking = _compute_ranking_metrics(observations)
    return [
        QuestionScores(
            seen.question.id,
            seen.question.type,
            tuple(seen.ranking[:DEPTH]),
            ranking[seen.question.id] | _score_all_found(seen) | _score_grades(seen) | costs(seen),
        )
        for seen in observations
    ]


def summary(rows: Iterable[QuestionScores]) -> dict[str, float]:
    """Means over questions, the median of ``ms``; of a metric that some questions lack, over those that have it."""
    columns: dict[str, list[float]] = {}
    for row in rows:
        for name, value in row.values.items():
            columns.setdefault(name, []).append(value)
    return {
        name: statistics.median(values) if name == "ms" else statistics.fmean(values)
        for name, values in columns.items()
    }


def compute_graded_ndcg(ranking: Sequence[str], gains: Mapping[str, float], depth: int = DEPTH) -> float:
    """Normalised discounted cumulative gain of graded labels (Järvelin & Kekäläinen, 2002), in [0, 1].

    Args:
        ranking: passage ids, best first.
        gains: of each labelled passage, at least 0, counted as they are; of all others it is 0.

    Raises:
        ValueError: no gain is above 0, so no order is better than another.
    """
    best = _sum_discounted(sorted(gains.values(), reverse=True)[:depth])
    if best <= 0:
        raise ValueError("a gain must be above 0")
    return _sum_discounted([gains.get(passage, 0.0) for passage in ranking[:depth]]) / best


def _sum_discounted(gains: Sequence[float]) -> float:
    return sum(gain / math.log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def compute_supporting_recall(gold: Sequence[GoldSentence], returned: Sequence[GoldSentence]) -> float:
    """The share of ``gold`` that is among ``returned``."""
    return sum(any(is_match(wanted, seen) for seen in returned) for wanted in gold) / len(gold)


def is_match(gold: GoldSentence, returned: GoldSentence) -> bool:
    """Whether a sentence is the gold sentence; another splitter may have cut it wider or narrower."""
    wanted, text = _fold_text(gold.text), _fold_text(returned.text)
    return gold.passage_id == returned.passage_id and bool(wanted and text) and (wanted in text or text in wanted)


def costs(result: QuestionResult) -> dict[str, float]:
    """Return the measures of an observation other than its ranking, see ``COSTS``."""
    values = {"llm_calls": float(result.llm_calls), "ms": result.ms}
    if result.hops is not None:
        values["hops"] = float(result.hops)
    if result.selected_sentences is not None:
        values["shown"] = float(len(result.selected_sentences))
        if result.question.gold:
            values["support"] = compute_supporting_recall(result.question.gold, result.selected_sentences)
    return values


def _score_all_found(result: QuestionResult) -> dict[str, float]:
    """1 if all relevant passages, or five of them, are the first, else 0: half of an argument is none."""
    if not result.question.relevant:
        return {}
    hit_count = len(result.question.relevant & set(result.ranking[:SHOWN_PASSAGES]))
    return {"all@5": float(hit_count == min(len(result.question.relevant), SHOWN_PASSAGES))}


def _score_grades(result: QuestionResult) -> dict[str, float]:
    """nDCG@10 by grades, where a passage gains its grade above 1; nothing where no passage has a higher one."""
    gains = {passage: grade - 1.0 for passage, grade in result.question.grades.items()}
    return {"graded": compute_graded_ndcg(result.ranking, gains)} if any(gains.values()) else {}


def _compute_ranking_metrics(observations: Sequence[QuestionResult]) -> dict[str, dict[str, float]]:
    import ir_measures
    from ir_measures import RR, R, nDCG

    measures = {
        R @ 2: "recall@2",
        R @ 5: "recall@5",
        R @ 10: "recall@10",
        nDCG @ 10: "ndcg@10",
        RR @ 10: "mrr",
        nDCG @ 1: "ndcg@1",
    }
    labels = [
        ir_measures.Qrel(seen.question.id, passage, 1)
        for seen in observations
        for passage in sorted(seen.question.relevant)
    ]
    run = [
        ir_measures.ScoredDoc(seen.question.id, passage, float(-rank))
        for seen in observations
        if seen.question.relevant
        for rank, passage in enumerate(seen.ranking[:DEPTH])
    ]
    names = list(measures.values())
    values: dict[str, dict[str, float]] = {
        seen.question.id: dict.fromkeys(names, 0.0) if seen.question.relevant else {} for seen in observations
    }
    if len(values) != len(observations):
        raise ValueError("a question was observed twice")
    if run:
        for metric in ir_measures.iter_calc(list(measures), labels, run):
            values[metric.query_id][measures[metric.measure]] = float(metric.value)
    return values


def _fold_text(text: str) -> str:
    return " ".join(text.casefold().split())
