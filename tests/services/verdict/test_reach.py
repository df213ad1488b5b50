"""How many files a reader of a verdict may have to open.

A rise needs a reason. One was the scatter of wordings, others which text of a sentence was judged, or returned; the
last that pairs of questions and what is believed of them left ``same_need``.
"""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import engram

ROOT = Path(engram.__file__).parent
NOT_FOLLOWED = ("context", "telemetry", "config", "providers", "core.auth", "services.auth", "services.encoders")
"""Parts that all features share: errors, metrics, models, and who asks."""


def find_file(module: str) -> Path | None:
    """Find the file of a module below ``engram``; None for a package or a name in a module."""
    path = ROOT.joinpath(*module.split(".")[1:]).with_suffix(".py")
    return path if path.exists() else None


def is_followed(module: str) -> bool:
    """Whether a module counts. Modules right in ``storage``, such as ``database``, are shared as well."""
    below = module.removeprefix("engram.")
    is_shared = any(f"{below}.".startswith(f"{part}.") for part in NOT_FOLLOWED)
    return not is_shared and not (below.startswith("storage.") and below.count(".") == 1)


def list_imports(module: str) -> Iterator[str]:
    """List the modules of ``engram`` that a module imports, wherever the statement stands."""
    file = find_file(module)
    assert file is not None, module
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith("engram."):
            for name in node.names:
                both = (f"{node.module}.{name.name}", node.module)
                yield from [one for one in both if find_file(one) is not None][:1]


def collect_reached(packages: Iterable[str]) -> set[str]:
    """Collect the modules of the packages and all that they import, directly or through others."""
    waiting = [
        f"engram.{package.replace('/', '.')}.{file.stem}"
        for package in packages
        for file in (ROOT / package).glob("*.py")
        if file.stem != "__init__"
    ]
    reached = set(waiting)
    while waiting:
        new = {one for one in list_imports(waiting.pop()) if is_followed(one)} - reached
        reached |= new
        waiting += new
    return reached


@pytest.mark.parametrize(
    ("packages", "most"), [(["services/verdict"], 30), (["services/verdict", "services/effects"], 60)]
)
def test_few_files_are_reached(packages: list[str], most: int) -> None:
    """Modules count that are imported from these packages, through any number of others, but for shared parts.

    Shared parts are neither counted nor followed: see ``NOT_FOLLOWED`` and ``is_followed``.
    """
    reached = collect_reached(packages)
    assert len(reached) <= most, "\n".join(sorted(reached))


def test_no_effect_is_reached_from_the_way_of_a_verdict() -> None:
    """A learner knows effects by their steps alone, so another one changes nothing there."""
    reached = collect_reached(["services/verdict"])
    assert {"engram.services.verdict.learn", "engram.storage.feedback_log.event_intake"} <= reached
    effects = ("engram.services.effects", "engram.services.feedback_log", "engram.wings")
    assert not [one for one in reached if one.startswith(effects)]
