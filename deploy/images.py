"""The images that ours is made of and runs beside, held to their digests.

    python deploy/images.py             asks the registry for each, writes NAME:TAG@sha256:... where NAME:TAG stands
    python deploy/images.py --check     writes nothing; exits with 1 if one has no digest or its tag another by now
    python deploy/images.py --registry mirror.example:5000     asks that one instead, for the same names

It needs skopeo, which finds the registry of names without a host, and logs in (`skopeo login`), as Docker does. A
digest is the SHA-256 of the manifest as the registry sent it: for an image of several platforms that of their list.
"""

import argparse
import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
OWN_IMAGE = "engram"
"""Built here: ``kustomize edit set image`` says which one of it runs."""
_REFERENCE = r"(?P<name>[a-z0-9][a-z0-9./_-]*):(?P<tag>[\w][\w.-]*)(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
_PLACES = {
    "Dockerfile": rf"(?<=^ARG PYTHON_IMAGE=){_REFERENCE}$",
    "docker-compose.yml": rf"(?<=_IMAGE:-){_REFERENCE}(?=\}})",
    "deploy/kubernetes/*.yaml": rf"(?<=image: )(?!{OWN_IMAGE}:){_REFERENCE}$",
}
"""Files, and where in them an image is named."""
PATIENCE_SECONDS = 120
Resolve = Callable[[str], str]
"""NAME:TAG -> its digest."""


class ImageError(Exception):
    """An image's digest cannot be had."""


@dataclass(frozen=True, slots=True)
class ImageReference:
    """An image as a file names it; ``digest`` is None where only the tag says which."""

    file: Path
    image: str
    digest: str | None


def list_references(root: Path = ROOT) -> Iterator[ImageReference]:
    """All images that the files name, but our own."""
    for file, pattern in _files(root):
        for found in pattern.finditer(file.read_text(encoding="utf-8")):
            yield ImageReference(file, f"{found['name']}:{found['tag']}", found["digest"])


def pin(digests: Mapping[str, str], root: Path = ROOT) -> list[Path]:
    """Write the digests beside the tags; the files that this changed."""
    changed = []
    for file, pattern in _files(root):
        before = file.read_text(encoding="utf-8")

        def append_digest(match: "re.Match[str]") -> str:
            image = f"{match['name']}:{match['tag']}"
            return f"{image}@{digests[image]}"

        after = pattern.sub(append_digest, before)
        if after != before:
            file.write_text(after, encoding="utf-8")
            changed.append(file)
    return changed


def list_mismatches(digests: Mapping[str, str], root: Path = ROOT) -> list[str]:
    """A line for each image that is not held to the digest that its tag has."""
    lines = []
    for one in list_references(root):
        place = f"{one.file.relative_to(root)}: {one.image}"
        if one.digest is None:
            lines.append(f"{place} is held by its tag alone, which has {digests[one.image]}")
        elif one.digest != digests[one.image]:
            lines.append(f"{place} is held to {one.digest}, and its tag has {digests[one.image]} by now")
    return lines


def build_resolver(registry: str | None = None, *, plain_http: bool = False) -> Resolve:
    """Build a resolver that asks the registry itself.

    Args:
        registry: HOST or HOST:PORT to ask instead of the one that the name says or, without one, Docker's own.
    """

    def digest(image: str) -> str:
        address = f"docker://{image}" if registry is None else f"docker://{registry}/{image}"
        command = ["skopeo", "inspect", "--raw", *(["--tls-verify=false"] if plain_http else []), address]
        try:
            done = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise ImageError(f"{image}: the registry did not answer within {PATIENCE_SECONDS} s.") from error
        if done.returncode:
            raise ImageError(f"{image}: {done.stderr.decode(errors='replace').strip()}")
        return f"sha256:{hashlib.sha256(done.stdout).hexdigest()}"

    return digest


def _files(root: Path) -> Iterator[tuple[Path, "re.Pattern[str]"]]:
    for place, pattern in _PLACES.items():
        for file in sorted(root.glob(place)):
            yield file, re.compile(pattern, re.MULTILINE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Hold images to their digests.")
    parser.add_argument("--check", action="store_true", help="Write nothing; exit with 1 if one is not held.")
    parser.add_argument("--registry", help="HOST or HOST:PORT to ask, for names without a host.")
    parser.add_argument("--plain-http", action="store_true", help="Speak to it without TLS.")
    arguments = parser.parse_args()
    if shutil.which("skopeo") is None:
        sys.exit("images.py needs skopeo, which asks registries: install its package.")
    resolve = build_resolver(arguments.registry, plain_http=arguments.plain_http)
    try:
        digests = {image: resolve(image) for image in sorted({one.image for one in list_references()})}
    except ImageError as error:
        sys.exit(str(error))
    if arguments.check:
        if lines := list_mismatches(digests):
            sys.exit("\n".join(lines))
        sys.stdout.write(f"{len(digests)} images are held to the digests of their tags\n")
        return
    for image, digest in digests.items():
        sys.stdout.write(f"{image} {digest}\n")
    changed = ", ".join(str(file.relative_to(ROOT)) for file in pin(digests))
    sys.stdout.write(f"written: {changed or 'nothing, they stood there'}\n")


if __name__ == "__main__":
    main()
