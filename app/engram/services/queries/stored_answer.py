"""Stored form of an answer, as ids and numbers. Read again, it shows the texts that still exist.

A passage, sentence, entity or unit that was deleted since is left out, and one that was changed is shown as it is.
So is a past question, whose words may have been made of a passage that is gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engram.core.ranking import sufficiency
from engram.core.ranking.reranking import RerankedFeatures
from engram.services.retrieval.answer import Answer, PassageAnswer
from engram.services.retrieval.answer_trace import Cause, HopTrace, PassageTrace, Trace
from engram.services.retrieval.graph_walk import WalkHop
from engram.services.retrieval.passage_ranking import PassageRanking
from engram.services.retrieval.passage_source import read_source
from engram.services.retrieval.retrieval_service import RetrievalResult
from engram.storage.corpus import passages
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.passages import StoredPassage, StoredSentence
from engram.storage.database import Reader
from engram.storage.feedback_log import judged_queries
from engram.storage.learning import question_supports
from engram.storage.passage_keys import key_credits
from engram.storage.retrieval import episodes
from engram.storage.retrieval.episodes import COLLAPSED_KEY, EpisodeRow, StoredEpisode


def episode_row(retrieved: RetrievalResult, answer: Answer, trace: Trace) -> EpisodeRow:
    """Make the row of an answer and its trace."""
    plan, ranking, shown = retrieved.plan, retrieved.ranking, retrieved.shown
    ids = {stored.external_id: passage for passage, stored in retrieved.passages.items()}
    recorded = shown.select_recorded(ranking)
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
        activated=shown.list_activated(retrieved.walk, ranking),
        shown=[ids[hit.passage_id] for hit in answer.passages],
        explored=list(shown.explored),
        hops=answer.hops,
        total_ms=answer.timings.total_ms,
        arm=answer.arm,
        principal=plan.query.scope.principal.name,
        space=plan.collection.space,
        trace_id=answer.trace_id,
        is_part=retrieved.plan.query.is_part,
        answer={
            "expanded": answer.expanded,
            "expansions": [_json(expansion) for expansion in plan.query.expansions],
            "stop_rule": answer.stop_rule,
            "stop_reason": answer.stop_reason,
            "shadow": answer.shadow,
            "sufficiency": answer.sufficiency,
            "insufficient": answer.insufficient,
            "sufficiency_level": None if answer.sufficiency_level is None else _json(answer.sufficiency_level),
            "timings": _json(answer.timings),
            "collapse_duplicates": answer.collapse_duplicates,
            "passages": [_passage(hit, ids) for hit in answer.passages],
        }
        | _format_duplicates(ranking),
        trace={
            "time_constraint": trace.time_constraint,
            "entities": [_drop_fields(_json(entity), "name") for entity in trace.entities],
            "recalled": [
                _drop_fields(_json(recalled), "past_question") | {"question_id": past.question_id}
                for recalled, past in zip(trace.recalled, retrieved.walk.recalled, strict=True)
            ],
            "hops": [_hop(*pair) for pair in zip(trace.hops, retrieved.walk.hops, strict=True)],
            "passages": None
            if trace.passages is None
            else [_format_passage_trace(of, ids) for of in trace.passages],
            "sufficiency": None if trace.sufficiency is None else _json(trace.sufficiency),
            "collapsed": trace.collapsed,
            "language": trace.language,
            "lexical_terms": trace.lexical_terms,
        },
        ranked=ranking.candidates[recorded] if teaches else None,
        best_features=ranking.features[recorded[0]].astype(np.float32) if teaches else None,
        answer_features=_select_taught_features(retrieved),
        reranked=_select_reranked_features(ranking, recorded) if teaches else None,
    )


def _select_reranked_features(ranking: PassageRanking, recorded: NDArray[np.intp]) -> RerankedFeatures | None:
    """Return the reranker's scores for the candidates that are stored."""
    if ranking.reranked is None:
        return None
    return RerankedFeatures(ranking.reranked.prior, ranking.reranked.features[recorded].astype(np.float32))


def _select_taught_features(retrieved: RetrievalResult) -> NDArray[np.float32] | None:
    """Features of the answer, where a verdict on it speaks of the first that the weights alone ranked.

    It does not where the judge was not shown all of these, nor on a later query of a session: that asks for a part,
    and is answered from what the session found before.
    """
    ranking, shown = retrieved.ranking, retrieved.shown
    is_shown = (
        len(shown.best) >= min(sufficiency.EVIDENCE_PASSAGES, len(ranking.candidates)) and not shown.displaced
    )
    query = retrieved.plan.query
    goes_on = bool(query.pool) or query.walk is not None or query.lacking is not None
    if not ranking.teaches or ranking.sufficiency is None or not is_shown or goes_on:
        return None
    return ranking.sufficiency.features.astype(np.float32)


