"""Lists of verdicts: what each is on and what it names, as far as the reader of the list may see it."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from engram.core.auth.access_keys import AUDIT, QUERY, READ
from engram.services.auth.scope import Scope
from engram.storage.corpus import passages
from engram.storage.corpus.passages import StoredPassage, StoredSentence
from engram.storage.database import Database
from engram.storage.feedback_log import feedback_events, verdict_summaries
from engram.storage.feedback_log.feedback_events import VerdictEvent
from engram.storage.feedback_log.verdict_summaries import StoredSummary

MOST_SENTENCES = 20
"""Sentences of one verdict that a list has."""


@dataclass(frozen=True, slots=True)
class ListedSentence:
    """A sentence that a verdict names.

    Attributes:
        role: ``supported``, ``missed``, ``rejected`` or ``likely``.
        passage_id: the caller's id of its passage; None, like ``title`` and ``text``, if the sentence was deleted
            since, or is not for the reader of the list to see.
        likeness: how alike it is to the text that was judged, in (0, 1]; less than 1 if it was revised since.
    """

    sentence_id: int
    role: str
    passage_id: str | None
    title: str | None
    text: str | None
    likeness: float


@dataclass(frozen=True, slots=True)
class VerdictSummary:
    """A verdict in a list.

    Attributes:
        question: None if the reader of the list may not see what others asked.
        passages: the caller's ids of passages that helped as a whole.
        sentences_cut: whether it names more sentences than ``MOST_SENTENCES``.
    """

    event: VerdictEvent
    question: str | None
    rating: str | None
    reason: str | None
    passages: list[str]
    sentences: list[ListedSentence]
    sentences_cut: bool


class VerdictListing:
    """Reads lists of verdicts."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def page(
        self,
        scope: Scope,
        *,
        status: str | None,
        after: int,
        limit: int,
        before: int | None = None,
        query: UUID | None = None,
        stale: bool = False,
    ) -> list[VerdictSummary]:
        """List verdicts in order of acceptance, or from ``before`` backwards; without scope ``audit`` own ones.

        Args:
            query: only verdicts on this answer.
            stale: only those that name a sentence that is gone, or that was revised since.
        """
        own = None if scope.is_allowed(AUDIT) else scope.principal.name
        target = scope.collection.id
        with self._database.snapshot() as reader:
            events = feedback_events.page(
                reader,
                target,
                status=status,
                after=after,
                limit=limit,
                principal=own,
                before=before,
                query=query,
                stale=stale,
            )
            if not events:
                return []
            named = verdict_summaries.read(reader, target, [event.id for event in events], MOST_SENTENCES)
            sentences = passages.sentences_by_id(
                reader, target, {one for summary in named.values() for one in summary.sentences}
            )
            holders = {sentence.passage_id for sentence in sentences.values()}
            helpful = {one for summary in named.values() for one in summary.passages}
            texts = passages.load_by_id(reader, target, holders | helpful)
        reads_texts = any(scope.is_allowed(right) for right in (READ, QUERY, AUDIT))
        return [
            _summary(scope, event, named[event.id], sentences if reads_texts else {}, texts if reads_texts else {})
            for event in events
            if event.id in named
        ]


def _summary(
    scope: Scope,
    event: VerdictEvent,
    stored: StoredSummary,
    sentences: Mapping[int, StoredSentence],
    texts: Mapping[int, StoredPassage],
) -> VerdictSummary:
    is_visible = scope.is_allowed(AUDIT) or (stored.asker is not None and scope.sees(stored.asker))
    return VerdictSummary(
        event=event,
        question=stored.question if is_visible else None,
        rating=stored.rating,
        reason=stored.reason,
        passages=[texts[one].external_id for one in stored.passages if one in texts],
        sentences=_list_named_sentences(stored, sentences, texts),
        sentences_cut=stored.sentences_cut,
    )


def _list_named_sentences(
    stored: StoredSummary,
    sentences: Mapping[int, StoredSentence],
    texts: Mapping[int, StoredPassage],
) -> list[ListedSentence]:
    named = []
    for sentence_id, role, likeness in zip(stored.sentences, stored.roles, stored.likeness, strict=True):
        sentence = sentences.get(sentence_id)
        passage = None if sentence is None else texts.get(sentence.passage_id)
        named.append(
            ListedSentence(
                sentence_id=sentence_id,
                role=role,
                passage_id=None if passage is None else passage.external_id,
                title=None if passage is None else passage.title,
                text=None if sentence is None else sentence.text,
                likeness=likeness,
            )
        )
    return named
