"""The version number: pyproject.toml has it, and this script copies it to every other file that states one.

    python deploy/version.py             writes the files
    python deploy/version.py --check     exits with 1 and names each file that states another version

`openapi/openapi.json` and `sbom.json` are generated with the version: `make docs` and `python deploy/sbom.py`.
"""

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PYTHON = r'^(version = ")[^"]+(")'
NPM = r'^(  "version": ")[^"]+(")'
NPM_LOCK = r'^(  "version": "|    "": \{\n      "name": "[^"]+",\n      "version": ")[^"]+(")'
IMAGE = r"^( *image: engram:)\S+()"
IMAGE_TAG = r"(- name: engram\n +newTag: )\S+()"
PLACES = {
    "clients/python/pyproject.toml": PYTHON,
    "clients/typescript/package.json": NPM,
    "clients/typescript/package-lock.json": NPM_LOCK,
    "console/package.json": NPM,
    "console/package-lock.json": NPM_LOCK,
    "deploy/kubernetes/api.yaml": IMAGE,
    "deploy/kubernetes/kustomization.yaml": IMAGE_TAG,
    "deploy/kubernetes/migrate.yaml": IMAGE,
    "deploy/kubernetes/worker.yaml": IMAGE,
    "docker-compose.yml": IMAGE,
    "evaluation/pyproject.toml": PYTHON,
    "integrations/haystack/pyproject.toml": PYTHON,
    "integrations/langchain/pyproject.toml": PYTHON,
    "integrations/llamaindex/pyproject.toml": PYTHON,
    "integrations/mcp/pyproject.toml": PYTHON,
    "integrations/pull/pyproject.toml": PYTHON,
}
"""Each file with a pattern whose two groups stand around the version."""


def version(root: Path = ROOT) -> str:
    """Read the version from pyproject.toml."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def replace_version(text: str, pattern: str, number: str) -> str:
    """Return the text with this version at every place.

    Raises:
        ValueError: the pattern matches nothing.
    """
    changed, count = re.subn(pattern, rf"\g<1>{number}\g<2>", text, flags=re.MULTILINE)
    if not count:
        raise ValueError("no version is stated")
    return changed


def main(root: Path, *, check: bool) -> int:
    """Write or check all places; returns the exit code."""
    number, stale = version(root), []
    for name, pattern in PLACES.items():
        path = root / name
        text = path.read_text(encoding="utf-8")
        changed = replace_version(text, pattern, number)
        if changed != text:
            stale.append(name)
            if not check:
                path.write_text(changed, encoding="utf-8")
    if check and stale:
        sys.stderr.write(f"Not at version {number}: {', '.join(stale)}. Run `python deploy/version.py`.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(ROOT, check="--check" in sys.argv[1:]))
