"""What others stored cannot command the terminal of whoever prints it."""

import ast
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

import engram.cli
from engram.cli import progress_bars, terminal

_COUNTED = re.compile(r"\{(?:len\([\w.]+\)|[\w.]*count)\} [a-z]+s\b")
"""A number before a noun that is always written as many: "1 workers"."""
_NO_ENGLISH = ("look collections of", "given to none", "run those for them")
HOSTILE = {
    "\x1b]0;owned\x07": "\\x1b]0;owned\\x07",
    "\x1b]52;c;ZXZpbA==\x1b\\": "\\x1b]52;c;ZXZpbA==\\x1b\\",
    "\x9b31mred": "\\x9b31mred",
    "a\u202eb\u2066c\u200f": "a\\u202eb\\u2066c\\u200f",
    "one\rtwo\x08\x7f": "one\\rtwo\\x08\\x7f".replace("\\r", "\\x0d"),
    "tag\U000e0041": "tag\\U000e0041",
}
PLAIN_TEXT = "Zoë said 名前 — 👩‍👩‍👧 «ok»"


def files() -> list[Path]:
    """Modules of commands, those of wings included."""
    folder = Path(engram.cli.__file__).parent
    paths = [*folder.glob("*.py"), *folder.parent.glob("wings/*/cli/*.py")]
    return [path for path in sorted(paths) if path.name != "terminal.py"]


def prints(call: ast.Call) -> bool:
    """Whether the call writes to the terminal by itself."""
    function = call.func
    if isinstance(function, ast.Name):
        return function.id in {"print", "Console"}
    if not isinstance(function, ast.Attribute):
        return False
    written = ast.unparse(function)
    return function.attr in {"print", "echo", "secho"} or written.startswith(("sys.stdout", "sys.stderr"))


def test_all_commands_print_by_the_functions_of_terminal() -> None:
    found = [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for path in files()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and prints(node)
    ]
    assert found == []


def test_numbers_agree_with_their_nouns() -> None:
    found = {path.name: _COUNTED.findall(text) for path in files() if (text := path.read_text())}
    assert not {name: wrong for name, wrong in found.items() if wrong}
    assert not [path for path in files() if any(phrase in path.read_text() for phrase in _NO_ENGLISH)]


@pytest.mark.parametrize("text", HOSTILE)
def test_say_shows_controls(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.open_console.cache_clear()
    terminal.say(text)
    assert capsys.readouterr().out == f"{HOSTILE[text]}\n"


@pytest.mark.parametrize("text", HOSTILE)
def test_complaints_show_controls(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.err.cache_clear()
    terminal.complain(f"x{text}x")
    printed = capsys.readouterr().err
    assert printed.isprintable() or printed.rstrip("\n").isprintable()


@pytest.mark.parametrize("text", HOSTILE)
def test_tables_show_controls_and_stay_aligned(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.open_console.cache_clear()
    terminal.say_table([[text, "1"], ["a\nb", "2"]], "<>")
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"{HOSTILE[text]}  1"
    assert second.startswith("a\\nb ")
    assert len(first) == len(second)


@pytest.mark.parametrize("text", [*HOSTILE, "\ud800", "\u2028"])
def test_json_is_escaped_and_says_the_same(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say_json({text: [text]})
    printed = capsys.readouterr().out
    assert all(line.isprintable() for line in printed.splitlines())
    assert json.loads(printed) == {text: [text]}


def test_labels_of_bars_show_controls() -> None:
    file = io.StringIO()
    with progress_bars.progress_bar(Console(file=file, force_terminal=False)) as bars:
        bars.add_task("\x1b]0;owned\x07\u202e", total=1)
    assert "\\x1b]0;owned\\x07\\u202e" in file.getvalue()


def test_printable_text_is_unchanged(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.open_console.cache_clear()
    terminal.say(PLAIN_TEXT)
    terminal.say_json(PLAIN_TEXT)
    assert capsys.readouterr().out == f'{PLAIN_TEXT}\n"{PLAIN_TEXT}"\n'
