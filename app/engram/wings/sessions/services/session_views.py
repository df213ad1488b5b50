"""A session as whoever asks reads it: ids in words, and what was deleted since left out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from engram.core.text.passage_source import PassageSource, read_source
from engram.services.auth.scope import Scope
from engram.storage.corpus import passages
from engram.storage.corpus.collections import Collection
from engram.storage.corpus.passages import StoredPassage
from engram.storage.database import Reader
from engram.wings.sessions.core.session import Note, PoolSentence, Round
from engram.wings.sessions.services.session_reading import SessionRows
from engram.wings.sessions.storage.sessions import StoredSession


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage that the session read, with its sentences in the pool, in the order in which they came."""

    passage_id: str
    title: str | None
    text: str
    metadata: Mapping[str, Any]
    source: PassageSource
    evidence: Sequence[int]


@dataclass(frozen=True, slots=True)
class ShownEvidence:
    """A sentence of the pool with its citation."""

    sentence_id: int
    passage_id: str
    text: str
    source: PassageSource
    round: int
    query: str | None
    gap: str | None
    score: float | None


@dataclass(frozen=True, slots=True)
class SessionView:
    """A session whole.

    Attributes:
        collection: its name.
        stored: its row.
        passages: that it read, best first.
        evidence: the pool.
        notes: whose citations are all still there.
    """

    collection: str
    stored: StoredSession
    rounds: Sequence[Round]
    passages: Sequence[ShownPassage]
    evidence: Sequence[ShownEvidence]
    notes: Sequence[Note]


@dataclass(frozen=True, slots=True)
class SessionProgress:
    """Progress of a session: its status, and its new rounds."""

    status: str
    rounds: Sequence[Round]


def session_view(reader: Reader, scope: Scope, rows: SessionRows) -> SessionView:
    """The session as it can be read now."""
    collection = scope.collection
    state, stored = rows.to_state(collection.id), rows.stored
    ids = {*state.ranked, *(one.passage_id for one in state.pool)}
    stored_passages = passages.load_by_id(reader, collection.id, sorted(ids))
    pool = [one for one in state.pool if one.passage_id in stored_passages]
    standing = {one.sentence_id for one in pool}
    return SessionView(
        collection.name,
        stored,
        state.rounds,
        [
            _passage(stored_passages[passage], pool, collection)
            for passage in state.ranked
            if passage in stored_passages
        ],
        [_evidence(one, stored_passages[one.passage_id], state.rounds, collection) for one in pool],
        [note for note in state.notes if standing.issuperset(note.cites)],
    )


def _passage(passage: StoredPassage, pool: Sequence[PoolSentence], collection: Collection) -> ShownPassage:
    cited = [one.sentence_id for one in pool if one.passage_id == passage.id]
    source = read_source(passage, collection.link_template)
    return ShownPassage(passage.external_id, passage.title, passage.text, passage.metadata, source, cited)


def _evidence(
    sentence: PoolSentence, passage: StoredPassage, rounds: Sequence[Round], collection: Collection
) -> ShownEvidence:
    queries = rounds[sentence.round - 1].said.get("queries", ()) if sentence.round <= len(rounds) else ()
    query = None if sentence.query is None or sentence.query >= len(queries) else queries[sentence.query]
    return ShownEvidence(
        sentence.sentence_id,
        passage.external_id,
        sentence.text,
        read_source(passage, collection.link_template),
        sentence.round,
        query,
        sentence.gap,
        sentence.score,
    )
