"""Runs ``soak.run`` with what benchmarks share, and with tests that make and compare replicas."""

import sys
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(BENCHMARKS), str(BENCHMARKS.parent)]

from soak.run import main  # noqa: E402

main()
