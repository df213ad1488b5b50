"""Removing a passage from the graph."""

from app.services.facts import learn
from app.storage.corpus import collections, graph, lexical, passages
from app.storage.database import Writer
from app.storage.facts import events
from app.storage.facts import graph as fact_graph
from app.storage.sessions import erasure


def remove_passage(writer: Writer, collection_id: int, passage: int) -> None:
    """Remove a passage and everything that only it held; the caller has the lock of the collection's graph."""
    sentences = [sentence.id for sentence in passages.sentences_of(writer, collection_id, [passage])]
    fact_graph.lock(writer, collection_id)
    stated = fact_graph.statements_of_passage(writer, collection_id, passage)
    facts = learn.facts_of(writer, collection_id, sentences)
    facts |= set(fact_graph.said_by_statements(writer, collection_id, stated))
    if stated:
        events.remove_statements(writer, collection_id, stated)
    entities, times = graph.delete_sentences(writer, collection_id, sentences)
    if facts:
        learn.settle_facts(writer, collection_id, facts)
    length = lexical.remove(writer, collection_id, [passage])
    passages.delete_passage(writer, collection_id, passage)
    erasure.forget_passages(writer, collection_id, [passage])
    orphans = graph.delete_orphans(writer, collection_id, entities, times)
    collections.add_counts(
        writer,
        collection_id,
        passages=-1,
        sentences=-len(sentences),
        entities=-orphans,
        lexical_length=length,
    )
