"""Step 11: the row that is kept of an answer and its trace, as ids and numbers."""

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import sufficiency
from engram.services.question.answer import Answer, PassageAnswer
from engram.services.question.query import SessionPart
from engram.services.question.ranking import RECORDED_CANDIDATES, PassageRanking
from engram.services.question.search import RetrievalResult
from engram.services.question.shown import ShownPassages
from engram.services.question.trace import Cause, HopTrace, PassageTrace, RejectionTrace, Trace
from engram.services.question.walk import WalkHop
from engram.storage.question.episodes import COLLAPSED_KEY, NAME_DIGEST, TEXT_DIGEST, EpisodeRow, digest_text

_PLAIN = frozenset({bool, float, int, str, type(None)})


def build_episode(retrieved: RetrievalResult, answer: Answer, trace: Trace) -> EpisodeRow:
    """Make the row of an answer and its trace."""
    plan, ranking, shown = retrieved.plan, retrieved.ranking, retrieved.shown
    session = plan.query.part(SessionPart)
    recorded = select_recorded(shown, ranking)
    # Of what nobody saw nobody can say whether it is enough.
    teaches = ranking.teaches and not shown.withheld and len(recorded) > 0
    return EpisodeRow(
        id=answer.query_id,
        question=answer.query,
        embedding=plan.focus.vector,
        time_constraint=plan.constraint,
        time_embedding=plan.focus.time_vector,
        memory=answer.memory,
        profile=answer.profile,
        strategy=answer.strategy,
        filter=plan.query.filter,
        activated=_list_activated(retrieved),
        shown=[hit.id for hit in answer.passages],
        explored=list(shown.explored),
        hops=answer.hops,
        total_ms=answer.timings.total_ms,
        arm=answer.arm,
        principal=plan.query.scope.principal.name,
        space=plan.collection.space,
        trace_id=answer.trace_id,
        is_part=session is not None and session.is_sub_question,
        answer={
            "expanded": answer.expanded,
            "expansions": [_json(expansion) for expansion in plan.query.expansions],
            "stop_rule": answer.stop_rule,
            "stop_reason": answer.stop_reason,
            "shadow": answer.shadow,
            "sufficiency": answer.sufficiency,
            "insufficient": answer.insufficient,
            "sufficiency_level": _json(answer.sufficiency_level),
            "timings": _json(answer.timings),
            "collapse_duplicates": answer.collapse_duplicates,
            "passages": [_passage(hit) for hit in answer.passages],
        }
        | _format_duplicates(ranking),
        trace={
            "time_constraint": trace.time_constraint and trace.write_as_typed(trace.time_constraint),
            "entities": [
                _json(entity, "name") | {"mention": trace.write_as_typed(entity.mention)}
                for entity in trace.entities
            ],
            "recalled": [
                _json(recalled, "past_question") | {"question_id": past.question_id}
                for recalled, past in zip(trace.recalled, retrieved.walk.recall.supports, strict=True)
            ],
            "hops": [_hop(*pair) for pair in zip(trace.hops, retrieved.walk.hops, strict=True)],
            "passages": None if trace.passages is None else [_format_passage_trace(of) for of in trace.passages],
            "rejected": None if trace.rejected is None else [_format_rejection(of) for of in trace.rejected],
            "sufficiency": _json(trace.sufficiency),
            "collapsed": trace.collapsed,
            "language": trace.language,
            "lexical_terms": trace.lexical_terms,
        },
        ranked=ranking.candidates[recorded] if teaches else None,
        best_features=ranking.features[recorded[0]].astype(np.float32) if teaches else None,
        answer_features=_select_taught_features(retrieved),
        reranked=ranking.reranked.keep(recorded) if teaches and ranking.reranked is not None else None,
    )


def _list_activated(retrieved: RetrievalResult) -> list[int]:
    """The sentences that a verdict rejects if it does not name them.

    None of a passage that chance put into the answer or took out of it: nobody expected the one to help, and
    nobody saw the other. None of a duplicate that was left out either, and none at all of what was withheld.
    """
    shown, evidence = retrieved.shown, retrieved.walk.evidence
    if shown.withheld:
        return []
    spared = {*shown.explored, *shown.displaced, *retrieved.ranking.stand_in_by_passage}
    return [sentence for sentence, selected in evidence.items() if selected.passage_id not in spared]


