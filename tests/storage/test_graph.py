"""What the graph's statements read: passages by the time they speak of."""

from dataclasses import replace

import numpy as np

from app.composition import Application
from app.core.temporal import find_time_expressions
from app.storage import collections, graph
from app.storage.graph import Focus, GraphLimits
from tests.conftest import Ingest


def timely(application: Application, name: str, asked: str) -> dict[str, float]:
    """External id -> timeliness of every passage for a time constraint."""
    with application.database.read() as reader:
        collection = collections.find(reader, name)
        ids = {
            row.id: row.external_id
            for row in reader.rows(
                "SELECT id, external_id FROM passage WHERE collection_id = %(c)s", {"c": collection.id}
            )
        }
        vector = np.zeros(application.embedder.dimension, dtype=np.float32)
        focus = Focus(collection, vector, None, False, True, None, asked=find_time_expressions(asked))
        found = graph.timely_passages(reader, focus, list(ids))
    return {ids[passage]: share for passage, share in found.items()}


def test_a_passage_is_as_timely_as_its_best_sentence(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest(
        {"id": "mill", "text": "The mill was built in 1790. It was a school from 1920 to 1931."},
        {"id": "barn", "text": "The barn burnt down in 1850."},
        {"id": "well", "text": "The well is deep."},
        into=collection,
    )

    found = timely(application, collection, "from 1920 to 1925")

    assert found.keys() == {"mill", "barn"}
    assert found["mill"] == 1.0
    assert 0 < found["barn"] < 0.1


def test_nothing_is_timely_for_a_question_without_a_time(application: Application, curie: str) -> None:
    assert timely(application, curie, "never") == {}


def test_a_hop_reads_how_well_sentences_agree_only_where_a_time_is_asked_for(
    application: Application, ingest: Ingest, collection: str
) -> None:
    ingest(
        {"id": "mill", "title": "Old Mill", "text": "It was built in 1790. It was a school in 1920. It is wet."},
        into=collection,
    )
    limits = GraphLimits(hub_limit=10, candidate_limit=10, exact_search_limit=100)
    with application.database.read() as reader:
        corpus = collections.find(reader, collection)
        mill = graph.exact_entities(reader, corpus, ["old mill"])["old mill"][0]
        vector = application.embedder.embed(["What was the Old Mill in 1920?"])[0]
        for use_memory in (False, True):
            timeless = Focus(corpus, vector, None, use_memory, True, None)
            timed = replace(timeless, asked=find_time_expressions("in 1920"))
            hops = [graph.linked_sentences(reader, focus, {mill: 1.0}, [], limits) for focus in (timeless, timed)]
            scans = [graph.all_sentences(reader, focus, None, [], limits) for focus in (timeless, timed)]
            nothing = graph.linked_sentences(reader, timed, {}, [], limits)
            for without, with_time in (hops, scans):
                assert without.agreement.tolist() == [0.0, 0.0, 0.0]
                assert with_time.agreement[1] == 1.0
                assert 0 < with_time.agreement[0] < 0.1
                assert with_time.agreement[2] == 0.0
                np.testing.assert_array_equal(without.semantic, with_time.semantic)
            assert len(nothing) == 0


def test_sentences_that_name_an_entity_are_counted_up_to_a_limit(
    application: Application, ingest: Ingest, collection: str
) -> None:
    """Also where another collection names the same one."""
    other = f"{collection}-other"
    ingest(
        {"id": "a", "text": "Ada Lovelace wrote to Charles Babbage. Ada Lovelace was born in London."},
        {"id": "b", "text": "Charles Babbage lived in London. Ada Lovelace died in London."},
        into=collection,
    )
    ingest({"id": "c", "text": "Ada Lovelace read. Ada Lovelace wrote. Ada Lovelace rode."}, into=other)
    names = ["ada lovelace", "charles babbage", "london"]
    with application.database.read() as reader:
        corpus = collections.find(reader, collection)
        ids = {name: found[0] for name, found in graph.exact_entities(reader, corpus, names).items()}
        foreign = graph.exact_entities(reader, collections.find(reader, other), names[:1])["ada lovelace"][0]

        def counted(most: int, *wanted: int) -> dict[int, int]:
            return graph.sentence_counts(reader, corpus, wanted, most)

        ada, babbage, london = (ids[name] for name in names)
        assert counted(1000, ada, babbage, london) == {ada: 3, babbage: 2, london: 3}
        assert counted(2, babbage, ada) == {ada: 2, babbage: 2}
        assert counted(1000, foreign) == {foreign: 0}  # it is no entity of this collection
        assert counted(1000) == {}
