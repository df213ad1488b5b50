"""The modules that hold SQL: storage of the core and of the wings."""

from pathlib import Path

import engram

PACKAGE = Path(engram.__file__).parent
STORAGE_FOLDERS = (PACKAGE / "storage", *sorted(PACKAGE.glob("wings/*/storage")))


def list_storage_files() -> list[Path]:
    """List the Python files of all storage folders."""
    return [file for folder in STORAGE_FOLDERS for file in sorted(folder.rglob("*.py"))]
