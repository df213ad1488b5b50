"""Removing passages from the graph."""

from collections.abc import Sequence
from contextlib import ExitStack

from engram.services.corpus.passage_observer import PassageObserver
from engram.services.corpus.passage_return import remember_removed
from engram.storage.corpus import collections, graph_writer, lexical_index, passages
from engram.storage.database import Writer


def remove_passages(
    writer: Writer, collection_id: int, removed: Sequence[int], observers: Sequence[PassageObserver]
) -> None:
    """Remove passages and everything that only they held; the caller has the lock of the collection's graph."""
    sentences = remember_removed(writer, collection_id, removed)
    for passage in removed:
        _remove(writer, collection_id, passage, sentences[passage], observers)


def _remove(
    writer: Writer,
    collection_id: int,
    passage: int,
    sentences: Sequence[int],
    observers: Sequence[PassageObserver],
) -> None:
    with ExitStack() as observed:
        for observer in observers:
            observed.enter_context(observer.removal(writer, collection_id, passage))
        entities, times = graph_writer.delete_sentences(writer, collection_id, sentences)
        length = lexical_index.remove(writer, collection_id, [passage])
        languages = passages.count_languages(writer, collection_id, [passage])
        passages.delete_passage(writer, collection_id, passage)
    orphans = graph_writer.delete_orphans(writer, collection_id, entities, times)
    collections.add_languages(writer, collection_id, {language: -count for language, count in languages.items()})
    collections.add_counts(
        writer,
        collection_id,
        passages=-1,
        sentences=-len(sentences),
        entities=-orphans,
        lexical_length=length,
    )
