"""Writes docs/settings.md from the settings of app/; with --check only says whether it is up to date."""

import inspect
import re
from pathlib import Path

import generated
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from engram.config.operation_settings import OperationSettings
from engram.config.retrieval_settings import RetrievalSettings
from engram.config.settings import Settings

PARTS = (Settings, RetrievalSettings, OperationSettings)
"""Where settings are defined, in the order in which the page has them."""
TARGET = Path(__file__).with_suffix(".md")
HEADER = """# Settings

Generated from the modules in `app/engram/config/` by `make docs`. Values come from the environment or from a
`.env` file in the working directory. Defaults stand in brackets; what has none is unset.
"""


def document() -> str:
    """The page as it should be."""
    lines = [HEADER]
    groups = _groups()
    for name in _names():
        field = Settings.model_fields[name]
        if name in groups:
            lines.append(f"## {groups[name]}\n")
        lines.append(f"- `{variable(name, field)}`{_default(field)}: {field.description}")
        if _next(name) in groups or _next(name) is None:
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def variable(name: str, field: FieldInfo) -> str:
    """The environment variable that sets a field."""
    choices = getattr(field.validation_alias, "choices", None)
    return str(choices[0]) if choices else f"ENGRAM_{name.upper()}"


def _groups() -> dict[str, str]:
    """First field of a group -> the comment above it in the source."""
    source = "\n".join(inspect.getsource(part) for part in PARTS)
    return {name: title for title, name in re.findall(r"^    # (.+)\n    (\w+):", source, re.MULTILINE)}


def _names() -> list[str]:
    """All settings, part by part."""
    return [name for part in PARTS for name in part.__annotations__ if name in Settings.model_fields]


def _next(name: str) -> str | None:
    names = _names()
    at = names.index(name) + 1
    return names[at] if at < len(names) else None


def _default(field: FieldInfo) -> str:
    value = field.default
    if value in (None, ""):
        return ""
    shown = value.get_secret_value() if isinstance(value, SecretStr) else value
    return f" (`{str(shown).lower() if isinstance(shown, bool) else shown}`)"


if __name__ == "__main__":
    generated.write({TARGET: document()}, "`make docs`", __doc__)
