"""docker-compose.yml carried out without Docker: its images built by buildah, its commands run in them by chroot.

What a chroot cannot do is not done: networks, restarts, an init, no-new-privileges and limits are Docker's. Names
of services lead to this machine's loopback address instead.
"""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from tests.support.forks import ROOT

TOOLS = ("buildah", "debootstrap")
BASE, SERVERS, OURS = "localhost/engram-base:local", "localhost/engram-servers:local", "localhost/engram:local"
BASE_PACKAGES = "ca-certificates,python3,python3-venv"
SERVER_PACKAGES = "postgresql-17,postgresql-17-pgvector,redis-server"
PATIENCE_SECONDS = 120.0
REFERENCE = re.compile(r"\$\{(\w+)(?:(:-|:\?)([^}]*))?\}")


def list_missing_tools() -> list[str]:
    """What this machine lacks for it."""
    lacking = [tool for tool in TOOLS if shutil.which(tool) is None]
    return lacking if os.geteuid() == 0 else [*lacking, "root"]


class Buildah:
    """Buildah with images of its own, in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._options = ["--root", str(folder / "store"), "--runroot", str(folder / "run")]
        self._env = os.environ | {"BUILDAH_ISOLATION": "chroot"}

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """One to its end."""
        return subprocess.run(
            ["buildah", *self._options, *arguments], env=self._env, capture_output=True, text=True, check=False
        )

    def __call__(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert done.returncode == 0, (arguments, done.stdout[-3000:], done.stderr[-3000:])
        return done.stdout.strip()

    def start(self, log: Path, *arguments: str) -> "subprocess.Popen[bytes]":
        """One that goes on."""
        with log.open("ab") as output:
            return subprocess.Popen(
                ["buildah", *self._options, *arguments], env=self._env, stdout=output, stderr=output
            )

    def has(self, image: str) -> bool:
        return image in self("images", "--format", "{{.Name}}:{{.Tag}}").splitlines()

    def debian(self, image: str, suite: str, packages: str) -> None:
        """An image of Debian's packages, if it is not there yet."""
        if self.has(image):
            return
        root = self._folder / suite
        shutil.rmtree(root, ignore_errors=True)
        command = ["debootstrap", "--variant=minbase", f"--include={packages}", suite, str(root)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
        if (root / "usr/bin/python3").exists():
            (root / "usr/bin/python").symlink_to("python3")
        shutil.rmtree(root / "var/cache/apt/archives")
        container = self("from", "scratch")
        self("add", "--quiet", container, str(root), "/")
        self("commit", "--quiet", "--rm", container, image)
        shutil.rmtree(root)

    def build_own_image(self) -> None:
        """The image of the Dockerfile, as it is now.

        CONTAINERS_PIP_ARGS is its PIP_ARGS, CONTAINERS_VOLUMES what that needs, as HOST:THERE,...
        With CONTAINERS_BUILD=no one that is there is taken as it is.
        """
        if os.environ.get("CONTAINERS_BUILD") == "no" and self.has(OURS):
            return
        volumes = [part for part in os.environ.get("CONTAINERS_VOLUMES", "").split(",") if part]
        mounted = [option for volume in volumes for option in ("--volume", f"{volume}:ro")]
        arguments = {"PYTHON_IMAGE": BASE, "PIP_ARGS": os.environ.get("CONTAINERS_PIP_ARGS", "")}
        given = [option for name, value in arguments.items() for option in ("--build-arg", f"{name}={value}")]
        self(
            "bud", "--layers", "--format", "docker", "--network", "host", *mounted, *given, "--tag", OURS, str(ROOT)
        )


def _is_its_own(process: psutil.Process) -> bool:
    """Whether it is a service's process and none of buildah's; one that ended meanwhile is neither."""
    try:
        name = process.name()
    except psutil.NoSuchProcess:
        return False
    return "buildah" not in name and name != "exe"


@dataclass
class Service:
    """A service of the file, at work in a container of its image."""

    name: str
    said: Mapping[str, Any]
    container: str
    folder: Path
    process: "subprocess.Popen[bytes]"
    log: Path
    health: Sequence[str]

    def inside(self) -> list[psutil.Process]:
        """Its processes, without those of buildah."""
        if self.process.poll() is not None:
            return []
        return [one for one in psutil.Process(self.process.pid).children(recursive=True) if _is_its_own(one)]


class Compose:
    """The file, with services as they come up."""

    def __init__(self, buildah: Buildah, folder: Path, variables: Mapping[str, str]) -> None:
        """``variables``: what stands in the .env file, for the file itself and for our services."""

        def value(found: "re.Match[str]") -> str:
            name, kind, otherwise = found.groups()
            assert kind != ":?" or name in variables, f"{name} has to be set"
            return variables.get(name) or otherwise or ""

        text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
        self.services: dict[str, dict[str, Any]] = yaml.safe_load(REFERENCE.sub(value, text))["services"]
        self.running: dict[str, Service] = {}
        self._buildah = buildah
        self._folder = folder
        self._variables = variables

    def up(self, name: str, *, instead: Sequence[str] = (), user: str = "", volumes: Sequence[str] = ()) -> Service:
        """Start a service once what it depends on is as far as the file says.

        Args:
            instead: of the entry point of an image that cannot be had here.
        """
        said = self.services[name]
        for other, wanted in said.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                self.healthy(self.running[other])
            else:
                assert self.running[other].process.wait(PATIENCE_SECONDS) == 0, self.running[other].log.read_text()
        ours = not instead
        hosts = [option for other in self.services for option in ("--add-host", f"{other}:127.0.0.1")]
        container = self._buildah("from", "--pull-never", *hosts, OURS if ours else SERVERS)
        env = {**(self._variables if ours else {}), **said.get("environment", {})}
        options = [option for key, value in env.items() for option in ("--env", f"{key}={value}")]
        options += [option for volume in volumes for option in ("--volume", volume)]
        options += [option for place in said.get("tmpfs", []) for option in ("--mount", f"type=tmpfs,dst={place}")]
        options += [option for capability in said.get("cap_drop", []) for option in ("--cap-drop", capability)]
        options += ["--user", user] if user else []
        command = list(instead) if instead else ["engram", *said["command"]]
        folder = Path(self._buildah("mount", container))
        log = self._folder / f"{name}.log"
        process = self._buildah.start(log, "run", *options, container, "--", *command)
        check = said.get("healthcheck", {}).get("test", [])
        service = Service(name, said, container, folder, process, log, self._check(check, ours=ours))
        self.running[name] = service
        return service

    def _check(self, test: Sequence[str], *, ours: bool) -> list[str]:
        """The health check as it is run: the service's, or the image's."""
        if not test and ours:
            image = json.loads(self._buildah("inspect", "--type", "image", OURS))
            test = image["Docker"]["config"]["Healthcheck"]["Test"]
        match list(test):
            case ["CMD", *command]:
                return command
            case ["CMD-SHELL", line]:
                return ["sh", "-c", line]
        return []

    def run_in(self, name: str, *command: str) -> "subprocess.CompletedProcess[str]":
        """As ``docker compose exec``: beside the service's process, with its user, environment and mounts."""
        inside = self.running[name].inside()
        assert inside, self.running[name].log.read_text()
        process = inside[0]
        user, group = process.uids().real, process.gids().real
        entered = [
            "nsenter",
            f"--target={process.pid}",
            "--mount",
            "--root",
            f"--setuid={user}",
            f"--setgid={group}",
        ]
        return subprocess.run(
            [*entered, "--", *command], env=process.environ(), capture_output=True, text=True, check=False
        )

    def is_healthy(self, service: Service) -> bool:
        """What its health check says."""
        assert service.process.poll() is None, service.log.read_text()
        return bool(service.inside()) and self.run_in(service.name, *service.health).returncode == 0

    def healthy(self, service: Service) -> None:
        """Wait until its health check says so."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self.is_healthy(service):
            assert time.monotonic() < deadline, service.log.read_text()
            time.sleep(0.5)

    def stop(self, service: Service) -> int:
        """Tell it to end, as ``docker compose stop`` does, and wait as long as the file says; the exit code."""
        patience = float(service.said.get("stop_grace_period", "10s").removesuffix("s"))
        inside = service.inside()
        for process in inside[-1:] if service.name in ("postgres", "redis") else inside:
            process.terminate()
        return service.process.wait(patience)

    def down(self) -> None:
        """End whatever runs and forget the containers."""
        for service in reversed(self.running.values()):
            for process in service.inside():
                process.kill()
            service.process.wait(PATIENCE_SECONDS)
            self._buildah("umount", service.container)
            self._buildah("rm", service.container)
