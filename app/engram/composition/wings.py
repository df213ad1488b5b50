"""Wings: optional features, found by their entry points."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from graphlib import TopologicalSorter
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from engram.composition.hooks import Hooks
from engram.composition.local_servers import LocalServers
from engram.context.errors import ConfigurationError
from engram.services.answers.key_explainer import KeyExplainer
from engram.services.corpus.collection_settings import CompleteSetting
from engram.services.corpus.passage_observer import PassageObserver
from engram.services.jobs.work import JobHandler, JobKind
from engram.services.question.pipeline import Explainer
from engram.services.question.plan import QuestionEncoder
from engram.services.question.retriever import Retriever, Retrievers
from engram.services.question.shown import QuestionRule
from engram.services.revocation.derived_state import DerivedState
from engram.services.verdict.learn import PrepareEffect
from engram.storage.database import Writer

if TYPE_CHECKING:
    from fastapi import APIRouter
    from pydantic import BaseModel
    from sqlalchemy import Table
    from starlette.types import Scope


W = TypeVar("W")
GROUP = "engram.wings"
"""Entry points of wings: each names a ``Wing``."""


@dataclass(frozen=True, slots=True)
class Flow:
    """A link of the OpenAPI document: a value in the answer of ``sources`` is a parameter of ``targets``.

    Attributes:
        sources: operations whose answers have the values, by their ids.
        values: name under which an operation takes the value -> where it stands in the answer: a runtime
            expression, or a JSON pointer into the body.
        targets: operations that take some of the values, by their ids.
    """

    sources: tuple[str, ...]
    values: Mapping[str, str]
    targets: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Dialect:
    """Errors as the clients of some paths read them: problem documents with further members.

    Attributes:
        reads: path -> whether errors on it get the further members.
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
        links: links from these routes, for the OpenAPI document.
        takes_collection: operations that need nothing but a collection's name, by their ids.
        dialects: how the clients of some paths read errors.
        bodies: models of bodies that routes read themselves, for the OpenAPI document.
    """

    routers: Sequence["APIRouter"] = ()
    links: Sequence[Flow] = ()
    takes_collection: Sequence[str] = ()
    dialects: Sequence[Dialect] = ()
    bodies: Sequence[type["BaseModel"]] = ()


def _make_nothing(_: object) -> Sequence[Any]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Wing:
    """An optional feature, as it declares itself.

    Attributes:
        name: of the wing in ENGRAM_WINGS.
        attach: makes an object with the wing's services from the application, each service on first use.
        needs: names of the wings whose services it uses. They come before it in every order.
        load_routes: imports the wing's routes. Only the API calls it, also for a wing that is off.
        question_rule: changes questions and their answers.
        make_passage_observer: makes the ``PassageObserver``. It runs before models and services exist: pass a
            function that reads them on use, as ``wings/facts/wing.py`` does.
        make_derived_states: makes what copies, verifies, withdraws, clears and retires the wing's rows with those
            of a collection; called as early as ``make_passage_observer``.
        make_verdict_effects: makes what prepares effects in the transactions of verdicts, after the question memory
            and before weights; called as early as ``make_passage_observer``.
        make_explainer: makes what finds the verdicts behind answers. Of several wings the first one's is asked.
        key_explainer: explains evolved passage keys. Of several wings the first one's is asked.
        sweep: does what is due in all collections and returns. Every worker calls it every few seconds, in a thread
            of the wing, with the wing's services and a function that tells whether to stop.
        make_question_encoder: makes what embeds questions for passages; called as early as
            ``make_passage_observer``. Of several wings the first one's is asked.
        retriever: retrieves by a profile of the wing's: makes its hops and ranks by them.
        job_handlers: kind of job -> function that takes the wing's services and returns the handler of such jobs.
        warm_up: loads what the wing's services need, before the first request.
        collection_settings: column of the core's table ``collection`` -> function that validates a new value and
            fills in defaults.
        forget: removes what the core's tables say of the wing's rows, when the wing is cleared.
        tables: of the wing, in the one schema. They exist whether the wing is on or off.
        local_servers: runs Postgres and Redis on this machine where no address of them is configured.
    """

    name: str
    attach: Callable[[Any], object]
    needs: Sequence[str] = ()
    load_routes: Callable[[], WingRoutes] = WingRoutes
    question_rule: QuestionRule | None = None
    make_passage_observer: Callable[[Any], PassageObserver] | None = None
    make_derived_states: Callable[[Any], Sequence[DerivedState]] = _make_nothing
    make_verdict_effects: Callable[[Any], Sequence[PrepareEffect]] = _make_nothing
    make_explainer: Callable[[Any], Explainer] | None = None
    key_explainer: KeyExplainer | None = None
    sweep: Callable[[Any, Callable[[], bool]], object] | None = None
    make_question_encoder: Callable[[Any], QuestionEncoder] | None = None
    retriever: Retriever | None = None
    job_handlers: Mapping[JobKind, Callable[[Any], JobHandler]] = field(default_factory=dict)
    warm_up: Callable[[Any], None] | None = None
    collection_settings: Mapping[str, CompleteSetting] = field(default_factory=dict)
    forget: Callable[[Writer], None] | None = None
    tables: Sequence["Table"] = ()
    local_servers: LocalServers | None = None


class WingHolder(Protocol):
    """An owner of wings' services, such as an application."""

    def wing(self, services: type[W]) -> W:
        """Return the services of a wing that is on, by their class.

        Raises:
            LookupError: no wing that is on has such services.
        """
        ...


