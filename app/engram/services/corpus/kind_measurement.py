"""Measuring what kind of corpus a collection holds."""

import structlog

from engram.core.ranking.corpus_kind import title_share
from engram.providers.language import title_entities
from engram.storage.corpus import collections, passages
from engram.storage.database import Database

log = structlog.get_logger(__name__)

SAMPLE = 1_000
"""Passages that are looked at: the share is then right to three points."""


def measure_kind(database: Database, collection_id: int) -> None:
    """Record what share of a collection's passages is titled after what they describe.

    Nothing is recorded once verdicts moved the collection's ranking weights: what they taught belongs to the
    weights of one kind.
    """
    with database.read() as reader:
        sample = passages.sample(reader, collection_id, SAMPLE)
    share = title_share((_name(title), text) for title, text in sample)
    if share is None:
        return
    with database.write() as writer:
        changed = collections.set_title_share(writer, collection_id, share)
    if changed:
        log.info("corpus kind measured", collection_id=collection_id, title_share=round(share, 2))


def _name(title: str | None) -> str | None:
    """The shortest name that a title stands for: without a disambiguation in brackets."""
    names = title_entities(title)
    return names[-1] if names else None
