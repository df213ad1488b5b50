"""Make what a release publishes in build/release, and run the README's tour with the installed wheels.

    python deploy/release.py                     source archives, wheels, npm archive, image, SBOM, notes, checksums
    python deploy/release.py --no-image          the same without the image
    python deploy/release.py --packages FOLDER   source archives and wheels alone, in this folder

It needs npm, and Docker or buildah (as root, as it works in a chroot) for the image. IMAGE_ARGS are further
arguments of `docker build` or `buildah bud`, such as `--build-arg PYTHON_IMAGE=...`.
"""

import argparse
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "release"
PACKAGES = (
    ".",
    "clients/python",
    "evaluation",
    "integrations/haystack",
    "integrations/langchain",
    "integrations/llamaindex",
    "integrations/mcp",
    "integrations/pull",
)
"""Folders of the Python packages."""
CHECKSUMS, NOTES = "SHA256SUMS", "NOTES.md"
BUILD = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"


def run(*command: str, folder: Path = ROOT, env: dict[str, str] | None = None) -> None:
    """Run a command whose output is shown; raises ``CalledProcessError`` if it fails."""
    subprocess.run(command, cwd=folder, env=os.environ | (env or {}), check=True, stdout=sys.stderr)


def make_packages(folder: Path) -> None:
    """Make the source archive of each package, and its wheel from this archive alone."""
    folder.mkdir(parents=True, exist_ok=True)
    for package in PACKAGES:
        with tempfile.TemporaryDirectory() as unpacked:
            run(sys.executable, "-W", "ignore", "-c", BUILD, unpacked, "--quiet", folder=ROOT / package)
            (archive,) = Path(unpacked).glob("*.tar.gz")
            with tarfile.open(archive) as tar:
                tar.extractall(unpacked, filter="data")
            source = archive.with_name(archive.name.removesuffix(".tar.gz"))
            pip = (sys.executable, "-m", "pip", "--quiet", "wheel", "--no-deps", "--no-build-isolation")
            run(*pip, "--wheel-dir", str(folder), str(source))
            shutil.move(archive, folder / archive.name)


def make_npm_archive(folder: Path) -> None:
    """Pack the TypeScript client, which npm builds first."""
    run("npm", "pack", "--silent", "--pack-destination", str(folder), folder=ROOT / "clients" / "typescript")


def find_image_builder() -> str | None:
    """Name the program that builds images: Docker where its engine answers, or buildah; None without both."""
    if shutil.which("docker"):
        version = subprocess.run(["docker", "version"], capture_output=True, check=False)
        if version.returncode == 0:
            return "docker"
    return "buildah" if shutil.which("buildah") else None


def make_image(folder: Path, version: str, builder: str) -> None:
    """Build the image of the Dockerfile, and write it to an archive for `docker load`."""
    name, archive = f"engram:{version}", folder / f"engram-image-{version}.tar"
    arguments = shlex.split(os.environ.get("IMAGE_ARGS", ""))
    if builder == "docker":
        run("docker", "build", *arguments, "--tag", name, ".")
        run("docker", "save", "--output", str(archive), name)
    else:
        run("buildah", "bud", "--isolation", "chroot", "--format", "docker", *arguments, "--tag", name, ".")
        run("buildah", "push", "--quiet", name, f"docker-archive:{archive}:{name}")


def extract_notes(changelog: str, version: str) -> str:
    """Return what the changelog says of a version: its section, or the one that is not released yet.

    Raises:
        ValueError: the changelog has neither section.
    """
    sections = dict(
        re.findall(r"^## \[?([^\s\]]+)\]?[^\n]*\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL)
    )
    for title in (version, "Unreleased"):
        if title in sections:
            return f"# Engram {version}\n\n{sections[title].strip()}\n"
    raise ValueError(f"The changelog has no section {version}, and none that is unreleased.")


def write_checksums(folder: Path) -> None:
    """Write the SHA-256 of every file, as `sha256sum --check` reads it."""
    files = sorted(path for path in folder.iterdir() if path.name != CHECKSUMS)
    lines = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files]
    (folder / CHECKSUMS).write_text("".join(lines), encoding="utf-8")


def run_tour(folder: Path) -> None:
    """Install the wheels of a folder in an empty environment, and run the README's commands there."""
    test = "tests/test_documented_commands.py::test_the_readme_holds_without_a_checkout"
    run(sys.executable, "-m", "pytest", "-n", "0", "-m", "index", test, env={"RELEASED_WHEELS": str(folder)})


def release(folder: Path, *, builder: str | None) -> None:
    """Make all files of the release anew, then take the tour."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    shutil.rmtree(folder, ignore_errors=True)
    make_packages(folder)
    make_npm_archive(folder)
    if builder is not None:
        make_image(folder, version, builder)
    run(sys.executable, "deploy/sbom.py", "--check")
    shutil.copy(ROOT / "sbom.json", folder / "sbom.cdx.json")
    notes = extract_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    (folder / NOTES).write_text(notes, encoding="utf-8")
    write_checksums(folder)
    run_tour(folder)
    sys.stdout.writelines(f"{path.relative_to(ROOT)}\n" for path in sorted(folder.iterdir()))


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--no-image", action="store_true", help="Make no container image.")
    parser.add_argument("--packages", type=Path, metavar="FOLDER", help="Make source archives and wheels alone.")
    arguments = parser.parse_args()
    if arguments.packages is not None:
        make_packages(arguments.packages.resolve())
        return
    builder = None if arguments.no_image else find_image_builder()
    if builder is None and not arguments.no_image:
        parser.error("neither a Docker engine nor buildah is here for the image. Install one, or say --no-image.")
    if shutil.which("npm") is None:
        parser.error("npm is not here to pack the TypeScript client.")
    release(FOLDER, builder=builder)


if __name__ == "__main__":
    main()
