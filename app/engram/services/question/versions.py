"""Step 8: have the version that a question is about come before other versions of its text."""

from dataclasses import replace
from datetime import UTC, date, datetime

from engram.core.ranking.version_order import find_asked_version, order_versions
from engram.core.text.temporal import find_time_expressions
from engram.services.question.plan import QueryPlan
from engram.services.question.ranking import RECORDED_CANDIDATES, PassageRanking
from engram.services.question.trace import VersionTrace
from engram.storage.corpus import document_versions
from engram.storage.database import Reader


def find_today() -> date:
    """Today, in UTC."""
    return datetime.now(UTC).date()


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
    language = plan.language or plan.collection.language
    intervals = find_time_expressions(plan.query.time_constraint or plan.question, language)
    requested = find_asked_version(plan.question, intervals)
    reordered = order_versions(ranked, versions, requested, intervals, find_today())
    top_k = plan.query.top_k
    passages = [*reordered, *(passage for passage, _ in ordered[len(ranked) :])]
    placed = [(passage, score) for passage, (_, score) in zip(passages, ordered, strict=True)]
    promoted = [new for new, old in zip(reordered, ranked, strict=True) if new != old]
    return replace(ranking, best=placed[:top_k], beyond=placed[top_k:]), VersionTrace(requested, len(promoted))
