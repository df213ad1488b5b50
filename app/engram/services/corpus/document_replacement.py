"""Replacing documents: what was learned of an earlier version follows its text into the new one.

Passages and sentences keep their rows, and all that was learned hangs on these. A document is prepared in one
transaction before its lines are ingested: rows that the new version has again get their new ids and places, the
others go. The ingest then finds unchanged passages under their new ids.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import structlog

from engram.core.text.document_matching import (
    EarlierPassage,
    EarlierSentence,
    NewPassage,
    Placement,
    match_documents,
    place,
)
from engram.providers.language.sentence_splitter import split_sentences
from engram.services.corpus.passage_drafts import hash_content
from engram.services.corpus.passage_observer import PassageObserver
from engram.services.corpus.passage_removal import remove_passages
from engram.storage.corpus import (
    collections,
    documents,
    passages,
    reader_sets,
    staged_documents,
    staged_lines,
)
from engram.storage.corpus.documents import HeldPassage, PassageFrame
from engram.storage.corpus.passages import StoredSentence
from engram.storage.corpus.reader_sets import Readers
from engram.storage.corpus.staged_documents import StagedDocument
from engram.storage.database import Database, Reader, Writer
from engram.storage.jobs.jobs import Job

log = structlog.get_logger(__name__)

LINES = 500
"""Staged lines of a document that are read at a time."""
PASSAGES = 1_000
"""Passages, or sentences, that are looked up at a time."""


class DocumentReplacement:
    """Prepares the documents of an ingest job."""

    def __init__(self, database: Database, observers: Sequence[PassageObserver]) -> None:
        self._database = database
        self._observers = observers

    def prepare(self, job: Job, should_stop: Callable[[], bool]) -> None:
        """Prepare the documents that the job has whole, each once, before their lines are ingested.

        A document that is missing becomes the new document that holds most of its text, if there is one. Else it
        stays as it is.
        """
        with self._database.read() as reader:
            staged = staged_documents.list_all(reader, job.collection_id, job.id)
            if not staged:
                return
            language = collections.load_by_id(reader, job.collection_id).language
            renamed = _find_renamed(reader, job, staged)
        for document in staged:
            if should_stop():
                return
            if not document.missing:
                self._prepare(job, document, renamed.get(document.source), language)
        with self._database.write() as writer:
            staged_documents.take(writer, job.collection_id, job.id)

    def _prepare(self, job: Job, document: StagedDocument, earlier: str | None, language: str | None) -> None:
        collection_id = job.collection_id
        with self._database.read() as reader:
            new, bodies = _read_lines(reader, job, document.source, language)
        with self._database.write() as writer:
            if not collections.lock_graph(writer, collection_id):
                return  # it was deleted, which ends the job
            known = documents.find_ids(writer, collection_id, [earlier, document.source] if earlier else [])
            if earlier in known and document.source not in known:  # as when the job looked
                documents.rename(writer, collection_id, known[earlier], document.source)
                log.info("document renamed", before=earlier, after=document.source)
            document_id = documents.describe(writer, collection_id, document.description, job.id)
            stored = documents.list_held(
                writer, collection_id, document_id, [passage.external_id for passage in new]
            )
            if {one.external_id: one.content_hash for one in stored} != {
                one.external_id: one.digest for one in new
            }:
                held = _load_sentences(writer, collection_id, stored)
                placement = place(held, new)
                readers = reader_sets.load(writer, collection_id, [passage.id for passage in held])
                frames = self._apply(writer, collection_id, document_id, placement, held, bodies)
                _restrict_changed(writer, job, placement, held, new, frames, readers)
                remove_passages(writer, collection_id, placement.removed, self._observers)
            sources = [document.source] if earlier is None else [document.source, earlier]
            staged_documents.take(writer, collection_id, job.id, sources)

    def _apply(
        self,
        writer: Writer,
        collection_id: int,
        document_id: int,
        placement: Placement,
        held: Sequence[EarlierPassage],
        bodies: Mapping[str, tuple[str | None, str]],
    ) -> dict[str, int]:
        """Give rows their new places; return the passages that were made to receive sentences, by external id.

        Args:
            bodies: external id -> title and text.
        """
        frames: dict[str, int] = {}
        known = {passage.id: passage.external_id for passage in held}
        moving = {one: target for one, target in placement.passages.items() if known[one] != target}
        # Rows that go make room for the ids of others, once their sentences have moved.
        leaving = {one: f"\n{one}" for one in placement.removed}
        documents.place_passages(writer, collection_id, document_id, leaving | moving)
        if placement.donors:
            frames = documents.add_frames(
                writer,
                collection_id,
                document_id,
                [PassageFrame(one, *bodies[one], donor) for one, donor in placement.donors.items()],
            )
            languages = passages.count_languages(writer, collection_id, list(frames.values()))
            collections.add_languages(writer, collection_id, languages)
            collections.add_counts(
                writer, collection_id, passages=len(frames), sentences=0, entities=0, lexical_length=0.0
            )
        self._move_sentences(writer, collection_id, placement, held, frames)
        return frames

    def _move_sentences(
        self,
        writer: Writer,
        collection_id: int,
        placement: Placement,
        held: Sequence[EarlierPassage],
        frames: Mapping[str, int],
    ) -> None:
        rows = {target: passage for passage, target in placement.passages.items()} | dict(frames)
        places = {one: (rows[target], position) for one, (target, position) in placement.sentences.items()}
        if placement.exchanged:
            stored = {
                sentence.id: sentence
                for sentence in _list_sentences(writer, collection_id, [passage.id for passage in held])
            }
            for taught, untaught in placement.exchanged:
                places[taught] = (stored[untaught].passage_id, stored[untaught].position)
                places[untaught] = (stored[taught].passage_id, stored[taught].position)
        if places:
            documents.move_sentences(writer, collection_id, places)


def _restrict_changed(
    writer: Writer,
    job: Job,
    placement: Placement,
    held: Sequence[EarlierPassage],
    new: Sequence[NewPassage],
    frames: Mapping[str, int],
    readers: Mapping[int, Readers | None],
) -> None:
    """Show new text of a document that not everyone may read to those who may read all of the document.

    Lines that name readers themselves, and passages whose text did not change, keep theirs.

    Args:
        readers: who may read each earlier passage.
    """
    lists = [set(one) for one in readers.values() if one is not None]
    if not lists:
        return
    texts = {passage.id: passage.text for passage in held}
    rows = {target: passage for passage, target in placement.passages.items()}
    changed = [one.external_id for one in new if texts.get(rows.get(one.external_id, 0)) != one.text]
    shared = tuple(sorted(set.intersection(*lists)))
    reader_set = reader_sets.make(writer, job.collection_id, [shared])[shared]
    affected = [row for one in changed if (row := (rows | dict(frames)).get(one)) is not None]
    reader_sets.assign(writer, job.collection_id, reader_set, affected)
    staged_lines.set_readers(writer, job.collection_id, job.id, changed, shared)


def _find_renamed(reader: Reader, job: Job, staged: Sequence[StagedDocument]) -> dict[str, str]:
    """Source of a new document -> source of the missing document that it was."""
    missing = {document.source: document for document in staged if document.missing}
    known = documents.find_ids(reader, job.collection_id, [document.source for document in staged])
    fresh = [document for document in staged if not document.missing and document.source not in known]
    missing_digests = {source: known[source] for source in missing if source in known}
    if not missing_digests or not fresh:
        return {}
    by_digest = {
        missing[source].description.digest: source
        for source in missing_digests
        if missing[source].description.digest
    }
    renamed: dict[str, str] = {}
    for document in fresh:
        earlier = by_digest.pop(document.description.digest, None)
        if earlier is not None:
            renamed[document.source] = earlier
    for source in renamed.values():
        del missing_digests[source]
    earlier_texts = {
        source: _weigh(
            sentence.text for sentence in _list_sentences(reader, job.collection_id, _ids(reader, job, document))
        )
        for source, document in missing_digests.items()
    }
    new_texts = {
        document.source: _weigh(
            text for passage in _read_lines(reader, job, document.source, None)[0] for text in passage.sentences
        )
        for document in fresh
        if document.source not in renamed
    }
    return renamed | {after: before for before, after in match_documents(earlier_texts, new_texts).items()}


def _weigh(texts: Iterator[str]) -> dict[Hashable, int]:
    """Hashes of different texts, with their lengths: a folder's worth of texts would not fit into memory."""
    return {hash(text): len(text) for text in texts}


