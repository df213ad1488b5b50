"""Evolved keys as they serve, and the verdicts behind their units, as the log gives them."""

from collections import defaultdict

from engram.composition.container import Application
from engram.storage.corpus import collections
from engram.storage.question.query_focus import Focus
from engram.wings.published.storage import key_credits, served_keys
from tests.storage.conftest import TaughtCollection
from tests.support import state


def test_unit_sources_are_read_with_their_credit(application: Application, taught: TaughtCollection) -> None:
    active = {row["event_id"] for row in state.rows(application, taught.name, "key_evidence") if row["generation"]}
    credits: dict[tuple[int, int], list[tuple[float, int]]] = defaultdict(list)
    for row in state.rows(application, taught.name, "key_credit"):
        if row["event_id"] in active and row["weight"] > 0:
            credits[row["passage_id"], row["unit_id"]].append((row["gain"] * row["weight"], row["event_id"]))
    passages, units = (sorted({pair[n] for pair in credits}) for n in (0, 1))
    with application.database.read() as reader:
        brought = served_keys.bringers(reader, taught.id, passages, units, 1)
        texts = key_credits.load_unit_texts(reader, taught.id, units)
        assert served_keys.bringers(reader, taught.id, [], units, 1) == []
        assert served_keys.bringers(reader, taught.other, passages, units, 1) == []
    assert [((one.passage_id, one.unit_id), one.event_id, one.total) for one in brought] == [
        (pair, max(some)[1], len(some)) for pair, some in sorted(credits.items())
    ]
    stored = {
        row["id"]: (row["method"], row["text"]) for row in state.rows(application, taught.name, "expansion_unit")
    }
    assert texts == {unit: stored[unit] for unit in units}


def test_served_keys_are_compared_by_both_vectors(application: Application, taught: TaughtCollection) -> None:
    passages = list(state.passages(application, taught.name).values())
    keyed = {row["passage_id"]: row for row in state.rows(application, taught.name, "passage_key")}
    with application.database.read() as reader:
        asked = Focus(
            collections.load_by_id(reader, taught.id),
            application.models.embedder.embed(["Which river?"])[0],
            limits=application.models.limits,
            use_memory=True,
        )
        served = served_keys.list_served_keys(reader, asked, passages)
        assert served_keys.list_served_keys(reader, asked, []) == []
    assert [one.passage_id for one in served] == sorted(keyed)
    for one in served:
        assert (one.units, one.scores) == (keyed[one.passage_id]["units"], keyed[one.passage_id]["scores"])
        assert -1 <= one.base_similarity != one.similarity <= 1
