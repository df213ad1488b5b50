"""Readers of documents as a connector exports them: a file of ``{"source": ..., "readers": [...]}``."""

import json
from pathlib import Path
from typing import Any

from engram.context.errors import InvalidRequestError
from engram.core.auth.reader_names import normalise_readers
from engram.wings.importing.conversion.reader_rules import ReadersOf


def read_manifest(path: Path) -> dict[str, ReadersOf]:
    """Read a JSON list, or a JSON object a line: source -> readers. ``null`` is everyone, an empty list nobody.

    Raises:
        InvalidRequestError: the file cannot be read, an entry is none, or two are of one source.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
        is_list = text.lstrip().startswith("[")
        entries = json.loads(text) if is_list else [json.loads(line) for line in text.splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise InvalidRequestError(f"{path}: cannot be read: {error}.") from error
    manifest: dict[str, ReadersOf] = {}
    for number, entry in enumerate(entries, start=1):
        try:
            source, readers = _read_entry(entry)
        except ValueError as error:
            raise InvalidRequestError(f"{path}, entry {number}: {error}.") from error
        if source in manifest:
            raise InvalidRequestError(f"{path}, entry {number}: {source!r} has an entry before.")
        manifest[source] = readers
    return manifest


def _read_entry(entry: Any) -> tuple[str, ReadersOf]:
    if not isinstance(entry, dict) or entry.keys() != {"source", "readers"}:
        raise ValueError('an entry is {"source": ..., "readers": [...]}')
    source, readers = entry["source"], entry["readers"]
    if not isinstance(source, str) or not source:
        raise ValueError("its source is no name")
    if readers is None:
        return source, ReadersOf(None)
    if not isinstance(readers, list) or not all(isinstance(name, str) for name in readers):
        raise ValueError("its readers are no list of names")
    return source, ReadersOf(normalise_readers(readers))
