"""Shell commands and Python pieces of a page, run as a reader would run them.

A block that cannot run by itself stands below a comment ``<!-- not run: the reason -->``. Words in capitals such as
``QUERY_ID`` stand for what earlier commands printed; ``PLACEHOLDERS`` says where to look for each.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.environment import drop_settings
from tests.support.forks import ROOT, open_server

FORKED_COMMAND = Path(__file__).with_name("forked_command.py")
FENCE = re.compile(
    r"^(?:<!-- not run: (?P<reason>[^\n]+) -->\n)?```(?P<language>sh|python|py)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
COMMAND = re.compile(r"\n(?=engram |curl |\.venv/)")
"""Where the next command of a block begins: it may need what the one before it printed."""
PLACEHOLDERS = {
    "QUERY_ID": r'"query_id":"([0-9a-f-]{36})"|^query ([0-9a-f-]{36}):',
    "FEEDBACK_ID": r'"feedback_id":(\d+)|^feedback (\d+): ',
    "SENTENCE_ID": r'"sentence_id":(\d+)|^ +\[(\d+)\]',
    "GENERATION": r"^ *generation (\d+)",
    "FACT": r"^(?:fact )?(\d+): ",
}
"""Words that a reader replaces, each with what shows its value in an output; the last occurrence counts."""
DATA_FOLDER = "/srv/engram"
"""Data folder that pages name, where they do not use the default."""
WAIT_SECONDS = 400.0


@dataclass(frozen=True)
class Block:
    """A fenced block of a page. ``reason`` says why it is not run; None if it is."""

    page: str
    line: int
    language: str
    text: str
    reason: str | None


def blocks(page: Path) -> list[Block]:
    """Blocks of shell and Python of a page, in its order."""
    text = page.read_text(encoding="utf-8")
    return [
        Block(page.name, text.count("\n", 0, match.start()) + 1, match["language"], match["text"], match["reason"])
        for match in FENCE.finditer(text)
    ]


class Reader:
    """Somebody who runs the blocks of one page in order and in one shell, against a running service.

    Args:
        folder: the working directory.
        url: base URL of the service.
        env: variables of the environment; nothing in it does what the page tells the reader to do.
        data_folder: data folder of the service, for a page that names one.
        shell_state: file that keeps what the page exports, and its aliases, for the next block.
        python: of another environment, where each block of Python runs by itself; else blocks share this process.
    """

    def __init__(
        self,
        folder: Path,
        url: str,
        env: Mapping[str, str],
        *,
        data_folder: Path,
        shell_state: Path,
        python: Path | None = None,
    ) -> None:
        self._folder = folder
        self._url = url
        self._env = dict(env)
        self._data_folder = data_folder
        self._shell_state = shell_state
        self._python = python
        self._names: dict[str, Any] = {"__name__": "__main__"}
        self.output = ""

    def run(self, block: Block) -> str:
        """Run one block and return its output; AssertionError if a command fails."""
        output = ""
        for command in re.split(COMMAND, block.text) if block.language == "sh" else [block.text]:
            text = self._fill(command)
            printed = self._run_shell(text, block) if block.language == "sh" else self._run_python(text)
            self.output += printed
            output += printed
        return output

    def _fill(self, text: str) -> str:
        for address in ("http://127.0.0.1:8000", "http://localhost:8000", "localhost:8000"):
            text = text.replace(address, self._url)
        text = text.replace(DATA_FOLDER, str(self._data_folder))
        for name, pattern in PLACEHOLDERS.items():
            if name in text:
                values = re.findall(pattern, self.output, re.MULTILINE)
                assert values, f"no output shows a value for {name}: {self.output[-2000:]}"
                last = values[-1]
                text = re.sub(rf"\b{name}\b", last if isinstance(last, str) else next(filter(None, last)), text)
        return text

    def _run_shell(self, text: str, block: Block) -> str:
        self._shell_state.touch()
        state = shlex.quote(str(self._shell_state))
        before = f"shopt -s expand_aliases\nset -eo pipefail\n. {state}"
        after = f"{{ export -p; alias -p; }} >{state}"
        done = subprocess.run(
            ["bash", "-c", f"{before}\n{text}\n{after}"],
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
            check=False,
            pass_fds=[int(self._env["FORKS"])] if "FORKS" in self._env else [],
        )
        where = f"{block.page}:{block.line}"
        assert done.returncode == 0, f"{where}\n{text}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        assert "problem:" not in done.stdout, f"{where}: the service refused a request\n{done.stdout[-2000:]}"
        return done.stdout

    def _run_python(self, text: str) -> str:
        if self._python is not None:
            command = [str(self._python), "-c", text]
            return subprocess.run(
                command, cwd=self._folder, env=self._env, capture_output=True, text=True, check=True
            ).stdout
        printed = io.StringIO()
        with environment(self._env), contextlib.redirect_stdout(printed):
            exec(compile(text, "<page>", "exec"), self._names)
        return printed.getvalue()


@contextlib.contextmanager
def environment(env: Mapping[str, str]) -> Iterator[None]:
    """Let this process have these variables for a while."""
    before = dict(os.environ)
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def checkout(folder: Path) -> dict[str, str]:
    """Make a folder look like a checkout after ``make run``, its command forked; return a reader's environment.

    The environment has no setting of Engram, and ``PATH`` leads to none of its commands: pages say how to get them.
    """
    program = folder / ".venv" / "bin" / "engram"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!{sys.executable} -IS\n{FORKED_COMMAND.read_text(encoding='utf-8')}", encoding="utf-8")
    program.chmod(0o755)
    for name in ("clients", "evaluation_sets", "deploy"):
        (folder / name).symlink_to(ROOT / name)
    variables = drop_settings()
    own = {Path(sys.prefix, "bin"), Path(sys.executable).parent}
    path = os.pathsep.join(entry for entry in variables["PATH"].split(os.pathsep) if Path(entry) not in own)
    return variables | {"PATH": path, "COLUMNS": "200", "FORKS": str(open_server().fileno())}