@cache
def list_installed_wings() -> tuple[Wing, ...]:
    """List the wings of all installed packages, each after those that it needs."""
    return order_wings([point.load() for point in entry_points(group=GROUP)])


def order_wings(wings: Iterable[Wing]) -> tuple[Wing, ...]:
    """Order wings in turns: first those that need none, then those whose needs have come; by name in each turn."""
    by_name = {wing.name: wing for wing in wings}
    sorter = TopologicalSorter({wing.name: by_name.keys() & set(wing.needs) for wing in by_name.values()})
    sorter.prepare()
    ordered: list[Wing] = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        ordered += [by_name[name] for name in ready]
        sorter.done(*ready)
    return tuple(ordered)


def load_tables() -> None:
    """Import all installed wings, which adds their tables to the schema's metadata."""
    list_installed_wings()


def choose_wings(chosen: str, wings: Sequence[Wing]) -> list[Wing]:
    """Choose the wings that are on.

    Args:
        chosen: the setting ENGRAM_WINGS: "all", "none", or names with commas between them.
        wings: the installed ones.

    Raises:
        ConfigurationError: the setting names a wing that is not installed, or leaves out one that another needs.
    """
    if chosen == "all":
        return list(wings)
    names = set() if chosen == "none" else {name.strip() for name in chosen.split(",")}
    unknown = sorted(names - {wing.name for wing in wings})
    if unknown:
        installed = ", ".join(wing.name for wing in wings)
        raise ConfigurationError(f"ENGRAM_WINGS names {', '.join(map(repr, unknown))}; installed are {installed}.")
    on = [wing for wing in wings if wing.name in names]
    for wing in on:
        if missing := sorted(set(wing.needs) - names):
            needed = " and ".join(map(repr, missing))
            raise ConfigurationError(f"ENGRAM_WINGS: the wing {wing.name!r} needs {needed}.")
    return on


def check_wing_is_on(name: str, chosen: str) -> None:
    """Check that a wing is on. For commands that work without the API.

    Args:
        chosen: as ``choose_wings`` takes it, which chooses of the installed ones.

    Raises:
        ConfigurationError: it is off; or as ``choose_wings``.
    """
    if name not in {wing.name for wing in choose_wings(chosen, list_installed_wings())}:
        raise ConfigurationError(f"The wing {name!r} is off: add it to ENGRAM_WINGS.")


def find_local_servers(chosen: str, wings: Sequence[Wing]) -> LocalServers | None:
    """Find what runs servers on this machine; None where no wing that is on does.

    Args:
        chosen, wings: as ``choose_wings`` takes them.

    Raises:
        ConfigurationError: as ``choose_wings``.
    """
    return next((wing.local_servers for wing in choose_wings(chosen, wings) if wing.local_servers), None)


def collect_hooks(wings: Sequence[Wing], installed: Sequence[Wing], application: object) -> Hooks:
    """Collect what the given wings, which are on, add to the core's services."""
    return Hooks(
        question_rules=tuple(wing.question_rule for wing in wings if wing.question_rule is not None),
        collection_settings={
            name: complete if wing in wings else None
            for wing in installed
            for name, complete in wing.collection_settings.items()
        },
        passage_observers=[wing.make_passage_observer(application) for wing in wings if wing.make_passage_observer],
        derived_states=[state for wing in wings for state in wing.make_derived_states(application)],
        verdict_effects=[effect for wing in wings for effect in wing.make_verdict_effects(application)],
        explainer=next((wing.make_explainer(application) for wing in wings if wing.make_explainer), None),
        key_explainer=next((wing.key_explainer for wing in wings if wing.key_explainer is not None), None),
        question_encoder=next(
            (wing.make_question_encoder(application) for wing in wings if wing.make_question_encoder), None
        ),
        retrievers=Retrievers(
            present=[wing.retriever for wing in wings if wing.retriever is not None],
            absent={
                wing.retriever.profile.name: wing.name
                for wing in installed
                if wing.retriever is not None and wing not in wings
            },
        ),
    )
