"""What a failure leaves in the log: where it happened, and no value of any variable."""

import json
import subprocess
import sys

import pytest

FAILING = """
import structlog, sys
from engram.telemetry import logs

logs.configure(sys.argv[1], "INFO")
secret = "open-" + "sesame"
try:
    raise ValueError("it failed")
except ValueError as error:
    structlog.get_logger().error("unexpected failure", exc_info=error)
"""


@pytest.mark.parametrize("log_format", ["console", "json"])
def test_a_traceback_without_values(log_format: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FAILING, log_format], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == ""
    assert "ValueError" in done.stderr
    assert "it failed" in done.stderr
    assert "open-sesame" not in done.stderr
    assert "'open-'" not in done.stderr
    if log_format == "json":
        (line,) = done.stderr.splitlines()
        assert json.loads(line)["event"] == "unexpected failure"
