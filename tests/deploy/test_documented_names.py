"""Classes, functions, files, settings and commands that the documentation names exist."""

import ast
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from engram.cli import command
from engram.config.settings import Settings
from engram.storage.tables import metadata

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8")
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md")))
}
OTHER_VARIABLES = {
    "ENGRAM_ACCESS_KEY",  # clients
    "ENGRAM_CHROMIUM",  # tests of the console
    "ENGRAM_EVALUATION_CITUS",
    "ENGRAM_EVALUATION_DATA",
    "ENGRAM_EVALUATION_FULL",
    "ENGRAM_EVALUATION_LEAK_REQUESTS",
    "ENGRAM_EVALUATION_LEAK_SEED",
    "ENGRAM_URL",  # clients
}
"""Variables of the environment that are no settings of the service."""
OTHER_CAPITALS = {
    "AWS_ACCESS_KEY_ID",
    "AWS_ENDPOINT_URL",
    "DATABASE_URL",
    "FORWARDED_ALLOW_IPS",
    "INFO",
    "OTEL_TRACES_SAMPLER",
    "PIP_EXTRA_INDEX_URL",
    "PROMETHEUS_MULTIPROC_DIR",
    "QUERY_ID",
    "READ_DATABASE_URL",
    "REDIS_URL",
    "SHA256SUMS",
    "WRONG",
}
"""Variables of the environment without our prefix, a file, and what programs print."""
EXAMPLES = re.compile(r"NAME|\*|titles|path/to/|^(build|reports|\.venv)/|^\.\w+$|^\w+\.(jsonl|tsv)$")
"""Paths of things that a reader makes, or that a command writes."""
READERS_FILES = {
    ".engram-readers.txt",
    "chat_page.py",
    "kv_store_text_chunks.json",
    "NOTES.md",
    "sbom.cdx.json",
    "settings.yaml",
    "travel/trains.md",
}
"""Files that a page has its reader write or find elsewhere."""
OBJECTS = {"answering", "engram", "metadata", "said", "stop", "trace", "work"}
"""Files of readers, fields and variables of the text, of which some are called as a module is."""
SUFFIXES = r"\.(?:py|md|sql|json|jsonl|tsv|service|toml|ya?ml|txt|sh)"


@cache
def tracked_files() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return listed.stdout.splitlines()


@cache
def sources() -> dict[str, str]:
    """Python files that git tracks, and their text."""
    files = [file for file in tracked_files() if file.endswith(".py") and (ROOT / file).exists()]
    return {file: (ROOT / file).read_text(encoding="utf-8") for file in files}


@cache
def find_definitions(owner: str) -> set[str] | None:
    """Find the names that classes, modules or tables of this name define; None if there are none."""
    found = [set(metadata.tables[owner].columns.keys())] if owner in metadata.tables else []
    for file, text in sources().items():
        if Path(file).stem == owner:
            found.append(set(_names(ast.parse(text))))
        if re.search(rf"^ *class {owner}\b", text, re.MULTILINE):
            classes = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef))
            found += [set(_names(node)) for node in classes if node.name == owner]
    return set().union(*found) if found else None


