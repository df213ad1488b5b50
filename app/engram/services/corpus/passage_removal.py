"""Removing a passage from the graph."""

from engram.services.facts import fact_learning
from engram.storage.corpus import collections, graph_writer, lexical_index, passages
from engram.storage.database import Writer
from engram.storage.facts import fact_events, fact_graph
from engram.storage.sessions import session_erasure


def remove_passage(writer: Writer, collection_id: int, passage: int) -> None:
    """Remove a passage and everything that only it held; the caller has the lock of the collection's graph."""
    sentences = [sentence.id for sentence in passages.list_sentences(writer, collection_id, [passage])]
    fact_graph.lock(writer, collection_id)
    stated = fact_graph.statements_of_passage(writer, collection_id, passage)
    facts = fact_learning.find_sentence_facts(writer, collection_id, sentences)
    facts |= set(fact_graph.list_stated_facts(writer, collection_id, stated))
    if stated:
        fact_events.remove_statements(writer, collection_id, stated)
    entities, times = graph_writer.delete_sentences(writer, collection_id, sentences)
    if facts:
        fact_learning.settle_facts(writer, collection_id, facts)
    length = lexical_index.remove(writer, collection_id, [passage])
    passages.delete_passage(writer, collection_id, passage)
    session_erasure.forget_passages(writer, collection_id, [passage])
    orphans = graph_writer.delete_orphans(writer, collection_id, entities, times)
    collections.add_counts(
        writer,
        collection_id,
        passages=-1,
        sentences=-len(sentences),
        entities=-orphans,
        lexical_length=length,
    )
