"""Reach of a verdict on a session: the episodes of its rounds, each once, all through the log.

The episode of the session's own question gets the verdict whole: which sentences hold the evidence, which of them
that query missed (so sufficiency learns whether it was complete by then), what the pool was after each
round (so that the sense of a round hears when it was), and the session's parts as expansion units of kind
``decomposition``. The episode of a sub-question gets what it found of that evidence, and
is never taken to have failed for the rest, which it did not ask for.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from engram.context.errors import NotFoundError
from engram.core.learning.logged_verdict import Expansion, LoggedVerdict
from engram.core.ranking.coverage import content_words
from engram.core.text.words import normalise_words
from engram.services.auth.scope import Scope
from engram.services.verdict.receipt import Receipt
from engram.services.verdict.resolution import resolve_verdict
from engram.services.verdict.verdict import NamedSentence, Verdict
from engram.services.verdict.verdict_service import VerdictService
from engram.storage.corpus import passages
from engram.storage.database import Database
from engram.storage.question import episodes
from engram.storage.question.episodes import EpisodeAnswer
from engram.wings.sessions.core.session import Round
from engram.wings.sessions.services.session_state import SessionState

JUDGE = "session"
"""Who judges by a session's own conclusion; it has its caps like any other judge."""
CONCLUSIVE = ("sufficiency", "covered", "found", "answered")
"""Ends from which a session's own conclusion may be drawn."""
MOST_PARTS = 5
"""Parts of a question that become expansion units."""


@dataclass(frozen=True, slots=True)
class _Query:
    """A query of a round, from its episode.

    Attributes:
        sentences: those that it selected, and those of its passages that the session read.
        passages: passage that the session read -> its external id.
    """

    id: UUID
    text: str
    sentences: frozenset[int]
    passages: Mapping[int, str]


class Teacher:
    """Fans a verdict on a session out."""

    def __init__(self, database: Database, feedback: VerdictService) -> None:
        self._database = database
        self._feedback = feedback

    def judge(self, state: SessionState, verdict: Verdict, key: str, *, wait: bool = False) -> list[Receipt]:
        """Give the verdict to the episodes of the session's rounds under keys that follow from ``key``.

        The same verdict again adds nothing; one that was cut off goes on. The first receipt is the own question's,
        where there is one.

        Args:
            verdict: whose ``query_id`` is of no matter.

        Raises:
            NotFoundError: none of its queries is kept any more, or none has to do with what the verdict names.
            InvalidRequestError, ConflictError, IdempotencyConflictError, EmbeddingSpaceMismatchError: as
                ``VerdictService.accept``.
        """
        with self._database.snapshot() as reader:
            collection_id = verdict.scope.collection.id
            logged = resolve_verdict(reader, verdict)
            ids = [episode for one in state.rounds for episode in one.episodes]
            answered = episodes.load_answered(reader, collection_id, ids)
            read = {episode: shown_passages for one in state.rounds for episode, shown_passages in _read(one)}
            shown_passages = sorted({passage for passages_ in read.values() for passage in passages_})
            sentences: dict[int, list[int]] = {}
            for sentence in passages.list_sentences(reader, collection_id, shown_passages):
                sentences.setdefault(sentence.passage_id, []).append(sentence.id)
            named = {
                key: stored.external_id
                for key, stored in passages.load_by_id(reader, collection_id, shown_passages).items()
            }
        queries = [
            _query(one, answered[one], read.get(one, ()), _list_earlier_pool(state, one), sentences, named)
            for one in ids
            if one in answered
        ]
        if not queries:
            raise NotFoundError(f"Of session {state.id} no query is kept that could be judged.")
        own = [query for query in queries if query.text == state.question]
        parts = [query for query in queries if query.text != state.question]
        verdicts = [
            replace(
                _build_session_verdict(query, verdict, logged, _units(state, parts)),
                on_session=True,
            )
            for query in own[:1]
        ]
        verdicts += [one for query in parts if (one := _part(query, verdict, logged)) is not None]
        if not verdicts:
            raise NotFoundError(f"No query of session {state.id} found what the verdict names.")
        prefix = hashlib.sha256(f"{state.id} {key}".encode()).hexdigest()[:32]
        return [self._feedback.accept(one, f"session-{prefix}-{one.query_id}", wait=wait) for one in verdicts]

    def complete_at(self, state: SessionState, verdict: Verdict) -> int | None:
        """The first round after which the pool held a sentence of every passage that the verdict supports.

        None where it never did, or where the verdict does not claim to name all evidence or names none. What the
        sense of "sufficiency" hears is whether the first five of the own question did, before any later round.

        Raises:
            InvalidRequestError: it names what there is not.
        """
        with self._database.snapshot() as reader:
            collection_id = verdict.scope.collection.id
            logged = resolve_verdict(reader, verdict)
            named = passages.sentences_by_id(reader, collection_id, logged.supports)
        passage_ids = {*logged.passages, *(sentence.passage_id for sentence in named.values())}
        if not (logged.complete and passage_ids):
            return None
        round_by_passage: dict[int, int] = {}
        for one in state.pool:
            round_by_passage[one.passage_id] = min(one.round, round_by_passage.get(one.passage_id, one.round))
        if not passage_ids <= round_by_passage.keys():
            return None
        return max(round_by_passage[passage] for passage in passage_ids)

    def conclude(self, scope: Scope, state: SessionState) -> list[Receipt]:
        """Have the session's own conclusion count as a verdict, once; nothing where it came to none."""
        if state.stop_reason not in CONCLUSIVE:
            return []
        cites = _list_cited_sentences(state)
        if not cites:
            return []
        verdict = Verdict(
            query_id=state.id,
            scope=scope,
            supporting=[NamedSentence(sentence) for sentence in cites],
            partial=True,
            judge=JUDGE,
        )
        return self.judge(state, verdict, f"own {len(state.rounds)}")


