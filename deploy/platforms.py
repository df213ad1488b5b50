"""For which Pythons and platforms the package index has wheels of all dependencies, so that nothing is compiled.

    python deploy/platforms.py             writes the table into docs/operations.md
    python deploy/platforms.py --check     exits with 1 where the table says otherwise

It takes some minutes. pip resolves for another platform without installing; markers about the Python version are
those of the Python that runs this.
"""

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "operations.md"
BEGIN, END = "<!-- wheels -->\n", "<!-- end of wheels -->\n"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {
    "Linux x86-64": ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64"),
    "Linux arm64": ("manylinux_2_28_aarch64", "manylinux_2_17_aarch64", "manylinux2014_aarch64"),
    "macOS arm64": ("macosx_14_0_arm64", "macosx_12_0_arm64", "macosx_11_0_arm64"),
}
"""Names -> tags of wheels that such a machine takes, the newest first."""


def list_requirements() -> list[str]:
    """The service's requirements, those of importing among them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *project["optional-dependencies"]["import"]]


def find_missing(python: str, platform: str) -> str | None:
    """Return what pip says is missing; None if there are wheels for everything."""
    with tempfile.TemporaryDirectory() as folder:
        tags = [part for tag in PLATFORMS[platform] for part in ("--platform", tag)]
        done = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--dry-run",
             "--ignore-installed", "--only-binary", ":all:", "--python-version", python, *tags,
             "--target", folder, *list_requirements()],
            capture_output=True,
            text=True,
            check=False,
        )  # fmt: skip
    if done.returncode == 0:
        return None
    return next(line for line in reversed(done.stderr.splitlines()) if line.startswith("ERROR: "))


def make_table() -> str:
    """The table as it stands on the page."""
    lines = [f"| | {' | '.join(PYTHONS)} |\n", f"|---|{'---|' * len(PYTHONS)}\n"]
    for platform in PLATFORMS:
        cells = []
        for python in PYTHONS:
            missing = find_missing(python, platform)
            sys.stderr.write(f"{platform}, Python {python}: {missing or 'all wheels'}\n")
            cells.append("no" if missing else "yes")
        lines.append(f"| {platform} | {' | '.join(cells)} |\n")
    return "".join(lines)


def main() -> None:
    """Write or check the table."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    stated, after = rest.split(END)
    table = make_table()
    if sys.argv[1:] == ["--check"]:
        sys.exit(None if stated == table else f"{PAGE.name} states other wheels than the index has.")
    PAGE.write_text(f"{before}{BEGIN}{table}{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
