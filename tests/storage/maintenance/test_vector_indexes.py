"""What is held of each collection, and what may be built of it."""

import pytest

from engram.composition.container import Application
from engram.storage.corpus import collections
from engram.storage.maintenance import vector_indexes
from engram.storage.maintenance.vector_indexes import TableRows
from tests.storage.conftest import TaughtCollection
from tests.support import state


def test_each_collection_says_what_it_holds_of_each_table(
    application: Application, taught: TaughtCollection
) -> None:
    with application.database.read() as reader:
        held = [one for one in vector_indexes.count_searched_rows(reader) if one.collection_id == taught.id]
    assert held == [
        TableRows(taught.id, table, len(state.rows(application, taught.name, table)), 384)
        for table in ("entity", "passage", "question")
    ]
    assert all(one.rows > 0 for one in held)


def test_recorded_indexes_are_announced(application: Application, curie: str) -> None:
    target = state.collection_id(application, curie)
    for tables in (["passage", "question"], []):
        with application.database.write() as writer:
            collections.record_indexed(writer, target, tables)
        with application.database.read() as reader:
            assert vector_indexes.list_indexed_tables(reader)[target] == tables


def test_an_index_is_made_of_its_collections_rows_and_dropped_again(application: Application, curie: str) -> None:
    target = state.collection_id(application, curie)
    with application.database.administer() as administrator:
        vector_indexes.build(administrator, "question", target, 384, 64)
        (built,) = [one for one in vector_indexes.indexes(administrator) if one.collection_id == target]
        assert (built.table, built.valid) == ("question", True)
        assert vector_indexes.size(administrator, built) > 0
        vector_indexes.drop(administrator, built.name)
        assert [one for one in vector_indexes.indexes(administrator) if one.collection_id == target] == []
        vector_indexes.drop(administrator, built.name)  # which is gone already
        if not [one for one in vector_indexes.indexes(administrator) if one.table == "question"]:
            vector_indexes.leave_to_autovacuum(administrator, "question")


def test_a_table_that_is_not_searched_by_nearness_gets_no_index(application: Application) -> None:
    refused = pytest.raises(ValueError, match="sentence is not searched by nearness")
    with application.database.administer() as administrator, refused:
        vector_indexes.build(administrator, "sentence", 1, 384, 64)
