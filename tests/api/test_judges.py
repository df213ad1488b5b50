"""Judges over HTTP: who they are, and how far each counts."""

from typing import Any
from urllib.parse import quote
from uuid import uuid4

import pytest

from engram.composition.container import Application
from tests.api.operations import assert_refused
from tests.support.strict_client import TestClient

OWN_SETTINGS = {
    "observation_noise_positive": 2.0,
    "observation_noise_negative": 4.0,
    "daily_share": 0.5,
    "contested_share": 0.05,
    "daily_weight_verdicts": 3,
}


def path(collection: str, judge: str) -> str:
    return f"/collections/{collection}/judges/{quote(judge, safe='')}"


@pytest.mark.parametrize("name", ["careful", "crowd/user 7", "key"])
def test_judge_settings_are_shown(name: str, http: TestClient, curie: str) -> None:
    put = http.put(path(curie, name), json=OWN_SETTINGS)
    assert put.status_code == 200, put.text
    assert put.json() == {
        "judge": name,
        "pending": 0,
        "applied": 0,
        "parked": 0,
        "revoked": 0,
        "set": list(OWN_SETTINGS),
        "constants": OWN_SETTINGS,
        "trusted": False,
        "standing": put.json()["standing"],
    }
    assert http.get(f"/collections/{curie}/judges").json()["judges"] == [put.json()]
    assert http.put(path(curie, name), json=OWN_SETTINGS).json() == put.json()


def test_absent_judge_settings_fall_back_to_defaults(
    http: TestClient, application: Application, curie: str
) -> None:
    http.put(path(curie, "careful"), json=OWN_SETTINGS)
    less = http.put(path(curie, "careful"), json={"daily_share": 0.25, "contested_share": None}).json()
    assert less["set"] == ["daily_share"]
    assert less["constants"]["contested_share"] == application.models.noise.contested
    assert http.put(path(curie, "careful"), json={}).json()["set"] == []
    assert http.get(f"/collections/{curie}/judges").json()["judges"] == []


def test_a_verdict_goes_by_what_is_set(http: TestClient, curie: str) -> None:
    http.put(path(curie, "mute"), json={"daily_share": 0.0})
    query = http.post("/query", json={"collection": curie, "query": "Where was Marie Curie born?"}).json()
    sentence = query["passages"][0]["sentences"][0]["sentence_id"]

    def post_verdict(judge: str) -> list[dict[str, Any]]:
        body = {
            "collection": curie,
            "query_id": query["query_id"],
            "supporting": [sentence],
            "judge": judge,
            "wait": True,
        }
        changes: list[dict[str, Any]] = http.post(
            "/feedback", json=body, headers={"idempotency-key": str(uuid4())}
        ).json()["changes"]
        return changes

    assert {(change["gain"], change["capped"]) for change in post_verdict("mute")} == {(0.0, True)}
    assert {change["capped"] for change in post_verdict("careful")} == {False}
    listed = http.get(f"/collections/{curie}/judges", params={"limit": 1}).json()
    assert [(row["judge"], row["applied"]) for row in listed["judges"]] == [("careful", 1)]
    after = http.get(f"/collections/{curie}/judges", params={"after": listed["next_after"]}).json()
    assert [(row["judge"], row["applied"], row["set"]) for row in after["judges"]] == [("mute", 1, ["daily_share"])]
    assert after["next_after"] is None


@pytest.mark.parametrize(
    "body",
    [
        {"daily_share": 1.5},
        {"daily_share": -0.1},
        {"contested_share": "0.5"},
        {"observation_noise_positive": 0},
        {"observation_noise_positive": 5e-324},
        {"observation_noise_negative": 0.0099},
        {"observation_noise_negative": 1e7},
        {"observation_noise_negative": 1e400},
        {"daily_weight_verdicts": 1.5},
        {"daily_weight_verdicts": 2**31},
        {"daily_weight_verdicts": -1},
        {"process_noise": 0.1},
        [],
        None,
    ],
)
def test_invalid_judge_settings_are_refused(body: Any, http: TestClient, curie: str) -> None:
    content = b'{"observation_noise_negative": 1e400}' if body == {"observation_noise_negative": 1e400} else None
    refused = (
        http.put(path(curie, "careful"), content=content, headers={"content-type": "application/json"})
        if content
        else http.put(path(curie, "careful"), json=body)
    )
    assert_refused(refused)
    assert http.get(f"/collections/{curie}/judges").json()["judges"] == []


@pytest.mark.parametrize("judge", ["", "%00", "x" * 201])
def test_invalid_judge_name_is_refused(judge: str, http: TestClient, curie: str) -> None:
    assert_refused(http.put(f"/collections/{curie}/judges/{judge}", json=OWN_SETTINGS))
