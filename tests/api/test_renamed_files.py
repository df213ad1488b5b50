"""A file that is its own title is embedded anew under another name, by the collection's encoder alone."""

import pytest

from engram.composition.container import Application
from tests.support.strict_client import TestClient

TEXT = "Marie Curie was born in Warsaw."


@pytest.mark.wing("importing")
def test_a_rename_that_another_encoder_would_embed_is_refused(
    application: Application, http: TestClient, with_another_encoder: TestClient, collection: str
) -> None:
    metadata = f'{{"knowledge_id": "{collection}", "file_hash": "a"}}'
    file = {"metadata": (None, metadata), "file": ("curie.txt", TEXT.encode())}
    http.post("/api/v1/files/", files=file, headers={"authorization": "Bearer any"}).raise_for_status()
    application.jobs.runner.run_ready()
    knowledge = f"/api/v1/knowledge/{collection}"
    entry = {"filename": "marie.txt", "path": "", "checksum": "a", "size": len(TEXT)}
    plan = http.post(f"{knowledge}/sync/diff", json={"manifest": [entry]}).raise_for_status().json()
    body = {"file_ids": [one["file_id"] for one in plan["deleted"]]}
    refused = with_another_encoder.post(f"{knowledge}/sync/cleanup", json=body)
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:engram:problem:embedding-space-mismatch")
    assert http.post(f"{knowledge}/sync/cleanup", json=body).raise_for_status().json()["files"] == 1
