"""Evolved keys of a removed passage are there again, exactly once, when the passage returns with an equal text."""

import pytest

from engram.composition.container import Application
from engram.services.erasure.erasure_service import ErasureRequest
from engram.wings.published.parts import published_of
from tests.conftest import CURIE, Ingest
from tests.support import state
from tests.support.evolving import ELEMENT, RIVER, list_learned, rows, verdict
from tests.support.orphans import orphans
from tests.support.strict_client import TestClient
from tests.support.undo import assert_verified

VISTULA = next(dict(passage) for passage in CURIE if passage["id"] == "vistula")
BOTH = ("vistula", "tokyo")


def remove(http: TestClient, collection: str) -> None:
    http.delete("/passages/vistula", params={"collection": collection}).raise_for_status()


@pytest.mark.parametrize("evolves", ["before", "meanwhile", "after"])
def test_what_verdicts_credited_returns_exactly_once(
    application: Application, ingest: Ingest, http: TestClient, curie: str, evolves: str
) -> None:
    scope = application.auth.access.scope(curie)
    evolve = published_of(application).evolve
    for _ in range(2):
        verdict(application, curie, BOTH)
    if evolves == "before":
        evolve.evolve(scope)
    before = list_learned(application, curie)
    for _ in range(2):
        remove(http, curie)
        assert {row["passage_id"] for row in rows(application, curie, "expansion_memory")} == {
            state.passages(application, curie)["tokyo"]
        }
        if evolves == "meanwhile":
            evolve.evolve(scope)
        assert_verified(application, curie)
        assert orphans(application, curie) == {}
        ingest(VISTULA)
        assert_verified(application, curie)
        after = list_learned(application, curie)
        assert after["key_credit"] == before["key_credit"]
        assert after["expansion_memory"] == before["expansion_memory"]
    if evolves == "after":
        evolve.evolve(scope)
    else:
        assert (after["passage_key"] == before["passage_key"]) == (evolves == "before")
    vistula = state.passages(application, curie)["vistula"]
    (key,) = [row for row in rows(application, curie, "passage_key") if row["passage_id"] == vistula]
    held = [row for row in rows(application, curie, "expansion_memory") if row["passage_id"] == vistula]
    assert dict(zip(key["units"], key["scores"], strict=True)) == {row["unit_id"]: row["score"] for row in held}
    assert_verified(application, curie)


@pytest.mark.parametrize("ended", ["revoked", "erased", "another text"])
def test_credits_that_do_not_count_do_not_return(
    application: Application, ingest: Ingest, http: TestClient, curie: str, ended: str
) -> None:
    scope = application.auth.access.scope(curie)
    event = verdict(application, curie, expansions=[RIVER, ELEMENT]).event
    published_of(application).evolve.evolve(scope)
    assert len(rows(application, curie, "passage_key")) == 1
    remove(http, curie)
    if ended == "revoked":
        application.learning.revocation.revoke(scope, event.id)
    elif ended == "erased":
        application.revocation.erasure.request(scope, ErasureRequest.build("judge", name=event.judge))
        application.jobs.runner.run_ready()
    text = "The Vistula flows into the North Sea." if ended == "another text" else VISTULA["text"]
    ingest(VISTULA | {"text": text})
    assert rows(application, curie, "passage_key") == rows(application, curie, "expansion_memory") == []
    if ended != "another text":
        assert rows(application, curie, "expansion_unit") == []
    assert_verified(application, curie)
    assert orphans(application, curie) == {}


def test_a_rollback_while_it_is_away_holds_for_it_too(
    application: Application, ingest: Ingest, http: TestClient, curie: str
) -> None:
    scope = application.auth.access.scope(curie)
    verdict(application, curie)
    published_of(application).evolve.evolve(scope)
    remove(http, curie)
    published_of(application).evolve.roll_back(scope, 0)
    ingest(VISTULA)
    assert rows(application, curie, "passage_key") == []
    published_of(application).evolve.roll_back(scope, 1)
    assert len(rows(application, curie, "passage_key")) == 1
    assert_verified(application, curie)


def test_a_passage_with_credits_alone_is_remembered(application: Application, http: TestClient, curie: str) -> None:
    verdict(application, curie, ("tokyo",))
    passages = state.passages(application, curie)
    with application.database.write() as writer:
        writer.execute(
            "UPDATE key_credit SET passage_id = %(credited)s WHERE passage_id = %(judged)s",
            {"credited": passages["vistula"], "judged": passages["tokyo"]},
        )
    remove(http, curie)

    (remembered,) = rows(application, curie, "removed_passage")
    assert remembered["passage_id"] == passages["vistula"]
