"""docker-compose.yml, as far as it can be judged without Docker."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from engram.cli import command
from engram.config.settings import Settings
from engram.wings.local.runtime.launcher import STOP_MARGIN_SECONDS, STOP_PATIENCE_SECONDS

ROOT = Path(__file__).resolve().parents[2]
OWN_SERVICES = ["migrate", "api", "worker", "judge", "sync", "upkeep"]
SETTINGS = {f"ENGRAM_{name.upper()}" for name in Settings.model_fields}
IMAGES = {"PYTHON_IMAGE", "POSTGRES_IMAGE", "REDIS_IMAGE"}
COMPOSE_VARIABLES = {
    "POSTGRES_PASSWORD",
    "PIP_EXTRA_INDEX_URL",
    "PIP_ARGS",
    "EXTRAS",
    "SYNC_FOLDER",
    "SYNC_COLLECTION",
    "BACKUPS",
    *IMAGES,
}
REFERENCE = re.compile(r"\$\{(\w+)(:-[^}]*|:\?[^}]*)?\}")


@pytest.fixture(scope="module")
def text() -> str:
    return (ROOT / "docker-compose.yml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def services(text: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = yaml.safe_load(text)["services"]
    return found


def example_variables() -> set[str]:
    """Names that .env.example sets or shows in a comment."""
    lines = (ROOT / ".env.example").read_text(encoding="utf-8").splitlines()
    return {found[1] for line in lines if (found := re.match(r"#?([A-Z_]+)=", line))}


def test_the_services_are_those_documented(services: dict[str, dict[str, Any]]) -> None:
    assert list(services) == ["postgres", "redis", *OWN_SERVICES]


def test_every_dependency_is_a_service_in_a_state_it_can_reach(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        for other, wanted in service.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "test" in services[other]["healthcheck"], (name, other)
            else:
                assert wanted["condition"] == "service_completed_successfully", (name, other)
                assert services[other]["restart"] == "no", (name, other)


def test_services_wait_for_the_migration_and_it_waits_for_postgres(
    services: dict[str, dict[str, Any]],
) -> None:
    assert services["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in ("api", "worker", "judge"):
        assert services[name]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
        assert services[name]["restart"] == "unless-stopped"


def test_dependencies_have_no_cycle(services: dict[str, dict[str, Any]]) -> None:
    done: set[str] = set()
    while len(done) < len(services):
        ready = {
            name
            for name, service in services.items()
            if name not in done and set(service.get("depends_on", {})) <= done
        }
        assert ready, set(services) - done
        done |= ready


def test_our_processes_are_given_the_time_they_take_to_end(services: dict[str, dict[str, Any]]) -> None:
    taken = Settings(_env_file=None).shutdown_delay_seconds + Settings(_env_file=None).shutdown_grace_seconds
    for name in ("api", "worker"):
        given = re.fullmatch(r"(\d+)s", services[name]["stop_grace_period"])
        assert given
        assert int(given[1]) >= max(taken + STOP_MARGIN_SECONDS, STOP_PATIENCE_SECONDS), name


def test_images_are_pinned_to_a_version(services: dict[str, dict[str, Any]]) -> None:
    for name, service in services.items():
        tag = service["image"].rpartition(":")[2]
        assert re.match(r"\d+\.\d+\.\d+", tag), (name, service["image"])


def test_every_image_can_be_named_by_its_digest(text: str, services: dict[str, dict[str, Any]]) -> None:
    asked = dict(REFERENCE.findall(text))
    assert asked.keys() >= IMAGES
    for name in IMAGES:
        assert f"#{name}={asked[name].removeprefix(':-')}\n" in (ROOT / ".env.example").read_text(encoding="utf-8")
    for name in ("postgres", "redis"):
        assert REFERENCE.fullmatch(services[name]["image"]), name
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f"ARG PYTHON_IMAGE={asked['PYTHON_IMAGE'].removeprefix(':-')}\n" in dockerfile


def test_every_engram_variable_is_a_setting(text: str, services: dict[str, dict[str, Any]]) -> None:
    used = {name for name, _ in REFERENCE.findall(text)} | example_variables()
    for name in OWN_SERVICES:
        used |= set(services[name]["environment"]) - {"DATABASE_URL", "REDIS_URL"}
    assert used - COMPOSE_VARIABLES <= SETTINGS


def test_no_password_stands_in_any_file(text: str) -> None:
    said = {default for name, default in REFERENCE.findall(text) if "PASSWORD" in name}
    assert said == {":?set it in .env"}
    assert "\nPOSTGRES_PASSWORD=\n" in (ROOT / ".env.example").read_text(encoding="utf-8")


def test_every_reference_has_a_default_or_must_be_set_and_stands_in_the_example(text: str) -> None:
    for name, default in REFERENCE.findall(text):
        assert default, name
        assert name in example_variables()


def test_commands_are_subcommands(services: dict[str, dict[str, Any]]) -> None:
    known: Any = command()
    assert {services[name]["command"][0] for name in OWN_SERVICES} <= set(known.commands)


def test_only_the_api_is_published_and_only_to_this_machine(services: dict[str, dict[str, Any]]) -> None:
    published = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert list(published) == ["api"]
    assert all(str(port).startswith("127.0.0.1:") for port in published["api"])


def test_servers_keep_their_data_and_sit_on_an_internal_network(
    text: str, services: dict[str, dict[str, Any]]
) -> None:
    document = yaml.safe_load(text)
    for name in ("postgres", "redis"):
        (volume,) = services[name]["volumes"]
        assert volume.partition(":")[0] in document["volumes"]
        assert services[name]["networks"] == ["servers"]
    assert document["networks"]["servers"] == {"internal": True}
    assert "appendonly" in " ".join(services["redis"]["command"])


def test_our_containers_have_no_privileges(services: dict[str, dict[str, Any]]) -> None:
    for name in OWN_SERVICES:
        assert services[name]["read_only"] is True
        assert services[name]["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in services[name]["security_opt"]


def test_only_the_api_answers_the_image_s_health_check(services: dict[str, dict[str, Any]]) -> None:
    assert "healthcheck" not in services["api"]
    for name in ("migrate", "judge", "sync", "upkeep"):
        assert services[name]["healthcheck"] == {"disable": True}
    assert services["worker"]["healthcheck"]["test"] == ["CMD", "engram", "worker", "--check"]
    assert services["worker"]["environment"]["ENGRAM_WORKER_HEARTBEAT_FILE"].startswith(
        services["worker"]["tmpfs"][0]
    )


def test_what_not_everybody_needs_is_optional(services: dict[str, dict[str, Any]]) -> None:
    assert [name for name, service in services.items() if "profiles" in service] == ["judge", "sync", "upkeep"]


def test_sync_reads_a_folder_and_calls_the_api_by_a_name_that_it_answers(
    services: dict[str, dict[str, Any]],
) -> None:
    sync, api = services["sync"], services["api"]
    assert sync["volumes"] == ["${SYNC_FOLDER:-./documents}:/documents:ro"]
    assert sync["environment"] == api["environment"] | {"ENGRAM_URL": "http://api:8000"}
    assert api["environment"]["ENGRAM_ALLOWED_HOSTS"].startswith("api,")


def test_a_backup_goes_to_a_volume_that_the_user_of_the_image_may_write(
    text: str, services: dict[str, dict[str, Any]]
) -> None:
    assert services["upkeep"]["volumes"] == ["${BACKUPS:-backups}:/backups"]
    assert "backups" in yaml.safe_load(text)["volumes"]
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "install --directory --owner=10001 --group=10001 /backups" in dockerfile
