"""Writes what of the client follows from other files; ``--check`` only says whether it is up to date.

- ``models.py`` and ``requests.py`` of openapi.json: answers as msgspec structs, requests as typed dictionaries;
- ``_sync.py`` of ``_async.py``.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "src" / "engram_client"
DOCUMENT = HERE.parents[1] / "openapi" / "openapi.json"
POSITIONAL = {
    "QueryIn": ["query"],
    "JointQueryIn": ["query"],
    "AnswerIn": ["query"],
    "CompareIn": ["query"],
    "ExpandIn": ["query"],
    "SessionIn": ["question"],
    "FeedbackIn": ["query_id"],
    "FactsIn": ["source"],
    "GraphMergeIn": ["graph"],
    "PredicateIn": ["predicate"],
}
"""What methods take by position, and so not as one of their options."""
SYNC = [
    (r"AsyncEngram", "Engram"),
    (r"\basync def\b", "def"),
    (r"\basync (with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(Iterator|Client|BaseTransport)\b", r"\1"),
    (r"httpx\.(Async)?BaseTransport", "httpx.BaseTransport"),
    (r"__aenter__", "__enter__"),
    (r"__aexit__", "__exit__"),
    (r"\baclose\b", "close"),
    (r"\ba(read|iter_lines)\b", r"\1"),
    (r"asyncio\.sleep", "time.sleep"),
    (r"import asyncio\n", ""),
    (r'^""".*?"""', '"""The client that blocks: made of ``_async.py`` by ``generate.py``."""'),
]


def main() -> None:
    """Write, or compare."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true", help="only say whether all is up to date")
    check = options.parse_args().check
    stale = [path for path, text in generate_files().items() if not path.exists() or path.read_text() != text]
    if check and stale:
        sys.exit(f"out of date, run clients/python/generate.py: {', '.join(path.name for path in stale)}")
    for path, text in () if check else generate_files().items():
        path.write_text(text)


def generate_files() -> dict[Path, str]:
    """File -> what it is to hold."""
    document = json.loads(DOCUMENT.read_text())
    bodies = _collect_references(document, (o.get("requestBody") for o in _operations(document)))
    answers = _collect_references(
        document,
        (r for o in _operations(document) for status, r in o["responses"].items() if status.startswith("2")),
    )
    return {
        PACKAGE / "models.py": _format_code(_structs(_models(document, answers, "msgspec.Struct"))),
        PACKAGE / "requests.py": _format_code(_models(_drop_positional(document), bodies, "typing.TypedDict")),
        PACKAGE / "_sync.py": _format_code(_sync((PACKAGE / "_async.py").read_text())),
    }


def _operations(document: dict[str, Any]) -> Iterable[dict[str, Any]]:
    return (o for path in document["paths"].values() for o in path.values() if "responses" in o)


def _collect_references(document: dict[str, Any], roots: Iterable[Any]) -> set[str]:
    """Names of all schemas that lead off from there."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if "$ref" in part and (name := part["$ref"].rsplit("/", 1)[1]) not in found:
                found.add(name)
                waiting.append(document["components"]["schemas"][name])
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)
    return found


def _drop_positional(document: dict[str, Any]) -> dict[str, Any]:
    copy: dict[str, Any] = json.loads(json.dumps(document))
    for name, taken in POSITIONAL.items():
        schema = copy["components"]["schemas"][name]
        for field in taken:
            schema["properties"].pop(field)
            schema["required"] = [one for one in schema.get("required", ()) if one != field]
    return copy


def _models(document: dict[str, Any], names: set[str], kind: str) -> str:
    """Python of these schemas."""
    schemas = {name: _open(document["components"]["schemas"][name]) for name in sorted(names)}
    part = {"openapi": "3.1.0", "info": document["info"], "paths": {}, "components": {"schemas": schemas}}
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "openapi.json"), Path(folder, "models.py")
        source.write_text(json.dumps(part))
        arguments = ["--input", source, "--output", target, "--input-file-type", "openapi"]
        arguments += ["--output-model-type", kind, "--target-python-version", "3.11", "--no-use-annotated"]
        arguments += ["--use-standard-collections", "--use-union-operator", "--disable-timestamp"]
        arguments += ["--use-schema-description", "--use-field-description", "--enum-field-as-literal", "all"]
        arguments += ["--formatters", "builtin"]
        command = [sys.executable, "-W", "ignore", "-m", "datamodel_code_generator", *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True)
        text = target.read_text()
    body = text.split("from __future__", 1)[1]
    return f'"""Generated from openapi.json by ``generate.py``."""\n\nfrom __future__{body}'


def _open(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop ``additionalProperties: false``: the service checks it, and types for it need a newer Python."""
    return {key: value for key, value in schema.items() if key != "additionalProperties" or value is not False}


def _structs(text: str) -> str:
    """Without a third state beside a value and null: what an older service leaves out is null."""
    for third, instead in (
        (" | None | UnsetType = UNSET", " | None = None"),
        (" | UnsetType = UNSET", " | None = None"),
        (" | UnsetType", ""),
        ("UNSET", "None"),
    ):
        text = text.replace(third, instead)
    return re.sub(r"^from msgspec import .*$", "from msgspec import Struct, field", text, flags=re.MULTILINE)


def _sync(text: str) -> str:
    for pattern, instead in SYNC:
        text = re.sub(pattern, instead, text, flags=re.DOTALL if pattern.startswith("^") else 0)
    return text


def _format_code(text: str) -> str:
    """Format a text by ``ruff`` with the project's rules."""
    for command in (["check", "--fix", "--quiet", "--exit-zero", "--select", "F401,I,UP"], ["format", "--quiet"]):
        run = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(PACKAGE / "made.py"), "-"]
        text = subprocess.run(run, input=text, check=True, capture_output=True, text=True).stdout
    return text


if __name__ == "__main__":
    main()
