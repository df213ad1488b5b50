"""Rules of when documents hold and what they replace, by their names."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from engram.context.errors import InvalidRequestError
from engram.wings.importing.conversion.outline import library

_DATES = ("valid_from", "valid_until")
_REPLACED = "supersedes"
_SEAL = re.compile(r" by [0-9a-f]{16}$")


@dataclass(frozen=True, slots=True)
class VersionRule:
    """A line of rules; ``matcher`` is its pattern as pathspec reads it.

    Attributes:
        claims: field -> what it says of the documents that match.
    """

    pattern: str
    matcher: Any
    claims: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class VersionRules:
    """Rules in their order; the last one that matches a document counts.

    A line is ``PATTERN: FIELD=VALUE, ...`` with the fields ``valid_from``, ``valid_until`` (dates) and
    ``supersedes``: a document, or behind the pattern of a folder another folder, whose document of the same path is
    meant. Patterns are read as ``.gitignore`` reads them. Empty lines and those that begin with ``#`` are skipped.
    """

    rules: tuple[VersionRule, ...] = ()

    @classmethod
    def read(cls, path: Path) -> "VersionRules":
        """Read a file of rules.

        Raises:
            InvalidRequestError: it cannot be read, or a line is no rule.
        """
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidRequestError(f"{path}: cannot be read: {error}.") from error
        rules = []
        for number, line in enumerate(lines, start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                try:
                    rules.append(_read_rule(line))
                except ValueError as error:
                    raise InvalidRequestError(f"{path}, line {number}: {error}.") from error
        return cls(tuple(rules))

    def check(self, names: Collection[str]) -> None:
        """Go on only if each rule matches a document.

        Raises:
            InvalidRequestError: one matches none.
        """
        for rule in self.rules:
            if not any(rule.matcher.match_file(name) for name in names):
                raise InvalidRequestError(f"{rule.pattern!r} of --versions matches no document.")

    def find(self, name: str, names: Collection[str]) -> dict[str, str]:
        """Return what the rules say of a document.

        Args:
            names: of all documents; a folder of earlier versions may lack one.
        """
        rule = next((rule for rule in reversed(self.rules) if rule.matcher.match_file(name)), None)
        claims = {} if rule is None else dict(rule.claims)
        if rule is not None and claims.get(_REPLACED, "").endswith("/"):
            later, earlier = (f"/{folder.lstrip('/')}" for folder in (rule.pattern, claims.pop(_REPLACED)))
            replaced = f"/{name}".replace(later, earlier, 1)[1:]
            if replaced != name and replaced in names:
                claims[_REPLACED] = replaced
        return claims


def seal_version(digest: str, claims: Mapping[str, str]) -> str:
    """Return the version of a file together with what rules say of it: another one after a change of either."""
    if not claims:
        return digest
    return f"{digest} by {hashlib.sha256(json.dumps(claims, sort_keys=True).encode()).hexdigest()[:16]}"


def unseal_version(digest: str) -> str:
    """Return the version of the file alone."""
    return _SEAL.sub("", digest)


def _read_rule(line: str) -> VersionRule:
    pattern, separator, text = line.partition(": ")
    pattern = pattern.strip()
    if not separator or not pattern:
        raise ValueError("is not `PATTERN: FIELD=VALUE`")
    matcher = library("pathspec").GitIgnoreSpec.from_lines([pattern])
    if [one.include for one in matcher.patterns] != [True]:
        raise ValueError(f"{pattern!r} is no pattern of files")
    claims = {}
    for part in text.split(","):
        field, _, value = (one.strip() for one in part.partition("="))
        if field not in (*_DATES, _REPLACED) or not value or field in claims:
            raise ValueError(f"{part.strip()!r} is not one of valid_from=, valid_until= and supersedes=")
        if field in _DATES:
            date.fromisoformat(value)
        elif value.endswith("/") and (not pattern.endswith("/") or re.search(r"[*?\[\\]", pattern)):
            raise ValueError(f"supersedes={value} goes with a pattern that is a folder")
        claims[field] = value
    return VersionRule(pattern, matcher, claims)