def select_recorded(shown: ShownPassages, ranking: PassageRanking) -> NDArray[np.intp]:
    """Positions of the candidates that an episode keeps: the best and the explored, not those nobody saw."""
    candidates = ranking.candidates
    is_recorded = np.arange(len(candidates)) < RECORDED_CANDIDATES
    is_recorded |= np.isin(candidates, list(shown.explored))
    is_recorded &= ~np.isin(candidates, list(shown.displaced))
    return np.flatnonzero(is_recorded)


def _select_taught_features(retrieved: RetrievalResult) -> NDArray[np.float32] | None:
    """Features of the answer, where a verdict on it speaks of the first that the weights alone ranked.

    It does not where the judge was not shown all of these, nor on a later query of a session: that asks for a part,
    and is answered from what the session found before.
    """
    ranking, shown = retrieved.ranking, retrieved.shown
    is_shown = (
        len(shown.best) >= min(sufficiency.EVIDENCE_PASSAGES, len(ranking.candidates)) and not shown.displaced
    )
    session = retrieved.plan.query.part(SessionPart)
    has_pool = session is not None and bool(session.pool)
    if not ranking.teaches or ranking.sufficiency is None or not is_shown or has_pool:
        return None
    return ranking.sufficiency.features.astype(np.float32)


def _format_duplicates(ranking: PassageRanking) -> dict[str, Any]:
    """Each duplicate that is left out, as text, and the passage that stands for it; nothing where there is none."""
    passage_by_duplicate = {str(duplicate): passage for duplicate, passage in ranking.stand_in_by_passage.items()}
    return {COLLAPSED_KEY: passage_by_duplicate} if passage_by_duplicate else {}


def _passage(hit: PassageAnswer) -> dict[str, Any]:
    """Return a stored passage like ``shown`` has it in the same place."""
    duplicates = [duplicate.id for duplicate in hit.duplicates]
    return ({"duplicates": duplicates} if duplicates else {}) | {
        NAME_DIGEST: digest_text(hit.passage_id),
        TEXT_DIGEST: digest_text(hit.text),
        "score": hit.score,
        "sentences": [
            {"sentence_id": sentence.sentence_id, "score": sentence.score, "hops": list(sentence.hops)}
            for sentence in hit.sentences
        ],
    }


def _hop(trace: HopTrace, hop: WalkHop) -> dict[str, Any]:
    """Return the stored form of a hop's trace, with ids in place of names and texts."""
    active = hop.start.activation
    return {
        "hop": trace.hop,
        "entities": [[entity, score] for entity, score in active.items()],
        "candidates": trace.candidates,
        "coverage": trace.coverage,
        "sentences": [
            _json(sentence, "passage_id", "text")
            | {
                "activated_by": [
                    entity for entity in hop.evidence[sentence.sentence_id].entities if entity in active
                ]
            }
            for sentence in trace.sentences
        ],
    }


def _format_passage_trace(trace: PassageTrace) -> dict[str, Any]:
    """Return the stored form of a passage's trace, with ids inside the collection."""
    row: dict[str, Any] = _json(trace, "id", "completes_id")
    row |= {"passage_id": trace.id, "completes": trace.completes_id}
    row["features"] = {name: [one.value, one.weight] for name, one in trace.features.items()}
    if row["key"] is not None:
        row["key"]["units"] = [drop_fields(unit, "method", "text") for unit in row["key"]["units"]]
    return row


def _format_rejection(trace: RejectionTrace) -> dict[str, Any]:
    """Return the stored form of a rejected passage's trace, with its id inside the collection."""
    row: dict[str, Any] = _json(trace, "id", "title")
    return row | {"passage_id": trace.id}


def drop_fields(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def _json(value: Any, *dropped: str) -> Any:
    """Convert rows to JSON: columns by name but those dropped, moments as text, verdicts without their question.

    ``dataclasses.asdict`` copies whatever it comes upon, which took a tenth of a query's processor time.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    if isinstance(value, Mapping):
        return {name: _json(inner) for name, inner in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _json(getattr(value, name)) for name in _columns(type(value), dropped)}
    return value.isoformat() if isinstance(value, datetime) else value


@cache
def _columns(kind: type, dropped: tuple[str, ...]) -> tuple[str, ...]:
    hidden = {*dropped, "question"} if issubclass(kind, Cause) else dropped
    return tuple(column.name for column in fields(kind) if column.name not in hidden)
