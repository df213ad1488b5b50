"""Step 8: have newer texts and the version that a question is about come first."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

from engram.core.ranking.version_order import AskedVersion, compute_age_terms, find_asked_version, order_versions
from engram.core.text.temporal import TimeExpression, find_time_expressions
from engram.services.question.plan import QueryPlan
from engram.services.question.ranking import RECORDED_CANDIDATES, PassageRanking
from engram.services.question.trace import VersionTrace
from engram.storage.corpus import document_versions
from engram.storage.database import Reader


def find_today() -> date:
    """Today, in UTC."""
    return datetime.now(UTC).date()


def prefer_newer(reader: Reader, plan: QueryPlan, ranking: PassageRanking) -> PassageRanking:
    """Add to scores what the age of passages says, if the collection's setting says how soon texts hold no more.

    A question about another time than now is ranked as it was, as is what no features ranked.
    """
    half_life_days = plan.collection.newer_half_life_days
    if half_life_days is None or ranking.even_odds is None or _read_asked(plan)[0] != "last":
        return ranking
    passages = [passage for passage, _ in ranking.ordered]
    dates = document_versions.load_dates(reader, plan.collection.id, passages)
    terms = compute_age_terms([dates.get(passage) for passage in passages], half_life_days, find_today())
    age_terms = dict(zip(passages, terms.tolist(), strict=True))
    scored = [(passage, score + age_terms[passage]) for passage, score in ranking.ordered]
    scored.sort(key=lambda one: -one[1])
    return replace(ranking, ordered=scored, age_terms=age_terms)


def put_asked_version_first(
    reader: Reader, plan: QueryPlan, ranking: PassageRanking
) -> tuple[PassageRanking, VersionTrace | None]:
    """Exchange places of passages that are versions of one text, and say which version was asked for.

    Scores stay at their places. Nothing changes, and the trace is None, where no passage has another version.
    """
    if not plan.collection.has_versions:
        return ranking, None
    ordered = ranking.ordered
    ranked = [passage for passage, _ in ordered[: max(RECORDED_CANDIDATES, plan.query.top_k)]]
    versions = document_versions.load_chained(reader, plan.collection.id, ranked)
    if len({one.document for one in versions.values()}) < 2:
        return ranking, None
    requested, intervals = _read_asked(plan)
    reordered = order_versions(ranked, versions, requested, intervals, find_today())
    passages = [*reordered, *(passage for passage, _ in ordered[len(ranked) :])]
    placed = [(passage, score) for passage, (_, score) in zip(passages, ordered, strict=True)]
    promoted = [new for new, old in zip(reordered, ranked, strict=True) if new != old]
    return replace(ranking, ordered=placed), VersionTrace(requested, len(promoted))


def _read_asked(plan: QueryPlan) -> tuple[AskedVersion, Sequence[TimeExpression]]:
    """The version that a question is about, and the intervals of time that it names."""
    language = plan.language or plan.collection.language
    intervals = find_time_expressions(plan.query.time_constraint or plan.question, language)
    return find_asked_version(plan.question, intervals), intervals
