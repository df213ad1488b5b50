"""Tools of a step within its session's budget: queries by the service's own pipeline, an LLM, and curation."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn
from uuid import UUID

from engram.context.errors import BudgetSpentError
from engram.core.budget import Budget
from engram.core.ranking.bm25 import inverse_document_frequency
from engram.providers.language import Language, PassageText
from engram.providers.language.lexical_terms import question_terms, terms
from engram.providers.llm import Llm, Usage
from engram.services.auth.scope import Scope
from engram.services.question.answer import Answer
from engram.services.question.pipeline import QuestionPipeline
from engram.services.question.query import Query, SessionPart, create_query_id
from engram.storage.corpus import lexical_index, passages
from engram.storage.corpus.passages import StoredSentence
from engram.storage.database import Database
from engram.wings.sessions.core.answerable import ReadSentence
from engram.wings.sessions.core.binding import BindingSentence
from engram.wings.sessions.core.curation import curate
from engram.wings.sessions.core.session import Cost, CurationCounts, Gap, PoolSentence, StopReason
from engram.wings.sessions.services.session_state import SessionState

DEPTH = 20
"""Passages of a query that are looked through for what they bind; only as many as it shows are read."""


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage that a query showed.

    Attributes:
        id: inside the collection; ``external_id``: the caller's.
        sentences: all of them, in reading order.
        scores: sentence -> score, of those that a hop selected.
        binds: how well it tells what the query asks for, in [0, 1]; 0 where nobody looked.
    """

    id: int
    external_id: str
    title: str | None
    score: float
    sentences: Sequence[StoredSentence]
    scores: Mapping[int, float]
    binds: float = 0.0


@dataclass(frozen=True, slots=True)
class ReadPassage:
    """A passage with all of its sentences, in reading order."""

    id: int
    title: str | None
    sentences: Sequence[StoredSentence]


@dataclass(frozen=True, slots=True)
class AskedQuery:
    """A query of a round, kept like any other: ``episode`` is its id, which verdicts go by."""

    text: str
    episode: UUID
    passages: Sequence[FoundPassage]
    sufficiency: float | None


class StepMeter:
    """Meter of a step's cost and of the budget left; safe to share between threads."""

    def __init__(self, budget: Budget, before: Cost, read: Mapping[int, int]) -> None:
        self._budget = budget
        self._before = before
        self._read = frozenset(read)
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._usage = Usage()
        self._fresh: set[int] = set()
        self._sentences: set[int] = set()

    @property
    def cost(self) -> Cost:
        """Cost of the step so far, without its round."""
        with self._lock:
            used, fresh = self._usage, len(self._fresh)
        return Cost(
            llm_calls=used.calls,
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            seconds=time.monotonic() - self._began,
            passages=fresh,
        )

    def check(self) -> None:
        """Whether one more call of the LLM is affordable.

        Raises:
            BudgetSpentError: it is not.
        """
        total = self._before + self.cost
        if total.llm_calls >= self._budget.llm_calls:
            _refuse("llm_calls")
        if total.tokens >= self._budget.tokens:
            _refuse("tokens")
        if total.seconds >= self._budget.seconds:
            _refuse("seconds")

    def add(self, usage: Usage) -> None:
        """Count what a call took."""
        with self._lock:
            self._usage += usage

    def measure_remaining_seconds(self) -> float:
        """Return the rest of the session's budget of seconds."""
        return self._budget.seconds - (self._before + self.cost).seconds

    def room(self) -> int:
        """Return the number of unread passages that may still be read.

        The first query of a session needs no time: calls of the LLM may have spent it all, and rules still answer.

        Raises:
            BudgetSpentError: none, or there is no time.
        """
        total = self._before + self.cost
        if total.seconds >= self._budget.seconds and (self._read or self._fresh):
            _refuse("seconds")
        room = self._budget.passages - total.passages
        if room <= 0:
            _refuse("passages")
        return room

    def reads(self, ids: Sequence[int]) -> list[int]:
        """Return those passages, best first, that may be read; without room, only those read before."""
        allowed = []
        with self._lock:
            for passage in ids:
                if passage not in self._read and passage not in self._fresh:
                    if self._before.passages + len(self._fresh) >= self._budget.passages:
                        continue
                    self._fresh.add(passage)
                allowed.append(passage)
        return allowed

    def note_sentences(self, sentences: Iterable[int]) -> None:
        """Record sentences that the step has read."""
        with self._lock:
            self._sentences.update(sentences)

    @property
    def sentences(self) -> list[int]:
        """Ids of the sentences read."""
        with self._lock:
            return sorted(self._sentences)

    @property
    def fresh(self) -> list[int]:
        """Passages that the step was the first to read."""
        with self._lock:
            return sorted(self._fresh)


