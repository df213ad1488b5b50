"""The record of administrative acts: what stands in it, and that nothing is done without it."""

from typing import Any

import pytest

from engram.api.audit_recorder import is_act
from engram.composition.container import Application
from engram.composition.wings import list_installed_wings
from engram.context.errors import UnavailableError
from engram.runtime.api_process import list_required_scopes, list_routers
from engram.services.maintenance.audit_recording import AuditLog
from tests.support.strict_client import TestClient


def latest(http: TestClient) -> dict[str, Any]:
    act: dict[str, Any] = http.get("/audit", params={"limit": 1}).raise_for_status().json()["entries"][0]
    return act


def test_a_setting_that_was_changed_is_recorded(http: TestClient, curie: str) -> None:
    http.patch(
        f"/collections/{curie}", json={"serving": "shadow"}, headers={"x-request-id": "r1"}
    ).raise_for_status()
    act = latest(http)
    assert (act["action"], act["target"], act["body"]) == (
        "patch_collection",
        f"/collections/{curie}",
        '{"serving":"shadow"}',
    )
    assert (act["principal"], act["client"], act["request_id"], act["status"]) == (
        "local",
        "testclient",
        "r1",
        200,
    )
    assert act["begun_at"] <= act["ended_at"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("DELETE", "/collections/no-such-one", None, 404),
        ("DELETE", "/feedback/1?collection=no-such-one", None, 404),
        ("POST", "/feedback/revoke", {"collection": 1}, 422),
        ("PUT", "/collections/x/judges/y", {"daily_share": "\x00"}, 422),
        ("PATCH", "/collections/x", {"serving": 1}, 422),
    ],
)
def test_a_try_that_failed_is_recorded(http: TestClient, method: str, path: str, body: object, status: int) -> None:
    assert http.request(method, path, json=body).status_code == status
    act = latest(http)
    assert (act["target"], act["status"]) == (path, status)


def test_a_deleted_collection_leaves_its_acts(http: TestClient, curie: str) -> None:
    http.delete(f"/collections/{curie}").raise_for_status()
    assert latest(http)["target"] == f"/collections/{curie}"


def test_asking_and_judging_are_no_acts(http: TestClient, curie: str) -> None:
    http.delete("/collections/no-such-one")
    before = latest(http)["id"]
    http.post("/query", json={"query": "Who?", "collection": curie}).raise_for_status()
    http.post("/passages", params={"collection": curie}, json={"passages": []})
    assert latest(http)["id"] == before


def test_unrecordable_act_is_not_carried_out(http: TestClient, curie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_unavailable(*_: object) -> None:
        raise UnavailableError("Postgres is away.")

    monkeypatch.setattr(AuditLog, "begin", raise_unavailable)
    assert http.delete(f"/collections/{curie}").status_code == 503
    assert http.get(f"/collections/{curie}").status_code == 200


def test_an_act_whose_process_was_lost_has_no_outcome(
    http: TestClient, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AuditLog, "end", lambda *_: None)
    http.delete(f"/collections/{curie}").raise_for_status()
    assert latest(http)["status"] is latest(http)["ended_at"] is None


def test_pages_follow_each_other(http: TestClient) -> None:
    for number in range(3):
        http.delete(f"/collections/no-such-{number}")
    first = http.get("/audit", params={"limit": 2}).json()
    second = http.get("/audit", params={"limit": 2, "before": first["next_before"]}).json()
    assert [act["target"][-1] for act in [*first["entries"], *second["entries"]][:3]] == ["2", "1", "0"]


ACTS = {
    "delete_access_key",
    "delete_collection",
    "delete_fact_event",
    "delete_feedback",
    "post_cancel",
    "delete_judge",
    "delete_principal",
    "delete_queries",
    "delete_query",
    "delete_reembed",
    "delete_tenant",
    "patch_collection",
    "post_access_key",
    "post_align",
    "post_count",
    "post_evolve",
    "post_facts_revoke",
    "post_graph_merge",
    "post_merge",
    "post_reembed",
    "post_rekey",
    "post_replay",
    "post_retry",
    "post_retry_one",
    "post_revoke",
    "post_rollback",
    "post_rotate_access_key",
    "post_split",
    "post_tune",
    "put_judge",
    "put_predicate",
    "put_tuning",
}


def test_the_audit_log_has_what_changes_more_than_a_frontend_or_a_judge_does() -> None:
    needs = list_required_scopes(list_routers(list_installed_wings()))
    assert {route.name for route, need in needs if is_act(route.methods, need)} == ACTS


def test_a_command_is_recorded_by_the_systems_user(application: Application, http: TestClient) -> None:
    with application.maintenance.audit_log.on_command("maintain", "--force"):
        pass
    act = latest(http)
    assert act["principal"].startswith("cli:")
    assert (act["action"], act["target"], act["status"]) == ("maintain", "--force", 200)
    with pytest.raises(UnavailableError), application.maintenance.audit_log.on_command("maintain", ""):
        raise UnavailableError("Stopped.")
    assert latest(http)["status"] == 503