def _ids(reader: Reader, job: Job, document_id: int) -> list[int]:
    return [passage.id for passage in documents.list_held(reader, job.collection_id, document_id, [])]


def _read_lines(
    reader: Reader, job: Job, source: str, language: str | None
) -> tuple[list[NewPassage], dict[str, tuple[str | None, str]]]:
    """The staged passages of a document, the later of two with one id; and external id -> title and text."""
    new: dict[str, NewPassage] = {}
    bodies: dict[str, tuple[str | None, str]] = {}
    after = 0
    while lines := staged_lines.list_of_document(reader, job.collection_id, job.id, source, after, LINES):
        after = lines[-1][0]
        for _, body in lines:
            digest = hash_content(body | {"language": body.get("language") or language})
            sentences = _split(body)
            new[body["id"]] = NewPassage(body["id"], digest, body["text"], sentences)
            bodies[body["id"]] = (body["title"], body["text"])
    return list(new.values()), bodies


def _split(body: Mapping[str, Any]) -> list[str]:
    return body["sentences"] or split_sentences(body["text"], body.get("language"))


def _load_sentences(reader: Reader, collection_id: int, held: Sequence[HeldPassage]) -> list[EarlierPassage]:
    """The passages with their sentences, and which of these verdicts taught something about."""
    by_passage: defaultdict[int, list[StoredSentence]] = defaultdict(list)
    for sentence in _list_sentences(reader, collection_id, [passage.id for passage in held]):
        by_passage[sentence.passage_id].append(sentence)
    sentences = [sentence.id for of_passage in by_passage.values() for sentence in of_passage]
    taught: set[int] = set()
    for start in range(0, len(sentences), PASSAGES):
        taught |= documents.find_taught(reader, collection_id, sentences[start : start + PASSAGES])
    return [
        EarlierPassage(
            passage.id,
            passage.external_id,
            passage.content_hash,
            passage.text,
            [EarlierSentence(one.id, one.text, one.id in taught) for one in by_passage[passage.id]],
        )
        for passage in held
    ]


def _list_sentences(reader: Reader, collection_id: int, passage_ids: Sequence[int]) -> Iterator[StoredSentence]:
    for start in range(0, len(passage_ids), PASSAGES):
        yield from passages.list_sentences(reader, collection_id, passage_ids[start : start + PASSAGES])
