"""The main job in one breath: ingest, ask, judge, ask again."""

from typing import Any

from tests.support.strict_client import TestClient


def test_a_verdict_is_learned_over_http(http: TestClient, curie: str) -> None:
    ask = {"collection": curie, "query": "Into which sea flows the river of Marie Curie's birthplace?", "top_k": 3}
    first = http.post("/query", json=ask | {"include": ["trace"]}).json()
    verdict = {
        "collection": curie,
        "query_id": first["query_id"],
        "supporting": [{"passage_id": "vistula", "text": "The Vistula flows into the Baltic Sea."}],
        "complete": True,
        "wait": True,
    }
    receipt = http.post("/feedback", json=verdict, headers={"idempotency-key": f"smoke-{curie}"})
    assert receipt.status_code == 200, receipt.text
    assert {change["channel"] for change in receipt.json()["changes"]} == {"task", "recall"}
    again = http.post("/query", json=ask).json()
    assert _score(again, "vistula") > _score(first, "vistula") + 0.5
    assert again["hops"] < first["hops"]


def _score(answer: dict[str, Any], passage: str) -> float:
    return next((hit["score"] for hit in answer["passages"] if hit["passage_id"] == passage), 0.0)