def _format_duplicates(ranking: PassageRanking) -> dict[str, Any]:
    """Each duplicate that is left out, as text, and the passage that stands for it; nothing where there is none."""
    passage_by_duplicate = {str(duplicate): passage for duplicate, passage in ranking.stand_in_by_passage.items()}
    return {COLLAPSED_KEY: passage_by_duplicate} if passage_by_duplicate else {}


def _passage(hit: PassageAnswer, ids: Mapping[str, int]) -> dict[str, Any]:
    """Return a stored passage like ``shown`` has it in the same place."""
    duplicates = [ids[duplicate.passage_id] for duplicate in hit.duplicates]
    return ({"duplicates": duplicates} if duplicates else {}) | {
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
            _drop_fields(_json(sentence), "passage_id", "text")
            | {
                "activated_by": [
                    entity for entity in hop.evidence[sentence.sentence_id].entities if entity in active
                ]
            }
            for sentence in trace.sentences
        ],
    }


def _format_passage_trace(trace: PassageTrace, ids: Mapping[str, int]) -> dict[str, Any]:
    """Return the stored form of a passage's trace; ``ids``: external id -> passage."""
    row: dict[str, Any] = _json(trace) | {"passage_id": ids[trace.passage_id]}
    row["completes"] = None if trace.completes is None else ids[trace.completes]
    row["features"] = {name: [one.value, one.weight] for name, one in trace.features.items()}
    if row["key"] is not None:
        row["key"]["units"] = [_drop_fields(unit, "method", "text") for unit in row["key"]["units"]]
    return row


