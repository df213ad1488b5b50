"""CycloneDX 1.6 document of the image: every package of the lock file with the hash of each file.

    python deploy/sbom.py             writes sbom.json
    python deploy/sbom.py --check     exits with 1 if it is not in step with requirements.lock and weights.txt

It is a function of these files and of the version, so the same lock makes the same bytes. A package that only some
platforms take is there with the condition under which it is installed.
"""

import json
import re
import sys
import tomllib
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCK, WEIGHTS, PROJECT, DOCUMENT = (
    ROOT / name for name in ("requirements.lock", "weights.txt", "pyproject.toml", "sbom.json")
)
PINNED = re.compile(r"([A-Za-z0-9._-]+)==([^\s;\\]+)\s*(?:;\s*([^\\]+?))?\s*(?:\\|$)")
HASH = re.compile(r"--hash=(sha256):([0-9a-f]{64})")
NAMESPACE = uuid.UUID("6d3c6a43-6f0b-5a6e-9d0f-3b8d7a6f4c11")


def packages(text: str) -> Iterator[dict[str, Any]]:
    """The packages that a requirements file pins.

    Raises:
        ValueError: a line is neither a comment, a pinned package nor a hash.
    """
    component: dict[str, Any] | None = None
    for line in text.splitlines():
        requirement = line.strip()
        if not requirement or requirement.startswith("#"):
            continue
        if component is not None and (found := HASH.match(requirement)):
            component.setdefault("hashes", []).append({"alg": "SHA-256", "content": found[2]})
            continue
        pinned = PINNED.match(requirement)
        if pinned is None:
            raise ValueError(f"{requirement!r} pins no package.")
        if component is not None:
            yield component
        name, version, condition = pinned.groups()
        purl = f"pkg:pypi/{re.sub(r'[-_.]+', '-', name).lower()}@{version}"
        component = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
        if condition:
            component["properties"] = [{"name": "engram:condition", "value": condition}]
    if component is not None:
        yield component


def document() -> dict[str, Any]:
    """The whole of it."""
    lock, weights = LOCK.read_text(encoding="utf-8"), WEIGHTS.read_text(encoding="utf-8")
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    components = sorted([*packages(lock), *packages(weights)], key=lambda one: one["purl"])
    own = f"pkg:pypi/{project['name']}@{project['version']}"
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(NAMESPACE, f'{own}{lock}{weights}')}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": project["name"],
                "version": project["version"],
                "purl": own,
                "licenses": [{"license": {"id": project["license"]}}],
            }
        },
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": [one["bom-ref"] for one in components]}],
    }


def main(arguments: list[str]) -> int:
    """Write it, or compare."""
    text = f"{json.dumps(document(), indent=1)}\n"
    if "--check" not in arguments:
        DOCUMENT.write_text(text, encoding="utf-8")
        return 0
    if DOCUMENT.is_file() and DOCUMENT.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write("sbom.json is not in step with requirements.lock: python deploy/sbom.py\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
