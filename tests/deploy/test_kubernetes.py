"""deploy/kubernetes, as far as it can be judged without a cluster: by schemas, and by what the processes need."""

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from engram.cli import cli
from engram.config.settings import Settings
from engram.wings.local.runtime.launcher import STOP_MARGIN_SECONDS

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
KUSTOMIZATION = yaml.safe_load((FOLDER / "kustomization.yaml").read_text(encoding="utf-8"))
Manifest = Mapping[str, Any]
MANIFESTS: list[Manifest] = [
    manifest
    for name in KUSTOMIZATION["resources"]
    for manifest in yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))
]
NAMES = [f"{manifest['kind']}/{manifest['metadata']['name']}" for manifest in MANIFESTS]
PODS = {
    manifest["metadata"]["name"]: manifest["spec"]["template"]["spec"]
    for manifest in MANIFESTS
    if "template" in manifest.get("spec", {})
}
OWN_WORKLOADS = {"engram-migrate", "engram-api", "engram-worker"}
VERSIONS = ("1.29", "1.37")


def select_kind(kind: str) -> list[Manifest]:
    return [manifest for manifest in MANIFESTS if manifest["kind"] == kind]


def container(pod: str) -> Mapping[str, Any]:
    (only,) = PODS[pod]["containers"]
    found: Mapping[str, Any] = only
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", MANIFESTS, ids=NAMES)
def test_manifest_agrees_with_its_schema(manifest: dict[str, Any], version: str) -> None:
    import kubernetes_validate  # three seconds, which whoever only collects tests need not spend

    kubernetes_validate.validate(manifest, version, strict=True)


def test_the_schemas_notice_a_mistake() -> None:
    import kubernetes_validate

    (api,) = (one for one in select_kind("Deployment") if one["metadata"]["name"] == "engram-api")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate({**api, "spec": {**api["spec"], "replica": 2}}, VERSIONS[-1], strict=True)


def test_every_file_is_applied_and_nothing_twice() -> None:
    assert {*KUSTOMIZATION["resources"], "kustomization.yaml"} == {path.name for path in FOLDER.iterdir()}
    assert len(set(NAMES)) == len(NAMES)
    assert PODS.keys() == OWN_WORKLOADS | {"engram-redis"}


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl")
def test_kustomize_puts_it_together() -> None:
    done = subprocess.run(["kubectl", "kustomize", FOLDER], capture_output=True, text=True, check=True)
    built = list(yaml.safe_load_all(done.stdout))
    assert len(built) == len(MANIFESTS)
    assert {one["metadata"].get("namespace") for one in built if one["kind"] != "Namespace"} == {"engram"}


@pytest.mark.parametrize("pod", sorted(PODS))
def test_pods_have_no_privileges(pod: str) -> None:
    spec, inside = PODS[pod], container(pod)["securityContext"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert inside == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container(pod)["resources"].keys() == {"requests", "limits"}
    written = {mount["mountPath"] for mount in container(pod)["volumeMounts"]}
    assert written == {"/data" if pod == "engram-redis" else "/tmp"}


def test_our_pods_are_the_images_user_and_commands_that_there_are() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    known = {command.name or command.callback.__name__ for command in cli.registered_commands if command.callback}
    for pod in OWN_WORKLOADS:
        assert PODS[pod]["securityContext"]["runAsUser"] == int(user)
        assert container(pod)["args"][0] in known
        assert "command" not in container(pod)


def test_settings_are_settings_and_no_secret_is_in_any_file() -> None:
    (settings,) = select_kind("ConfigMap")
    known = {f"ENGRAM_{name.upper()}" for name in Settings.model_fields} | {"REDIS_URL"}
    assert settings["data"].keys() <= known
    assert settings["data"]["ENGRAM_ACCESS"] == "keys"
    assert settings["data"]["ENGRAM_WORKER_HEARTBEAT_FILE"].startswith("/tmp/")
    assert not select_kind("Secret")
    for pod in OWN_WORKLOADS:
        assert container(pod)["envFrom"] == [
            {"configMapRef": {"name": "engram-settings"}},
            {"secretRef": {"name": "engram-servers"}},
        ]
    for path in FOLDER.iterdir():
        assert not re.search(r"postgres(ql)?://|[Pp]assword:\s*\S", path.read_text(encoding="utf-8")), path.name


def test_ports_and_probes_are_those_of_the_processes() -> None:
    (settings,) = select_kind("ConfigMap")
    ports = {port["name"]: port["containerPort"] for port in container("engram-api")["ports"]}
    assert ports == {
        "http": int(settings["data"]["ENGRAM_PORT"]),
        "metrics": int(settings["data"]["ENGRAM_METRICS_PORT"]),
    }
    probes = {
        name: container("engram-api")[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "liveness", "readiness")
    }
    assert probes == {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
    assert container("engram-worker")["livenessProbe"]["exec"]["command"] == ["engram", "worker", "--check"]
    taken = Settings(_env_file=None).shutdown_delay_seconds + Settings(_env_file=None).shutdown_grace_seconds
    for pod in ("engram-api", "engram-worker"):
        assert PODS[pod]["terminationGracePeriodSeconds"] >= taken + STOP_MARGIN_SECONDS


def test_selectors_find_their_pods() -> None:
    labels = {
        one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"]
        for one in MANIFESTS
        if "template" in one.get("spec", {})
    }
    for kind in ("Deployment", "PodDisruptionBudget", "Service"):
        for one in select_kind(kind):
            selector = one["spec"]["selector"]
            assert selector.get("matchLabels", selector).items() <= labels[one["metadata"]["name"]].items()
    assert {one["metadata"]["name"] for one in select_kind("PodDisruptionBudget")} == {
        "engram-api",
        "engram-worker",
    }
    assert select_kind("HorizontalPodAutoscaler")[0]["spec"]["scaleTargetRef"]["name"] in labels


def test_network_policies_deny_by_default() -> None:
    policies = {one["metadata"]["name"]: one["spec"] for one in select_kind("NetworkPolicy")}
    closed = policies.pop("engram-nothing-else")
    assert closed == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    for name, policy in policies.items():
        for rule in (*policy.get("ingress", ()), *policy.get("egress", ())):
            assert rule["ports"], name
        assert all(rule["from"] for rule in policy.get("ingress", ())), name
