"""Images held to their digests: by a registry of this machine, where Debian's docker-registry and skopeo are."""

import hashlib
import importlib.util
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from tests.support.processes import free_port

ROOT = Path(__file__).resolve().parents[2]
NAMED_IMAGES = {"python:3.12-slim-bookworm", "pgvector/pgvector:0.8.6-pg18-trixie", "redis:7.4.7-alpine"}
PLACES = ("Dockerfile", "docker-compose.yml", "deploy/kubernetes", "deploy/images.py")
LACKING = [tool for tool in ("skopeo", "docker-registry") if shutil.which(tool) is None]


def load_module(root: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("deploy_images", root / "deploy/images.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # which its dataclasses ask for
    spec.loader.exec_module(module)
    return module


images = load_module(ROOT)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A copy of the files that name images."""
    for place in PLACES:
        target = tmp_path / place
        target.parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / place).is_dir() else shutil.copy
        copy(ROOT / place, target)
    return tmp_path


def build_digests(salt: str = "") -> dict[str, str]:
    return {image: f"sha256:{hashlib.sha256((image + salt).encode()).hexdigest()}" for image in NAMED_IMAGES}


def test_every_image_but_ours_is_found_and_written_down(root: Path) -> None:
    found = list(images.list_references(root))
    assert {one.image for one in found} == NAMED_IMAGES
    assert len(found) == 5  # the base image also stands in the compose file, and Redis in both
    assert all(not one.file.name.startswith("README") for one in found)
    assert {file.name for file in images.pin(build_digests(), root)} == {
        "Dockerfile",
        "docker-compose.yml",
        "redis.yaml",
    }
    assert images.list_mismatches(build_digests(), root) == []
    assert images.pin(build_digests(), root) == []
    assert images.pin(build_digests("later"), root)  # a digest gives way to the next one
    assert {one.digest for one in images.list_references(root)} == set(build_digests("later").values())
    assert (
        f"ARG PYTHON_IMAGE=python:3.12-slim-bookworm@{build_digests('later')['python:3.12-slim-bookworm']}\n"
        in (root / "Dockerfile").read_text(encoding="utf-8")
    )


def test_unpinned_and_moved_images_are_reported(root: Path) -> None:
    lines = images.list_mismatches(build_digests(), root)
    assert len(lines) == 5
    assert all("by its tag alone" in line for line in lines)
    images.pin(build_digests(), root)
    assert [
        "redis" in line and "by now" in line
        for line in images.list_mismatches(build_digests() | build_moved_digest(), root)
    ] == [True, True]


def build_moved_digest() -> dict[str, str]:
    return {"redis:7.4.7-alpine": f"sha256:{'0' * 64}"}


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """A registry that holds an image under each of the names."""
    if LACKING:
        pytest.skip(f"this machine lacks {', '.join(LACKING)}")
    port = free_port()
    settings = tmp_path / "registry.yml"
    settings.write_text(
        json.dumps(
            {
                "version": 0.1,
                "log": {"level": "error"},
                "storage": {"filesystem": {"rootdirectory": str(tmp_path / "registry")}},
                "http": {"addr": f"127.0.0.1:{port}"},
            }
        ),
        encoding="utf-8",
    )
    server = subprocess.Popen(["docker-registry", "serve", str(settings)], stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                assert httpx.get(f"http://127.0.0.1:{port}/v2/", trust_env=False).status_code == 200
                break
            except httpx.TransportError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(10)


def push(registry: str, image: str, said: str) -> str:
    """An image of no layers under this name; its digest, as the registry says it."""
    name, _, tag = image.partition(":")
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {"Labels": {"said": said}}}).encode()
    blob = f"sha256:{hashlib.sha256(config).hexdigest()}"
    with httpx.Client(base_url=f"http://{registry}/v2/{name}", trust_env=False) as client:
        place = client.post("/blobs/uploads/").raise_for_status().headers["location"]
        client.put(place, params={**httpx.URL(place).params, "digest": blob}, content=config).raise_for_status()
        kind = "application/vnd.oci.image.manifest.v1+json"
        manifest: Mapping[str, object] = {
            "schemaVersion": 2,
            "mediaType": kind,
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": blob,
                "size": len(config),
            },
            "layers": [],
        }
        put = client.put(f"/manifests/{tag}", content=json.dumps(manifest), headers={"content-type": kind})
        return str(put.raise_for_status().headers["docker-content-digest"])


def run(root: Path, registry: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "deploy/images.py", "--registry", registry, "--plain-http", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)


def test_a_registry_is_asked(registry: str, root: Path) -> None:
    missing = run(root, registry)
    assert missing.returncode == 1
    assert "pgvector/pgvector:0.8.6-pg18-trixie" in missing.stderr  # the first that is not there
    digests = {image: push(registry, image, "first") for image in NAMED_IMAGES}
    assert run(root, registry, "--check").returncode == 1

    assert run(root, registry).returncode == 0

    assert {one.image: one.digest for one in images.list_references(root)} == digests
    checked = run(root, registry, "--check")
    assert (checked.returncode, "3 images" in checked.stdout) == (0, True), checked.stderr
    later = push(registry, "redis:7.4.7-alpine", "second")
    stale = run(root, registry, "--check")
    assert (stale.returncode, later in stale.stderr) == (1, True)
