"""Answered queries, read again: ids and numbers as they were stored, with the texts that still exist.

A passage, sentence, entity or unit that was deleted since is left out, and one that was changed is shown as it is.
So is a past question, whose words may have been made of a passage that is gone.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from engram.core.auth.access_keys import AUDIT
from engram.core.text.passage_source import read_source
from engram.services.answers.key_explainer import KeyExplainer
from engram.services.auth.scope import Scope
from engram.services.question.episode import drop_fields
from engram.services.question.trace import (
    Cause,
    EntityAnswer,
    FeatureTrace,
    HopTrace,
    KeyCause,
    KeyTrace,
    KeyUnitTrace,
    PassageInfluence,
    PassageTrace,
    RecallTrace,
    RejectionTrace,
    SentenceInfluence,
    SentenceTrace,
    SufficiencyInfluence,
    SufficiencyTrace,
    Trace,
)
from engram.storage.corpus import passages
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.passages import StoredPassage, StoredSentence
from engram.storage.database import Database, Reader
from engram.storage.feedback_log import judged_queries
from engram.storage.learning import question_supports
from engram.storage.question import episodes
from engram.storage.question.episodes import (
    COLLAPSED_KEY,
    TEXT_DIGEST,
    StoredEpisode,
    TracedEpisode,
    digest_text,
)

MOST_QUERIES = 1_000
"""Queries of one trace that are listed, at most."""

Traced = TypeVar("Traced")
Verdict = TypeVar("Verdict", bound=Cause)


@dataclass(frozen=True, slots=True)
class Episode:
    """An answered query as it can be read again; ``judged`` counts its verdicts, revoked ones included."""

    answer: Mapping[str, Any]
    trace: Trace
    judged: int
    created_at: datetime


class StoredAnswers:
    """Reads episodes."""

    def __init__(self, database: Database, key_explainer: KeyExplainer | None = None) -> None:
        """``key_explainer`` names the expansion units of evolved keys; without it traces show none."""
        self._database = database
        self._key_explainer = key_explainer

    def read(self, scope: Scope, query_id: UUID) -> Episode:
        """An answered query, with the texts that there still are.

        Raises:
            NotFoundError: there is no such query, or none any more, or it is not for this principal to see.
        """
        with self._database.snapshot() as reader:
            stored = episodes.find(reader, scope.collection.id, query_id)
            if not scope.sees(stored.principal):
                raise episodes.build_missing_error(query_id)
            reading = AnswerReading(reader, scope.collection, stored, self._key_explainer)
        trace = reading.trace()
        readable = trace if scope.is_allowed(AUDIT) else trace.hide_questions()
        return Episode(reading.answer(), readable, stored.judged, stored.created_at)

    def list_trace_queries(self, scope: Scope, trace_id: str) -> list[TracedEpisode]:
        """List the queries of a trace that the principal may see, oldest first, at most ``MOST_QUERIES``."""
        with self._database.read() as reader:
            listed = episodes.list_by_trace(reader, scope.collection.id, trace_id, MOST_QUERIES)
        return [episode for episode in listed if scope.sees(episode.principal)]


class AnswerReading:
    """A stored answer and what its ids stand for now."""

    def __init__(
        self, reader: Reader, collection: Collection, episode: StoredEpisode, key_explainer: KeyExplainer | None
    ) -> None:
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
        rejected = {row["passage_id"] for row in trace.get("rejected") or ()}
        pooled = {row["completes"] for row in trace["passages"] or () if row["completes"] is not None}
        duplicates = {one for hit in episode.answer["passages"] for one in hit.get("duplicates", ())}
        self._passages: Mapping[int, StoredPassage] = passages.load_by_id(
            reader, collection.id, {*episode.shown, *of_sentences, *pooled, *duplicates, *rejected}
        )
        self._surfaces = episodes.surfaces(reader, collection.id, sorted(entities)) if entities else {}
        self._units = (
            key_explainer.load_unit_texts(reader, collection.id, sorted(units)) if units and key_explainer else {}
        )
        past = {row["question_id"] for row in trace["recalled"]}
        self._past = question_supports.load_question_texts(reader, collection.id, sorted(past)) if past else {}
        events = {cause["event_id"] for cause in _causes(trace)}
        self._judged = judged_queries.find_questions(reader, collection.id, sorted(events)) if events else {}

    def answer(self) -> dict[str, Any]:
        """Return the stored answer as ``POST /query`` answers it, with current texts.

        Deleted passages are left out.
        """
        episode, stored_answer = self._episode, self._episode.answer
        return drop_fields(stored_answer, "passages", COLLAPSED_KEY) | {
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
            "shown_texts": self._list_shown_texts(),
            "passages": [
                self._hit(self._passages[passage], hit, explored=passage in episode.explored)
                for passage, hit in zip(episode.shown, stored_answer["passages"], strict=True)
                if passage in self._passages
            ],
        }

    def trace(self) -> Trace:
        """Return the stored trace with current texts; what was deleted since is left out."""
        trace = self._episode.trace
        passage_rows, sufficiency_row = trace["passages"], trace.get("sufficiency")
        return _make(
            Trace,
            trace,
            entities=[
                _make(EntityAnswer, row, name=self._surfaces[row["entity_id"]])
                for row in trace["entities"]
                if row["entity_id"] in self._surfaces
            ],
            recalled=[
                _make(
                    RecallTrace,
                    row,
                    past_question=self._past.get(row["question_id"]),
                    contrasts=tuple(row["contrasts"]),
                )
                for row in self._select_existing(trace["recalled"])
            ],
            hops=[self._hop(hop) for hop in trace["hops"]],
            passages=None if passage_rows is None else list(self._read_passage_traces(passage_rows)),
            sufficiency=None
            if not sufficiency_row
            else _make(
                SufficiencyTrace,
                sufficiency_row,
                features={name: _make(FeatureTrace, one) for name, one in sufficiency_row["features"].items()},
                influences=self._read_causes(SufficiencyInfluence, sufficiency_row["influences"]),
                judgements=self._read_causes(SufficiencyInfluence, sufficiency_row["judgements"]),
            ),
            rejected=None if trace.get("rejected") is None else list(self._read_rejections(trace["rejected"])),
        )

    def _list_shown_texts(self) -> list[dict[str, Any]]:
        """List the texts that were shown, as digests, of the passages that there still are."""
        return [
            {
                "passage_id": passage.external_id,
                "sha256": hit[TEXT_DIGEST],
                "changed": hit[TEXT_DIGEST] != digest_text(passage.text),
            }
            for row_id, hit in zip(self._episode.shown, self._episode.answer["passages"], strict=True)
            if (passage := self._passages.get(row_id)) is not None
        ]

    def _hit(self, passage: StoredPassage, hit: Mapping[str, Any], *, explored: bool) -> dict[str, Any]:
        """Return a passage of the answer with its current text; deleted sentences and duplicates are left out."""
        return {
            "passage_id": passage.external_id,
            "title": passage.title,
            "text": passage.text,
            "language": passage.language,
            "metadata": passage.metadata,
            "score": hit["score"],
            "source": read_source(passage, self._collection.link_template),
            "explored": explored,
            "duplicates": [
                {
                    "passage_id": duplicate_passage.external_id,
                    "title": duplicate_passage.title,
                    "metadata": duplicate_passage.metadata,
                    "source": read_source(duplicate_passage, self._collection.link_template),
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

    def _hop(self, hop: Mapping[str, Any]) -> HopTrace:
        """Return a hop's trace with current names and texts; deleted sentences and entities are left out."""
        names = self._surfaces
        return _make(
            HopTrace,
            hop,
            entities={names[entity]: score for entity, score in hop["entities"] if entity in names},
            sentences=[
                _make(
                    SentenceTrace,
                    row,
                    passage_id=self._passages[sentence.passage_id].external_id,
                    text=sentence.text,
                    activated_by=[names[entity] for entity in row["activated_by"] if entity in names],
                    influences=self._read_causes(SentenceInfluence, row["influences"]),
                )
                for row in self._select_existing(hop["sentences"])
                for sentence in (self._sentences[row["sentence_id"]],)
            ],
        )

    def _read_passage_traces(self, rows: Sequence[Mapping[str, Any]]) -> Iterable[PassageTrace]:
        """Add texts and names to passage traces; skip deleted passages."""
        for row in rows:
            passage, completed = self._passages.get(row["passage_id"]), self._passages.get(row["completes"])
            if passage is None:
                continue
            yield _make(
                PassageTrace,
                row,
                id=passage.id,
                passage_id=passage.external_id,
                completes=None if completed is None else completed.external_id,
                completes_id=None if completed is None else completed.id,
                features={name: FeatureTrace(value, weight) for name, (value, weight) in row["features"].items()},
                influences=self._read_causes(PassageInfluence, row["influences"]),
                key=None
                if row["key"] is None
                else _make(KeyTrace, row["key"], units=list(self._read_expansion_units(row["key"]["units"]))),
                text_since=datetime.fromisoformat(row["text_since"]),
            )

    def _read_rejections(self, rows: Sequence[Mapping[str, Any]]) -> Iterable[RejectionTrace]:
        """Add names and titles to traces of rejected passages; skip deleted passages."""
        for row in rows:
            passage = self._passages.get(row["passage_id"])
            if passage is not None:
                yield _make(
                    RejectionTrace,
                    row,
                    id=passage.id,
                    passage_id=passage.external_id,
                    title=passage.title,
                    influences=self._read_causes(PassageInfluence, row["influences"]),
                )

    def _read_expansion_units(self, rows: Sequence[Mapping[str, Any]]) -> Iterable[KeyUnitTrace]:
        """Add methods and texts to the units of a key; skip deleted units."""
        for row in rows:
            if row["unit_id"] in self._units:
                method, text = self._units[row["unit_id"]]
                events = self._read_causes(KeyCause, row["events"])
                yield _make(KeyUnitTrace, row, method=method, text=text, events=events)

    def _read_causes(self, kind: type[Verdict], rows: Sequence[Mapping[str, Any]]) -> list[Verdict]:
        """Return the verdicts with the questions that they judge; skip verdicts without one."""
        judged = self._judged
        return [
            _make(
                kind,
                row,
                applied_at=datetime.fromisoformat(row["applied_at"]),
                question=judged[row["event_id"]],
            )
            for row in rows
            if row["event_id"] in judged
        ]

    def _select_existing(self, rows: Sequence[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
        """Return the rows about sentences that still exist."""
        return (dict(row) for row in rows if row["sentence_id"] in self._sentences)


def _make(kind: type[Traced], row: Mapping[str, Any], **other: Any) -> Traced:
    """Make a part of a trace of its stored fields and of those that are not stored like they are shown."""
    names = {column.name for column in fields(cast(Any, kind))}
    return kind(**{name: value for name, value in row.items() if name in names} | other)


def _causes(trace: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """Yield all verdicts that a stored trace names."""
    for hop in trace["hops"]:
        for sentence in hop["sentences"]:
            yield from sentence["influences"]
    for row in trace["passages"] or ():
        yield from row["influences"]
        for unit in row["key"]["units"] if row["key"] else ():
            yield from unit["events"]
    for row in trace.get("rejected") or ():
        yield from row["influences"]
    if trace.get("sufficiency"):
        yield from trace["sufficiency"]["influences"]
        yield from trace["sufficiency"]["judgements"]
