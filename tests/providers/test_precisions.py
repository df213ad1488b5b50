"""Recognition of processors with dot products of eight-bit numbers."""

import sys
from pathlib import Path

import pytest

from engram.providers.embedder.precisions import has_dot_products


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("flags\t\t: fpu avx2 avx512f avx512_vnni\n", True),
        ("flags\t\t: fpu avx2 avx_vnni\n", True),
        ("Features\t: fp asimd asimddp\n", True),
        ("flags\t\t: fpu avx2 avx512f\n", False),
        ("Features\t: fp asimd\n", False),
        ("model name\t: avx512_vnni\n", False),
        ("", False),
    ],
)
def test_linux_says_so(text: str, has: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    (tmp_path / "cpuinfo").write_text(text)
    assert has_dot_products(tmp_path / "cpuinfo") is has


def test_a_system_that_does_not_say_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    assert not has_dot_products(tmp_path / "none")


@pytest.mark.parametrize(("machine", "has"), [("arm64", True), ("x86_64", False)])
def test_macs_have_them_on_arm(machine: str, has: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("platform.machine", lambda: machine)
    assert has_dot_products() is has
