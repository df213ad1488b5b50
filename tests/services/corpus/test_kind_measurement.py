"""The kind of a collection's corpus: measured from its titles, set by hand, and what follows from it."""

from collections.abc import Callable, Mapping
from typing import Any

from fastapi.testclient import TestClient

from engram.runtime.container import Application
from engram.services.corpus.kind_measurement import measure_kind
from engram.services.retrieval.query import Query
from tests.support import state, undo

Ingest = Callable[..., Mapping[str, Any]]
ARTICLES = [
    {"id": "titan", "title": "Titan (moon)", "text": "Titan is a moon of Saturn. Christiaan Huygens found it."},
    {"id": "huygens", "title": "Christiaan Huygens", "text": "Christiaan Huygens was born in The Hague."},
]
PAGES = [
    {"id": "pay", "title": "How to pay an invoice", "text": "Open the invoice and press Pay."},
    {"id": "refund", "title": "Refunds", "text": "You get your money back within two weeks."},
    {"id": "note", "text": "The till is closed on Mondays."},
]


def kind_of(http: TestClient, collection: str) -> tuple[str, float | None, str | None]:
    shown = http.get(f"/collections/{collection}").json()
    return shown["corpus_kind"], shown["title_share"], shown["fixed_kind"]


def test_titles_decide_after_each_ingest(ingest: Ingest, http: TestClient, collection: str) -> None:
    ingest(*ARTICLES)
    assert kind_of(http, collection) == ("encyclopedic", 1.0, None)
    ingest(*PAGES)
    assert kind_of(http, collection) == ("general", 0.4000000059604645, None)  # stored in single precision


def test_a_setting_goes_before_the_titles(ingest: Ingest, http: TestClient, collection: str) -> None:
    ingest(*ARTICLES)
    assert http.patch(f"/collections/{collection}", json={"corpus_kind": "general"}).status_code == 200
    assert kind_of(http, collection) == ("general", 1.0, "general")
    http.patch(f"/collections/{collection}", json={"serving": "live"})
    assert kind_of(http, collection)[0] == "general"
    assert http.patch(f"/collections/{collection}", json={"corpus_kind": "other"}).status_code == 422
    http.patch(f"/collections/{collection}", json={"corpus_kind": None})
    assert kind_of(http, collection) == ("encyclopedic", 1.0, None)


def test_each_kind_is_ranked_by_its_own_weights(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    priors = application.priors
    for kind, prior in (("encyclopedic", priors.encyclopedic), ("general", priors.general)):
        http.patch(f"/collections/{collection}", json={"corpus_kind": kind})
        query = Query(text="Who found Titan?", scope=application.access.scope(collection))
        ranking = application.retrieve.find(application.retrieve.plan(query)).ranking
        assert (ranking.mean == prior.prior.mean).all()
    assert priors.encyclopedic.name != priors.general.name


def test_verdicts_teach_the_weights_of_their_kind_and_keep_it(
    ingest: Ingest, http: TestClient, application: Application, collection: str
) -> None:
    ingest(*ARTICLES)
    judge(application, collection)
    assert state.learned_weights(application, collection, model="enough") is not None
    ingest(*PAGES)
    measure_kind(application.database, state.collection_id(application, collection))

    assert kind_of(http, collection)[:2] == ("encyclopedic", 1.0)
    undo.assert_verified(application, collection)

    http.patch(f"/collections/{collection}", json={"corpus_kind": "general"})
    judge(application, collection)
    undo.assert_verified(application, collection)


def judge(application: Application, collection: str) -> None:
    query = Query(text="Where was the discoverer of Titan born?", scope=application.access.scope(collection))
    answer = application.serving.query(query)
    sentence = min(state.sentences(application, collection, "huygens").values())
    state.judge(application, collection, answer.query_id, [sentence], wait=True)