def _refuse(reason: StopReason) -> NoReturn:
    raise BudgetSpentError(f"The session's budget of {reason.replace('_', ' ')} is spent.", reason=reason)


class StepTools:
    """Tools of a step. They are safe to share between threads of one step.

    Attributes:
        scope: where, and who asks.
        llm: metered; None where none is configured or the budget has none.
        language: finds names.
        meter: what the step costs.
    """

    def __init__(
        self,
        database: Database,
        question: QuestionPipeline,
        language: Language,
        llm: Llm | None,
        scope: Scope,
        state: SessionState,
        note_query: Callable[[UUID], object],
    ) -> None:
        """Tools of one step.

        Args:
            note_query: told the id of each query before it is stored.
        """
        self._database = database
        self._question = question
        self._state = state
        self._note_query = note_query
        self.scope = scope
        self.language = language
        self.meter = StepMeter(state.budget, state.cost, state.read)
        afford = state.budget.llm_calls > 0 and state.budget.tokens > 0
        self.llm = llm.attach_meter(self.meter) if llm is not None and afford else None

    def ask(
        self,
        text: str,
        *,
        top_k: int | None = None,
        pool: Sequence[int] = (),
        binds: Callable[[FoundPassage], float] | None = None,
    ) -> AskedQuery:
        """Ask the service a question; the answer is kept, so that verdicts reach it.

        Args:
            top_k: passages shown at most; by default the session's own.
            pool: sentences that the first hop reaches whatever it starts from.
            binds: of the first ``DEPTH``, those that bind most are read, and the others by likeness.

        Raises:
            BudgetSpentError: no passage may be read any more.
        """
        self.meter.room()
        most = top_k or self._state.request.top_k
        query_id = create_query_id()
        self._note_query(query_id)
        query = self._query(text, most if binds is None else max(most, DEPTH), pool)
        answer = self._question.serve(replace(query, id=query_id))
        passages_shown = self._list_found_passages(answer)
        if binds is not None:
            passages_shown = [replace(passage, binds=binds(passage)) for passage in passages_shown]
            passages_shown = sorted(passages_shown, key=lambda passage: -passage.binds)[:most]
        allowed = set(self.meter.reads([passage.id for passage in passages_shown]))
        read = [passage for passage in passages_shown if passage.id in allowed]
        self.meter.note_sentences(sentence.id for passage in read for sentence in passage.sentences)
        return AskedQuery(text, answer.query_id, read, answer.steering)

    def names(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The names in each of these texts, as it writes them."""
        analysed = self.language.analyse_passages([PassageText(None, text, (text,)) for text in texts])
        return [sentence.entities for of_text in analysed for sentence in of_text]

    def sentences(self, ids: Sequence[int]) -> list[StoredSentence]:
        """Return the existing ones of these sentences, in the order given."""
        with self._database.read() as reader:
            by_id = passages.sentences_by_id(reader, self.scope.collection.id, ids)
        return [by_id[one] for one in ids if one in by_id]

    def find_readable_ids(self, external_ids: Sequence[str]) -> list[int]:
        """Return the internal ids of existing passages that may be read, in the order given."""
        with self._database.read() as reader:
            versions = passages.versions(reader, self.scope.collection.id, external_ids)
        passage_ids = [versions[one][0] for one in dict.fromkeys(external_ids) if one in versions]
        return self.meter.reads(passage_ids)

    def read_sentences(self, passage_ids: Iterable[int]) -> list[ReadSentence]:
        """All sentences of these passages with their titles, of those that there still are; names are left out."""
        ordered_ids = sorted(set(passage_ids))
        with self._database.read() as reader:
            stored_passages = passages.load_by_id(reader, self.scope.collection.id, ordered_ids)
            sentences = passages.list_sentences(reader, self.scope.collection.id, ordered_ids)
        return [
            ReadSentence(
                one.passage_id,
                BindingSentence(one.id, one.text, (), passage.title),
                frozenset(terms(f"{passage.title or ''} {one.text}", passage.language)),
            )
            for one in sentences
            if (passage := stored_passages.get(one.passage_id)) is not None
        ]

    def term_weights(self, text: str) -> dict[str, float]:
        """Term of the text -> how rare it is in the collection, > 0."""
        terms = sorted(question_terms(text, self.scope.collection.languages))
        with self._database.read() as reader:
            total, containing = lexical_index.passage_counts(reader, self.scope.collection, terms)
        weights = inverse_document_frequency(total, [containing.get(term, 0) for term in terms])
        return dict(zip(terms, weights.tolist(), strict=True))

    def read_passage(self, passage: int) -> ReadPassage | None:
        """Read all of a passage; None if it is gone."""
        with self._database.read() as reader:
            stored_passage = passages.load_by_id(reader, self.scope.collection.id, [passage]).get(passage)
            sentences = passages.list_sentences(reader, self.scope.collection.id, [passage])
        if stored_passage is None:
            return None
        self.meter.note_sentences(one.id for one in sentences)
        return ReadPassage(passage, stored_passage.title, sentences)

    def curate_sentences(
        self,
        queries: Sequence[AskedQuery],
        gaps_by_sentence: Mapping[int, Gap | None] | None = None,
        pool: Sequence[PoolSentence] | None = None,
    ) -> tuple[list[PoolSentence], CurationCounts]:
        """The sentences of a round's queries that enter the pool, and what became of the others.

        Args:
            gaps_by_sentence: sentence -> the gap that it fills; by default all that hops selected, and of a passage
                without any its first.
            pool: what is there; by default the session's pool.
        """
        pool = self._state.pool if pool is None else pool
        pool_ids = {sentence.sentence_id for sentence in pool}
        candidates: dict[int, PoolSentence] = {}
        for at, query in enumerate(queries):
            for passage in query.passages:
                for sentence in passage.sentences:
                    chosen = (
                        sentence.id in passage.scores
                        if gaps_by_sentence is None
                        else sentence.id in gaps_by_sentence
                    )
                    if gaps_by_sentence is None and not passage.scores:
                        chosen = sentence is passage.sentences[0]
                    if not chosen or sentence.id in pool_ids or sentence.id in candidates:
                        continue
                    gap = None if gaps_by_sentence is None else gaps_by_sentence[sentence.id]
                    candidates[sentence.id] = PoolSentence(
                        sentence.id,
                        passage.id,
                        sentence.text,
                        self._state.number,
                        at,
                        None if gap is None else gap.text,
                        passage.scores.get(sentence.id),
                    )
        sentences = list(candidates.values())
        decided = curate([one.text for one in sentences], [one.text for one in pool])
        dropped = list(decided.dropped.values())
        return [sentences[at] for at in decided.kept_positions], CurationCounts(
            len(decided.kept_positions), dropped.count("exact"), dropped.count("near"), dropped.count("contained")
        )

    def _query(self, text: str, top_k: int, pool: Sequence[int]) -> Query:
        request = self._state.request
        part = SessionPart(pool=tuple(pool), is_sub_question=text != self._state.question)
        query = Query(
            text=text,
            scope=self.scope,
            top_k=top_k,
            filter=request.filter,
            include=frozenset({"sentences"}),
            unit=request.unit or str(self._state.id),
            caller_chose_arm=request.arm is not None,
            trace_id=request.trace_id if text == self._state.question else None,
            parts=(part,),
        )
        return query if request.arm is None else replace(query, **request.arm)

    def _list_found_passages(self, answer: Answer) -> list[FoundPassage]:
        passages_found = []
        for hit in answer.passages:
            sentences = [StoredSentence(one.sentence_id, hit.id, one.position, one.text) for one in hit.sentences]
            scores = {one.sentence_id: one.score for one in hit.sentences if one.score is not None}
            passages_found.append(FoundPassage(hit.id, hit.passage_id, hit.title, hit.score, sentences, scores))
        return passages_found
