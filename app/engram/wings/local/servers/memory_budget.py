"""Memory in which the embedded Postgres may cache pages."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

MEGABYTE = 2**20
SHARE = 8
"""The machine's memory over what Postgres keeps pages in: encoders are beside it, and the system keeps files."""
LEAST_MB, MOST_MB = 128, 4096
"""The more there is, the longer a start takes, which writes a few bytes for each page that could be kept."""
LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))
"""Of a container, where it has one, in bytes or as "max"."""


def machine_bytes(limits: Sequence[Path] = LIMITS) -> int:
    """Memory that this process may use: the machine's, or its container's if that is less."""
    byte_limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for limit in limits:
        with contextlib.suppress(OSError, ValueError):
            byte_limits.append(int(limit.read_text().strip()))
    return min(byte_limits)


def compute_cache_mb(machine: int) -> int:
    """Megabytes of pages that Postgres keeps on a machine of so many bytes, unless it is told."""
    return min(max(machine // SHARE // MEGABYTE, LEAST_MB), MOST_MB)
