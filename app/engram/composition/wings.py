"""Wings: optional features, found by their entry points."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from engram.composition.hooks import Hooks
from engram.context.errors import ConfigurationError
from engram.services.corpus.collection_settings import CompleteSetting
from engram.services.retrieval.question_rule import QuestionRule

if TYPE_CHECKING:
    from fastapi import APIRouter
    from pydantic import BaseModel
    from sqlalchemy import Table
    from starlette.types import Scope

    from engram.composition.container import Application

GROUP = "engram.wings"
"""Entry points of wings: each names a ``Wing``."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Places of values in an operation's answer, by the names that operations take them under.

    Attributes:
        sources: operations, by their ids.
        values: name -> runtime expression, or the JSON pointer of a place in the body.
        targets: operations that take some of the values.
    """

    sources: tuple[str, ...]
    values: Mapping[str, str]
    targets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """Errors as the clients of some paths read them: problem documents with further members.

    Attributes:
        reads: tells whether the clients of a path read the dialect.
        problem: schema of its errors.
        build_members: ASGI scope of a request, status, kind and detail of its problem -> the further members.
        statuses: HTTP status -> the one that these clients know instead.
    """

    reads: Callable[[str], bool]
    problem: type["BaseModel"]
    build_members: Callable[["Scope", int, str, str], Mapping[str, Any]]
    statuses: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WingRoutes:
    """Routes of a wing.

    Attributes:
        links: from their operations, for the OpenAPI document.
        takes_collection: of their operations, those that a collection's name is enough for.
        dialects: of the errors of some paths.
    """

    routers: Sequence["APIRouter"] = ()
    links: Sequence[Flow] = ()
    takes_collection: Sequence[str] = ()
    dialects: Sequence[Dialect] = ()


@dataclass(frozen=True, kw_only=True)
class Wing:
    """An optional feature, as it declares itself.

    Attributes:
        name: of the wing in ENGRAM_WINGS.
        attach: makes an object with the wing's services from the application, each service on first use.
        load_routes: imports the wing's routes. Only the API calls it, also for a wing that is off.
        question_rule: changes questions and their answers.
        collection_settings: settings of collections that are the wing's, by the names of their columns in table
            ``collection``: what completes a value.
        tables: of the wing, among the schema's. They are there whether it is on or off.
    """

    name: str
    attach: Callable[["Application"], object]
    load_routes: Callable[[], WingRoutes] = WingRoutes
    question_rule: QuestionRule | None = None
    collection_settings: Mapping[str, CompleteSetting] = field(default_factory=dict)
    tables: Sequence["Table"] = ()


@cache
def list_installed_wings() -> tuple[Wing, ...]:
    """List the wings of all installed packages, by name."""
    return tuple(sorted((point.load() for point in entry_points(group=GROUP)), key=lambda wing: wing.name))


def load_tables() -> None:
    """Add the tables of all installed wings to the schema's metadata."""
    list_installed_wings()


def choose_wings(chosen: str, wings: Sequence[Wing]) -> list[Wing]:
    """Choose the wings that are on.

    Args:
        chosen: the setting ENGRAM_WINGS: "all", "none", or names with commas between them.
        wings: the installed ones.

    Raises:
        ConfigurationError: the setting names a wing that is not installed.
    """
    if chosen == "all":
        return list(wings)
    names = set() if chosen == "none" else {name.strip() for name in chosen.split(",")}
    unknown = sorted(names - {wing.name for wing in wings})
    if unknown:
        installed = ", ".join(wing.name for wing in wings)
        raise ConfigurationError(f"ENGRAM_WINGS names {', '.join(map(repr, unknown))}; installed are {installed}.")
    return [wing for wing in wings if wing.name in names]


def collect_hooks(wings: Sequence[Wing]) -> Hooks:
    """Collect what these wings add to services of the core."""
    return Hooks(
        question_rules=tuple(wing.question_rule for wing in wings if wing.question_rule is not None),
        collection_settings={
            name: complete for wing in wings for name, complete in wing.collection_settings.items()
        },
    )
