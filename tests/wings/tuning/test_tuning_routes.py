"""Tuning from outside: the routes and the command, against a live service."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from engram.composition.container import Application
from engram.context.errors import EmbeddingUnavailableError
from engram.runtime.api_process import create_app
from engram.storage.corpus.collections import Collection
from engram.wings.tuning.parts import tuning_of
from tests.api.conftest import Variant
from tests.support import state
from tests.support.command import Cli
from tests.support.encoder import RotatedEncoder
from tests.support.strict_client import TestClient
from tests.support.tuned import JUDGED, PERMISSIVE, judge_questions
from tests.wings.tuning.conftest import Tune

Standing = Callable[[], tuple[int, bool]]


def test_generations_are_shown_with_their_decisions(
    application: Application, http: TestClient, curie: str, judged: list[int], tune: Tune
) -> None:
    scope = application.auth.access.scope(curie)
    tune(scope)
    tune(scope, replace(PERMISSIVE, z=1e9))
    answer = http.get(f"/collections/{curie}/tuning").json()
    assert {name: answer[name] for name in ("enabled", "tunable", "serving", "judged_questions", "due_at")} == {
        "enabled": True,
        "tunable": True,
        "serving": 1,
        "judged_questions": len(JUDGED),
        "due_at": 40,
    }
    refused, used = answer["generations"]
    assert (refused["accepted"], refused["usable"], used["accepted"], used["usable"]) == (False, False, True, True)
    assert refused["reason"].startswith("not used: held-out questions ")
    assert used["figures"]["all"]["questions"] == len(JUDGED)
    page = http.get(f"/collections/{curie}/tuning", params={"limit": 1}).json()
    assert [one["number"] for one in page["generations"]] == [2]
    page = http.get(f"/collections/{curie}/tuning", params={"limit": 1, "before": page["next_before"]}).json()
    assert ([one["number"] for one in page["generations"]], page["next_before"]) == ([1], None)


def test_another_generation_is_served(
    application: Application, http: TestClient, curie: str, judged: list[int], tune: Tune
) -> None:
    tune(application.auth.access.scope(curie))
    path = f"/collections/{curie}/tuning"
    for body, standing in (
        ({"serving": 0}, (0, True)),
        ({"serving": 1}, (1, True)),
        ({"enabled": False}, (0, False)),
        ({"enabled": True}, (1, True)),
        ({"enabled": True, "serving": 0}, (0, True)),
    ):
        answer = http.put(path, json=body).json()
        assert (answer["serving"], answer["enabled"]) == standing
    assert "does not exist" in http.put(path, json={"serving": 2}).json()["detail"]
    assert http.put(path, json={"withdraw": 1}).json()["generations"][0]["withdrawn_at"] is not None
    assert "was withdrawn" in http.put(path, json={"serving": 1}).json()["detail"]
    http.put(path, json={"enabled": False})
    assert "is off" in http.post(f"/collections/{curie}/tune").json()["detail"]
    assert "is off" in http.put(path, json={"serving": 1}).json()["detail"]


def test_an_encoder_that_cannot_be_tuned_is_told(
    application: Application, variant: Variant, collection: str
) -> None:
    other = variant()
    other.models.embedder = RotatedEncoder(application.models.embedder)
    state.stage_passages(other, collection, {"id": "bees", "text": "Bees fly."})
    other.jobs.runner.run_ready()
    http = TestClient(create_app(other))
    assert http.get(f"/collections/{collection}/tuning").json()["tunable"] is False
    refused = http.post(f"/collections/{collection}/tune")
    assert (refused.status_code, refused.json()["type"]) == (409, "urn:engram:problem:encoder-not-tunable")
    assert "turned cannot be tuned" in refused.json()["detail"]


def test_tuning_is_shown_and_switched_off_while_the_encoder_is_away(
    application: Application, http: TestClient, curie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Collection) -> None:
        raise EmbeddingUnavailableError("The embedding server is away.")

    monkeypatch.setattr(application.models.encoder, "find_question_tuning", fail)
    path = f"/collections/{curie}/tuning"
    for answer in (http.get(path), http.put(path, json={"enabled": False})):
        assert answer.status_code == 200
        assert (answer.json()["tunable"], answer.json()["due_at"]) == (False, None)
    assert http.get(path).json()["enabled"] is False


@pytest.mark.usefixtures("working")
def test_the_command_tunes_now_and_tells_the_decision(application: Application, cli: Cli, curie: str) -> None:
    judge_questions(application, curie)
    done = cli("tuning", "-c", curie, "--now")
    assert done.returncode == 0, done.stderr
    first, _, row = done.stdout.splitlines()
    assert first == f"{curie}: the encoder as it is serves; judged questions: 6; next attempt at 40"
    assert row.split()[:3] == ["1", "6", "6"]
    assert row.endswith("not learned: verdicts on 5 needs, of 20 at least")
    off = cli("tuning", "-c", curie, "--off").stdout.splitlines()[0]
    assert off == f"{curie}: the encoder as it is serves; judged questions: 6; tuning is off"
    refused = cli("tuning", "-c", curie, "--begin-with", curie)
    assert "is off" in refused.stderr
    refused = cli("tuning", "-c", curie, "--now")
    assert refused.returncode != 0
    assert "is off" in refused.stderr
    standing = json.loads(cli("tuning", "-c", curie, "--on", "--json").stdout)
    assert (standing["enabled"], standing["serving"]) == (True, 0)


def test_attempts_are_due_by_judged_questions(
    application: Application, curie: str, judged: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = application.auth.access.scope(curie)
    tuning = tuning_of(application).tuning

    def count_queued() -> int:
        tuning.queue_due(lambda: False)
        return sum(
            job["kind"] == "tune" and job["status"] == "queued" for job in state.rows(application, curie, "job")
        )

    assert count_queued() == 0
    monkeypatch.setattr("engram.wings.tuning.services.tuning_service.FIRST_QUESTIONS", len(JUDGED))
    tuning.change(scope, is_on=False)
    assert count_queued() == 0
    tuning.change(scope, is_on=True)
    assert count_queued() == 1
    assert count_queued() == 1
    application.jobs.runner.run_ready()
    assert count_queued() == 0  # until there are nine questions
    judge_questions(application, curie, [("What shines?", "polonium"), ("What lies on a bay?", "tokyo")])
    assert count_queued() == 0
    judge_questions(application, curie, [("What is a capital?", "warsaw")])
    assert count_queued() == 1
    application.jobs.runner.run_ready()
