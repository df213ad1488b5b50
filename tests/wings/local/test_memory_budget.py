"""How much memory the embedded Postgres takes for its pages."""

from pathlib import Path

import pytest

from engram.wings.local.servers.memory_budget import MEGABYTE, compute_cache_mb, machine_bytes

GIGABYTE = 1024 * MEGABYTE


@pytest.mark.parametrize(
    ("machine", "kept"),
    [
        (512 * MEGABYTE, 128),  # no less, however small it is
        (2 * GIGABYTE, 256),
        (24 * GIGABYTE, 3072),
        (256 * GIGABYTE, 4096),  # no more, however large
    ],
)
def test_memory_budget_is_an_eighth_within_bounds(machine: int, kept: int) -> None:
    assert compute_cache_mb(machine) == kept


def test_a_container_has_what_it_is_allowed(tmp_path: Path) -> None:
    whole = machine_bytes(())
    limit, none, absent = tmp_path / "limit", tmp_path / "none", tmp_path / "absent"
    limit.write_text(f"{64 * MEGABYTE}\n")
    none.write_text("max\n")
    assert whole > 64 * MEGABYTE
    assert machine_bytes([limit, none, absent]) == 64 * MEGABYTE
    assert machine_bytes([none, absent]) == whole