def _list_cited_sentences(state: SessionState) -> list[int]:
    """The sentences that a conclusion rests on: those that the answer cites, else those that state a binding.

    A binding whose value its sentence does not contain, as where the passage's title gave it, teaches nothing.
    """
    texts = {one.sentence_id: one.text for one in state.pool}
    conclusion = state.conclusion
    if conclusion is not None:
        cites: Sequence[int] = conclusion.cites if conclusion.sufficient else ()
    else:
        cites = [
            sentence
            for note in state.notes
            if note.kind == "binding"
            for sentence in note.cites
            if _states(texts.get(sentence, ""), note.text)
        ]
    return [sentence for sentence in dict.fromkeys(cites) if sentence in texts]


def _states(sentence: str, binding: str) -> bool:
    """Whether a sentence contains the value of a binding, which its note gives after the last colon."""
    value = normalise_words(binding.rpartition(": ")[2])
    return bool(value) and f" {value} " in f" {normalise_words(sentence)} "


def _read(session_round: Round) -> list[tuple[UUID, list[int]]]:
    """Return what the session read of each of a round's queries; nothing of one whose passages were deleted."""
    shown_passages = [[passage for passage, _ in of_query] for of_query in session_round.said.get("shown", ())]
    return list(zip(session_round.episodes, shown_passages, strict=False))


def _list_earlier_pool(state: SessionState, episode: UUID) -> set[int]:
    """Return the pool before the round of a query: its walk began with that, and did not find it."""
    number = next(one.number for one in state.rounds if episode in one.episodes)
    return {one.sentence_id for one in state.pool if one.round < number}


def _query(
    identity: UUID,
    answered: EpisodeAnswer,
    read: Sequence[int],
    before: Collection[int],
    sentences: Mapping[int, Sequence[int]],
    named: Mapping[int, str],
) -> _Query:
    """Make the query of an episode.

    Args:
        read: passages that the session read.
        before: sentences that were in the pool already.
        sentences: passage -> its sentences.
        named: passage -> its external id.
    """
    of_read = [sentence for passage in read for sentence in sentences.get(passage, ())]
    activated = [sentence for sentence in answered.activated if sentence not in before]
    return _Query(
        identity,
        answered.question,
        frozenset([*activated, *of_read]),
        {passage: named[passage] for passage in read if passage in named},
    )


def _build_session_verdict(
    query: _Query, verdict: Verdict, logged: LoggedVerdict, units: Sequence[Expansion]
) -> Verdict:
    """The verdict as the session's own question is to hear it."""
    missed = [sentence for sentence in logged.supports if sentence not in query.sentences]
    success = verdict.retrieval_success
    return replace(
        verdict,
        query_id=query.id,
        supporting=[NamedSentence(sentence) for sentence in logged.supports if sentence in query.sentences],
        rejected=[
            NamedSentence(sentence, examined=logged.examinations.get(sentence, 1.0)) for sentence in logged.rejects
        ],
        missed=[NamedSentence(sentence) for sentence in missed],
        retrieval_success=None if success and missed else success,
        expansions=[*verdict.expansions, *units],
    )


def _part(query: _Query, verdict: Verdict, logged: LoggedVerdict) -> Verdict | None:
    """The verdict as a sub-question is to hear it; None where that says nothing."""
    supports = [sentence for sentence in logged.supports if sentence in query.sentences]
    rejects = [sentence for sentence in logged.rejects if sentence in query.sentences]
    helped = [name for passage, name in query.passages.items() if passage in logged.passages]
    none_helped = not (verdict.partial or logged.supports or logged.passages)
    if not (supports or rejects or helped or none_helped):
        return None
    return replace(
        verdict,
        query_id=query.id,
        supporting=[NamedSentence(sentence) for sentence in supports],
        rejected=[NamedSentence(sentence, examined=logged.examinations.get(sentence, 1.0)) for sentence in rejects],
        missed=(),
        partial=not none_helped,
        retrieval_success=None,
        generation_success=None,
        generation_score=None,
        supporting_passages=helped,
        expansions=(),
    )


def _units(state: SessionState, parts: Sequence[_Query]) -> list[Expansion]:
    """The sub-questions that say nothing but what the question says: a unit outlives every passage.

    One with a name that some passage gave would keep it after that passage is deleted.
    """
    own = content_words(state.question)
    # A model may ask a sub-question in other words than its own.
    texts = dict.fromkeys([*state.sub_questions, *(query.text for query in parts)])
    texts.pop(state.question, None)
    return [Expansion("decomposition", text) for text in texts if content_words(text) <= own][:MOST_PARTS]
