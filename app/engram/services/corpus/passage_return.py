"""Passages that return: what verdicts taught of a removed one is there again with an equal text.

A removed passage leaves its ids under a digest of its document, content and sentences. One that comes with the
same digest takes these ids, under which the log knows it, and its learned states are made anew from the log.
"""

import hashlib
from collections.abc import Mapping, Sequence

from engram.services.corpus.passage_drafts import PassageDraft
from engram.storage.corpus import documents, removed_passages
from engram.storage.corpus.passages import ReturningPassage, StoredSentence
from engram.storage.corpus.removed_passages import PassageIdentity
from engram.storage.database import Writer


def remember_removed(writer: Writer, collection_id: int, passage: int, sentences: Sequence[StoredSentence]) -> None:
    """Keep the ids of a passage that is about to be removed, if verdicts taught something about it.

    A sentence that was revised since does not return: its verdicts were on an earlier text.
    """
    ids = [sentence.id for sentence in sentences]
    if not ids or not documents.find_taught(writer, collection_id, ids):
        return
    identity = removed_passages.load_identity(writer, collection_id, passage)
    revised = removed_passages.find_revised(writer, collection_id, ids)
    removed_passages.remember(
        writer,
        collection_id,
        passage,
        _digest(identity, [sentence.text for sentence in sentences]),
        [None if one in revised else one for one in ids],
    )


def take_returning(
    writer: Writer, collection_id: int, drafts: Sequence[PassageDraft]
) -> Mapping[str, ReturningPassage]:
    """Find the removed passages that new ones are; external id -> what it was."""
    wanted: dict[bytes, str] = {}
    for draft in drafts:
        identity = PassageIdentity(draft.document or draft.external_id, draft.content_hash)
        digest = _digest(identity, [sentence.text for sentence in draft.sentences])
        wanted.setdefault(digest, draft.external_id)
    found = removed_passages.take(writer, collection_id, wanted)
    return {wanted[digest]: passage for digest, passage in found.items()}


def _digest(identity: PassageIdentity, sentences: Sequence[str]) -> bytes:
    """SHA-256 of what a passage is made of; each part begins with its length."""
    digest = hashlib.sha256(identity.content_hash)
    for text in (identity.name, *sentences):
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8))
        digest.update(encoded)
    return digest.digest()
