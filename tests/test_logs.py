"""What a failure leaves in the log: where it happened, and no value of any variable."""

import json
from pathlib import Path

import pytest

from tests.support import forks
from tests.support.environment import drop_settings

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
def test_a_traceback_without_values(log_format: str, tmp_path: Path) -> None:
    done = forks.run(["-c", FAILING, log_format], cwd=tmp_path, env=drop_settings(), timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "ValueError" in done.stderr
    assert "it failed" in done.stderr
    assert "open-sesame" not in done.stderr
    assert "'open-'" not in done.stderr
    if log_format == "json":
        (line,) = done.stderr.splitlines()
        assert json.loads(line)["event"] == "unexpected failure"