def _drop_fields(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


def _json(value: Any) -> Any:
    """Convert rows to JSON: columns by name, moments as text, verdicts without their question.

    ``dataclasses.asdict`` copies whatever it comes upon, which took a tenth of a query's processor time.
    """
    if value is None or isinstance(value, str | float | int):
        return value
    if isinstance(value, list | tuple):
        return [_json(inner) for inner in value]
    if isinstance(value, Mapping):
        return {name: _json(inner) for name, inner in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {name: _json(getattr(value, name)) for name in _columns(type(value))}
    return value.isoformat() if isinstance(value, datetime) else value


@cache
def _columns(kind: type) -> tuple[str, ...]:
    names = tuple(column.name for column in fields(kind))
    return tuple(name for name in names if name != "question") if issubclass(kind, Cause) else names


class AnswerReading:
    """A stored answer and what its ids stand for now."""

    def __init__(self, reader: Reader, collection: Collection, episode: StoredEpisode) -> None:
        self._collection = collection
        self._episode = episode
        trace = episode.trace
        sentences = {
            *(row["sentence_id"] for hit in episode.answer["passages"] for row in hit["sentences"]),
            *(row["sentence_id"] for hop in trace["hops"] for row in hop["sentences"]),
            *(row["sentence_id"] for row in trace["recalled"]),
        }
        entities = {
            *(row["entity_id"] for row in trace["entities"]),
            *(entity for hop in trace["hops"] for entity, _ in hop["entities"]),
        }
        units = {unit["unit_id"] for row in trace["passages"] or () if row["key"] for unit in row["key"]["units"]}
        self._sentences: Mapping[int, StoredSentence] = passages.sentences_by_id(reader, collection.id, sentences)
        of_sentences = {sentence.passage_id for sentence in self._sentences.values()}
        pooled = {row["completes"] for row in trace["passages"] or () if row["completes"] is not None}
        duplicates = {one for hit in episode.answer["passages"] for one in hit.get("duplicates", ())}
        self._passages: Mapping[int, StoredPassage] = passages.load_by_id(
            reader, collection.id, {*episode.shown, *of_sentences, *pooled, *duplicates}
        )
        self._surfaces = episodes.surfaces(reader, collection.id, sorted(entities)) if entities else {}
        self._units = key_credits.load_unit_texts(reader, collection.id, sorted(units)) if units else {}
        past = {row["question_id"] for row in trace["recalled"]}
        self._past = question_supports.load_question_texts(reader, collection.id, sorted(past)) if past else {}
        events = {cause["event_id"] for cause in _causes(trace)}
        self._judged = judged_queries.find_questions(reader, collection.id, sorted(events)) if events else {}

    def answer(self) -> dict[str, Any]:
        """Return the stored answer as ``POST /query`` answers it, with current texts.

        Deleted passages are left out.
        """
        episode, stored_answer = self._episode, self._episode.answer
        return _drop_fields(stored_answer, "passages", COLLAPSED_KEY) | {
            "query_id": episode.id,
            "query": episode.question,
            "memory": episode.memory,
            "profile": episode.profile,
            "strategy": episode.strategy,
            "arm": episode.arm,
            "trace_id": episode.trace_id,
            "hops": episode.hops,
            "filter": episode.filter,
            "collection": self._collection.name,
            "passages": [
                self._hit(self._passages[passage], hit, explored=passage in episode.explored)
                for passage, hit in zip(episode.shown, stored_answer["passages"], strict=True)
                if passage in self._passages
            ],
        }

    def trace(self) -> dict[str, Any]:
        """Return the stored trace as ``POST /query`` answers it, with current texts.

        What was deleted since is left out.
        """
        trace = self._episode.trace
        passage_rows, sufficiency_row = trace["passages"], trace.get("sufficiency")
        return trace | {
            "entities": [
                row | {"name": self._surfaces[row["entity_id"]]}
                for row in trace["entities"]
                if row["entity_id"] in self._surfaces
            ],
            "recalled": [
                _drop_fields(row, "question_id") | {"past_question": self._past.get(row["question_id"])}
                for row in self._select_existing(trace["recalled"])
            ],
            "hops": [self._hop(hop) for hop in trace["hops"]],
            "passages": None if passage_rows is None else list(self._read_passage_traces(passage_rows)),
            "sufficiency": sufficiency_row
            and sufficiency_row | {"influences": self._add_questions(sufficiency_row["influences"])},
        }

    def _hit(self, passage: StoredPassage, hit: Mapping[str, Any], *, explored: bool) -> dict[str, Any]:
        """Return a passage of the answer with its current text; deleted sentences and duplicates are left out."""
        return {
            "passage_id": passage.external_id,
            "title": passage.title,
            "text": passage.text,
            "language": passage.language,
            "metadata": passage.metadata,
            "score": hit["score"],
            "source": read_source(passage, self._collection),
            "explored": explored,
            "duplicates": [
                {
                    "passage_id": duplicate_passage.external_id,
                    "title": duplicate_passage.title,
                    "metadata": duplicate_passage.metadata,
                    "source": read_source(duplicate_passage, self._collection),
                }
                for duplicate in hit.get("duplicates", ())
                if (duplicate_passage := self._passages.get(duplicate)) is not None
            ],
            "sentences": [
                row | {"position": sentence.position, "text": sentence.text}
                for row in self._select_existing(hit["sentences"])
                for sentence in (self._sentences[row["sentence_id"]],)
            ],
        }

    def _hop(self, hop: Mapping[str, Any]) -> dict[str, Any]:
        """Return a hop's trace with current names and texts; deleted sentences and entities are left out."""
        names = self._surfaces
        return {
            **hop,
            "entities": {names[entity]: score for entity, score in hop["entities"] if entity in names},
            "sentences": [
                row
                | {
                    "passage_id": self._passages[sentence.passage_id].external_id,
                    "text": sentence.text,
                    "activated_by": [names[entity] for entity in row["activated_by"] if entity in names],
                    "influences": self._add_questions(row["influences"]),
                }
                for row in self._select_existing(hop["sentences"])
                for sentence in (self._sentences[row["sentence_id"]],)
            ],
        }

    def _read_passage_traces(self, rows: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
        """Add texts and names to passage traces; skip deleted passages."""
        for row in rows:
            if row["passage_id"] in self._passages:
                explained = {**row, "passage_id": self._passages[row["passage_id"]].external_id}
                pooled = self._passages.get(row["completes"])
                explained["completes"] = None if pooled is None else pooled.external_id
                explained["features"] = {
                    name: {"value": value, "weight": weight} for name, (value, weight) in row["features"].items()
                }
                explained["influences"] = self._add_questions(row["influences"])
                if explained["key"] is not None:
                    explained["key"] = explained["key"] | {
                        "units": list(self._read_expansion_units(explained["key"]["units"]))
                    }
                yield explained

    def _read_expansion_units(self, rows: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
        """Add methods and texts to the units of a key; skip deleted units."""
        for row in rows:
            if row["unit_id"] in self._units:
                method, text = self._units[row["unit_id"]]
                yield {**row, "method": method, "text": text, "events": self._add_questions(row["events"])}

    def _add_questions(self, causes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Return the causes with the questions that their verdicts judge; skip verdicts without one."""
        judged = self._judged
        return [{**cause, "question": judged[cause["event_id"]]} for cause in causes if cause["event_id"] in judged]

    def _select_existing(self, rows: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
        """Return the rows about sentences that still exist."""
        return (dict(row) for row in rows if row["sentence_id"] in self._sentences)


def _causes(trace: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield all verdicts that a stored trace names."""
    for hop in trace["hops"]:
        for sentence in hop["sentences"]:
            yield from sentence["influences"]
    for row in trace["passages"] or ():
        yield from row["influences"]
        for unit in row["key"]["units"] if row["key"] else ():
            yield from unit["events"]
    if trace.get("sufficiency"):
        yield from trace["sufficiency"]["influences"]