def _names(node: ast.AST) -> Iterator[str]:
    for child in ast.walk(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child.name
        elif isinstance(child, ast.AnnAssign | ast.Assign):
            targets = child.targets if isinstance(child, ast.Assign) else [child.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield target.id
                elif isinstance(target, ast.Attribute):  # self.name = ...
                    yield target.attr


def code_words(page: str) -> list[str]:
    """What stands between single backticks on a page."""
    return re.findall(r"(?<!`)`([^`\n]+)`(?!`)", PAGES[page])


def missing_members(words: list[str]) -> list[str]:
    """Words of the shape `Class.method` or `module.function` whose class or module lacks it."""
    missing = []
    for word in words:
        match = re.match(r"(?:[\w/]+/)?([A-Za-z_]\w*)\.([A-Za-z_]\w*)(?:\(.*\))?$", word)
        if match is None or re.search(f"{SUFFIXES}$", word):
            continue
        owner, member = match.groups()
        known = find_definitions(owner)
        is_class = owner[0].isupper() and not owner.isupper()
        is_module = "/" in word or (known is not None and owner not in OBJECTS)
        if (is_class or is_module) and member not in (known or ()):
            missing.append(word)
    return missing


def missing_constants(words: list[str]) -> list[str]:
    """Words of the shape `CONSTANT`, `_PRIVATE` or `_private_function` that no module defines."""
    missing = []
    for word in words:
        is_name = re.fullmatch(r"_?[A-Z][A-Z0-9_]{3,}|_[a-z]\w*", word) and not word.startswith("ENGRAM_")
        if not is_name or word in OTHER_CAPITALS:
            continue
        definition = re.compile(rf"^ *(?:(?:async )?def |(?:\w+, )*){word}(?:\(|[^(\n]* = )", re.MULTILINE)
        if not any(word in text and definition.search(text) for text in sources().values()):
            missing.append(word)
    return missing


def missing_files(words: list[str]) -> list[str]:
    """Words of the shape of a path that end no path of the repository."""
    missing = []
    for word in words:
        is_path = re.fullmatch(r"[\w./-]+", word) and not word.startswith(("/", "v1/"))
        if not is_path or not re.search(f"/|{SUFFIXES}$", word) or EXAMPLES.search(word) or word in READERS_FILES:
            continue
        path = word.rstrip("/")
        stem = re.sub(r"\.\w+$", ".py", path)  # `core/ranking/sufficiency.label_answer` names sufficiency.py
        if not any(
            f"/{file}/".endswith((f"/{path}/", f"/{stem}/")) or f"/{path}/" in f"/{file}"
            for file in tracked_files()
        ):
            missing.append(word)
    return missing


@pytest.mark.parametrize("page", PAGES)
def test_named_methods_and_functions_exist(page: str) -> None:
    assert missing_members(code_words(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_named_constants_and_private_functions_exist(page: str) -> None:
    assert missing_constants(code_words(page)) == []


@pytest.mark.parametrize("page", PAGES)
def test_named_files_exist(page: str) -> None:
    assert missing_files(code_words(page)) == []


def test_missing_names_are_found() -> None:
    words = [
        "QuestionPipeline.serve",
        "QuestionPipeline.vanish",
        "tenancy.vanish",
        "core/learning/steps.vanish",
        "Vanished.serve",
    ]
    assert missing_members(words) == words[1:]
    assert missing_constants(["PAGES", "_names", "VANISHED_SHARE", "_vanish", "ENGRAM_URL"]) == [
        "VANISHED_SHARE",
        "_vanish",
    ]
    assert missing_files(["app/engram/cli", "wing.py", "vanished.py", "storage/vanished"]) == [
        "vanished.py",
        "storage/vanished",
    ]


def test_named_variables_are_settings() -> None:
    known = {f"ENGRAM_{name.upper()}" for name in Settings.model_fields} | OTHER_VARIABLES
    for page, text in PAGES.items():
        for name in re.findall(r"ENGRAM_[A-Z_]+", text):
            begun = name.endswith("_") and any(variable.startswith(name) for variable in known)
            assert name in known or begun, (page, name)


def test_named_commands_exist() -> None:
    every = command().commands  # type: ignore[attr-defined]
    for page, text in PAGES.items():
        for name, word in re.findall(
            r"(?:`|^|bin/|&& )engram ([a-z][a-z-]+)(?: ([a-z][a-z-]+))?", text, re.MULTILINE
        ):
            assert name in every, (page, name)
            group = getattr(every[name], "commands", ())
            assert not group or not word or word in group, (page, name, word)


def test_named_make_targets_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for page, text in PAGES.items():
        for words in re.findall(r"(?:`|&& |^)make ((?:[a-z-]+ ?)+)", text, re.MULTILINE):
            unknown = [word for word in words.split() if word not in targets]
            assert unknown == [], page


def test_named_scripts_and_modules_exist() -> None:
    for page, text in PAGES.items():
        for module, script in re.findall(r"python (?:-m ([a-z_.]+)|([\w/.]+\.py))", text):
            exists = find_spec(module) if module else script in {*tracked_files(), *READERS_FILES}
            assert exists, (page, module or script)
