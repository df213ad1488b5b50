"""Passages that return: what verdicts taught of a removed one is there again with an equal text.

A removed passage leaves its ids under a digest of its document, content and sentences. One that comes with the
same digest takes these ids, under which the log knows it, and its learned states are made anew from the log.
"""

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

from engram.services.corpus.passage_drafts import PassageDraft
from engram.storage.corpus import documents, passages, removed_passages
from engram.storage.corpus.passages import ReturningPassage, StoredSentence
from engram.storage.database import Writer


def remember_removed(writer: Writer, collection_id: int, removed: Sequence[int]) -> dict[int, list[int]]:
    """Keep the ids of passages that are about to be removed, if verdicts taught something about them or wait.

    A sentence that was revised since does not return: its verdicts were on an earlier text.

    Returns:
        Passage -> its sentences, in reading order.
    """
    sentences: dict[int, list[StoredSentence]] = {passage: [] for passage in removed}
    for sentence in passages.list_sentences(writer, collection_id, removed):
        sentences[sentence.passage_id].append(sentence)
    ids = {passage: [sentence.id for sentence in held] for passage, held in sentences.items()}
    taught = documents.find_taught(writer, collection_id, [one for held in ids.values() for one in held])
    credited = removed_passages.find_credited(writer, collection_id, removed)
    for passage, held in sentences.items():
        if taught.isdisjoint(ids[passage]) and passage not in credited:
            continue
        stored = passages.load_by_id(writer, collection_id, [passage])[passage]
        _, content_hash = passages.versions(writer, collection_id, [stored.external_id])[stored.external_id]
        revised = removed_passages.find_revised(writer, collection_id, ids[passage])
        removed_passages.remember(
            writer,
            collection_id,
            passage,
            _digest(stored.document or stored.external_id, content_hash, [one.text for one in held]),
            [None if one in revised else one for one in ids[passage]],
        )
    return ids


def take_returning(
    writer: Writer, collection_id: int, drafts: Sequence[PassageDraft]
) -> Mapping[str, ReturningPassage]:
    """Find the removed passages that new ones are, of equal ones in their order; external id -> what it was."""
    wanted: defaultdict[bytes, list[str]] = defaultdict(list)
    for draft in drafts:
        texts = [sentence.text for sentence in draft.sentences]
        name = draft.document or draft.external_id
        wanted[_digest(name, draft.content_hash, texts)].append(draft.external_id)
    removed = removed_passages.take(writer, collection_id, {digest: len(ids) for digest, ids in wanted.items()})
    return {
        external_id: passage
        for digest, known in removed.items()
        for external_id, passage in zip(wanted[digest], known, strict=False)
    }


def _digest(name: str, content_hash: bytes, sentences: Sequence[str]) -> bytes:
    """SHA-256 of what a passage is made of; each text begins with its length.

    Args:
        name: source of its document; its external id, if it came by itself.
    """
    digest = hashlib.sha256(content_hash)
    for text in (name, *sentences):
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8))
        digest.update(encoded)
    return digest.digest()
