"""Tests that fail or end their process are reported by the process that forked theirs."""

from pathlib import Path

from tests.support import forks
from tests.support.environment import drop_settings

FORKING = """
from tests.support.forked_tests import run_forked


def pytest_runtestloop(session):
    run_forked(session, 1)
    return True
"""
FILES = {
    "test_failing.py": "def test_right(): pass\ndef test_wrong(): assert 1 == 2\n",
    "test_leaving.py": "import os\ndef test_leaves(): os._exit(3)\ndef test_later(): pass\n",
    "test_endless.py": "import pytest, time\n@pytest.mark.timeout(1)\ndef test_waits(): time.sleep(60)\n",
}


def test_failures_and_ends_are_reported(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(FORKING, encoding="utf-8")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    env = drop_settings() | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONPATH": str(forks.ROOT),
        "COLUMNS": "200",  # else lines are cut off
    }

    done = forks.run(
        ["-m", "pytest", "-p", "pytest_timeout", "-rA", "--rootdir", "."], cwd=tmp_path, env=env, timeout=120
    )

    assert done.returncode == 1, (done.stdout, done.stderr)
    for said in (
        "PASSED test_failing.py::test_right",
        "FAILED test_failing.py::test_wrong - assert 1 == 2",
        "FAILED test_leaving.py::test_leaves - The process ended with 3; the rest of its file was not run.",
        "FAILED test_endless.py::test_waits - Failed: Timeout",
    ):
        assert said in done.stdout, done.stdout
    assert "test_later" not in done.stdout
