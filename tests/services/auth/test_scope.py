"""What a name is resolved to, and what becomes of a scope whose collection was deleted meanwhile."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from uuid import uuid4

import pytest

from engram.composition.container import Application
from engram.context.errors import NotFoundError
from engram.context.tenancy import ReaderNames
from engram.core.auth.access_keys import ADMIN, ALL_GRANTS, AUDIT, MODERATE
from engram.services.auth.scope import LOCAL, AccessService, Principal, Scope
from engram.services.verdict.verdict import Verdict
from engram.storage.corpus import collections
from engram.storage.corpus.collections import Collection
from engram.wings.experiments.parts import ExperimentServices
from engram.wings.published.parts import published_of
from tests.conftest import CURIE, Ingest, Scoped

USES: dict[str, Callable[[Application, Scope], object]] = {
    "re-key": lambda app, scope: app.corpus.rekey.request(scope, "title"),
    "re-key by a key": lambda app, scope: app.corpus.rekey.request(scope, "title", "once"),
    "look at a job": lambda app, scope: app.jobs.jobs.job(scope, uuid4()),
    "cancel a job": lambda app, scope: app.jobs.jobs.cancel(scope, uuid4()),
    "delete": lambda app, scope: app.corpus.ingest.delete_collection(scope),
    "delete a passage": lambda app, scope: app.corpus.ingest.delete_passage(scope, "curie"),
    "revoke": lambda app, scope: app.learning.revocation.revoke(scope, 1),
    "revoke many": lambda app, scope: app.learning.revocation.request(scope),
    "evolve": lambda app, scope: published_of(app).evolve.evolve(scope),
    "roll back": lambda app, scope: published_of(app).evolve.roll_back(scope, 0),
    "where keys stand": lambda app, scope: published_of(app).evolve.load_standing(scope),
    "set a judge": lambda app, scope: app.learning.judges.set(scope, "a", share=0.1),
    "configure": lambda app, scope: app.corpus.collection_settings.configure(scope, {"serving": "shadow"}),
    "lift": lambda app, scope: app.wing(ExperimentServices).lift.lift(
        scope, since=None, before=None, baseline=None
    ),
    "retry": lambda app, scope: app.learning.parked.retry(scope, 1),
    "retry all": lambda app, scope: app.learning.parked.retry_all(scope),
    "judge": lambda app, scope: app.learning.verdicts.accept(Verdict(query_id=uuid4(), scope=scope), uuid4().hex),
    "forget": lambda app, scope: app.revocation.learning_reset.reset(scope),
    "verify": lambda app, scope: app.revocation.verification.verify(scope),
}
OF_WINGS = {"lift", "evolve", "roll back", "where keys stand"}


def test_a_name_is_resolved_to_the_collection_and_who_asks(application: Application, curie: str) -> None:
    with application.database.read() as reader:
        stored = collections.find(reader, curie)
    other = Principal("ada", "local")

    assert application.auth.access.scope(curie) == Scope(LOCAL, stored)
    assert application.auth.access.scope(curie, other) == Scope(other, stored)


def test_who_is_asked_for_may_do_less_than_who_asks() -> None:
    held, acted = ALL_GRANTS.list_scopes("docs"), LOCAL.act_as(("user:ana",))
    assert acted.grants.list_scopes("docs") == held - {ADMIN, AUDIT, MODERATE}
    assert acted.readers == ReaderNames(("user:ana",), ())


def test_unknown_collection_name_raises_not_found(application: Application, collection: str) -> None:
    with pytest.raises(NotFoundError, match=f"There is no collection '{collection}'"):
        application.auth.access.scope(collection)


def test_an_opening_makes_what_is_not_there_and_finds_what_is(application: Application, collection: str) -> None:
    opening = application.auth.access.prepare_opening(collection)
    with application.database.write() as writer:
        made = opening.open(writer, application.models.encoder, application.models.encoder.id)
    with application.database.write() as writer:
        found = opening.open(writer, application.models.encoder, application.models.encoder.id)

    assert (made.created, found.created) == (True, False)
    assert made.collection.id == found.collection.id == application.auth.access.scope(collection).collection.id


@pytest.fixture
def deleted(application: Application, curie: str, ingest: Ingest, scoped: Scoped) -> Scope:
    """The scope of a deleted collection, under whose name there is another one by now."""
    scope = scoped(curie)
    application.corpus.ingest.delete_collection(scope)
    ingest(*CURIE)
    return scope


def assert_reaches_nothing(application: Application, deleted: Scope, scoped: Scoped, uses: Iterable[str]) -> None:
    another = scoped(deleted.collection.name)
    assert another.collection.id > deleted.collection.id
    for use in uses:
        with pytest.raises(NotFoundError):
            USES[use](application, deleted)
        assert scoped(deleted.collection.name) == another, use


def test_scope_of_a_deleted_collection_does_not_reach_its_successor(
    application: Application, deleted: Scope, scoped: Scoped
) -> None:
    assert_reaches_nothing(application, deleted, scoped, USES.keys() - OF_WINGS)


@pytest.mark.wing("experiments", "published")
def test_what_wings_do_does_not_reach_the_successor(
    application: Application, deleted: Scope, scoped: Scoped
) -> None:
    assert_reaches_nothing(application, deleted, scoped, OF_WINGS)


def services(application: Application) -> Iterator[type]:
    """The class of every service that a part of the application makes."""
    for part in vars(application).values():
        for attribute in vars(type(part)).values():
            if isinstance(attribute, cached_property):
                service = inspect.get_annotations(attribute.func)["return"]
                of_services = inspect.isclass(service) and service.__module__.startswith("engram.services.")
                if of_services and service is not AccessService:
                    yield service


def list_name_parameters(service: type) -> list[str]:
    """Parameters of the service's public methods that may be a collection's name."""
    methods = [method for name, method in inspect.getmembers(service, inspect.isfunction) if name[0] != "_"]
    return [
        f"{method.__qualname__}({parameter})"
        for method in methods
        for parameter, of in inspect.get_annotations(method).items()
        if parameter in {"collection", "name"} and of not in {int, Collection}
    ]


def test_no_service_takes_the_name_of_a_collection(application: Application) -> None:
    classes = list(services(application))
    assert len(classes) > 15
    assert [parameter for service in classes for parameter in list_name_parameters(service)] == []
