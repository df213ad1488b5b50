"""Passages by their text."""

from engram.composition.container import Application
from engram.wings.frontends.storage.texts_of_passages import TEXT_HASH, find_passages
from tests.conftest import Ingest
from tests.support import state


def test_texts_are_found_in_their_own_collection(application: Application, ingest: Ingest, collection: str) -> None:
    ingest({"id": "a", "text": "One."}, {"id": "b", "text": "One."}, {"id": "c", "text": "Two."})
    ingest({"id": "x", "text": "Three."}, into=f"{collection}-other")
    ids = state.passages(application, collection)
    with application.database.read() as reader:
        found = find_passages(reader, state.collection_id(application, collection), {"One.", "Two.", "Three."})
        assert find_passages(reader, state.collection_id(application, collection), set()) == {}
    assert found == {"One.": {ids["a"]: "a", ids["b"]: "b"}, "Two.": {ids["c"]: "c"}}


def test_an_index_finds_them(application: Application, ingest: Ingest, collection: str) -> None:
    ingest(*({"id": str(number), "text": f"Text {number}."} for number in range(300)))
    with application.database.read() as reader:
        plan = reader.rows(
            f"""
            EXPLAIN SELECT p.id FROM passage p
            WHERE p.collection_id = %(collection)s AND {TEXT_HASH} = hashtextextended('Text 7.', 0)
            """,
            {"collection": state.collection_id(application, collection)},
        )
    assert any("passage_text_idx" in row[0] for row in plan), plan
