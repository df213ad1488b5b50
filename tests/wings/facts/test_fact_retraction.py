"""What judges said of facts, revoked by who said it and when, previewed before and counting again after."""

from datetime import UTC, datetime, timedelta

import pytest

from engram.composition.container import Application
from engram.context.errors import InvalidRequestError
from engram.services.auth.scope import Scope
from engram.storage.corpus import collections
from engram.wings.facts.parts import facts_of
from engram.wings.facts.services.fact_retraction import FactEventFilter
from engram.wings.facts.services.fact_service import Revision
from engram.wings.history.parts import history_of
from tests.support import past, undo
from tests.wings.facts.test_fact_service import rows, state, triple
from tests.wings.facts.test_fact_service import scope as scope  # noqa: PLC0414

VERDICTS = ("close", "confirm", "contradict", "supersede")


@pytest.fixture
def judged(application: Application, scope: Scope) -> list[int]:
    """Three facts, which two judges spoke of."""
    facts = state(application, scope, "a", *(triple("Acme", "chair", name) for name in ("Ana", "Ben", "Eve")))
    said = [Revision("contradict", facts[0]), Revision("close", facts[1])]
    facts_of(application).facts.revise(scope, said, judge="crawler", key="1")
    facts_of(application).facts.revise(scope, [Revision("confirm", facts[2])], judge="ana", key="2")
    return facts


def test_a_judges_word_is_previewed_revoked_and_restored(
    application: Application, scope: Scope, judged: list[int]
) -> None:
    before = rows(application, scope, *judged)
    which = FactEventFilter(VERDICTS, judge="crawler")
    told = facts_of(application).retractions.preview(scope, which)
    assert (told.event, dict(told.kinds)) == (None, {"close": 1, "contradict": 1})
    assert (told.facts, told.believed, told.doubted) == (2, 1, 0)
    assert rows(application, scope, *judged) == before
    done = facts_of(application).retractions.revoke_all(scope, which, judge="mod", key="k")
    assert done.event is not None
    assert (done.facts, done.believed, list(done.changed)) == (told.facts, told.believed, list(told.changed))
    after = rows(application, scope, *judged)
    assert (after[0].belief, after[1].closed_at) == (pytest.approx(2 / 3), None)
    assert after[2] == before[2]
    again = facts_of(application).retractions.revoke_all(scope, which, judge="mod", key="k")
    assert again.event is not None
    assert (again.event.id, again.kinds) == (done.event.id, done.kinds)
    undo.assert_verified(application, scope.collection.name)
    facts_of(application).retractions.revoke(scope, done.event.id)
    assert rows(application, scope, *judged) == before
    undo.assert_verified(application, scope.collection.name)


def test_a_span_of_time_and_joins(application: Application, scope: Scope, judged: list[int]) -> None:
    moment = past.now(application)
    one, other = rows(application, scope, *state(
        application, scope, "b", triple("Globex", "chair", "Ana"), triple("Initech", "chair", "Ana")
    ))  # fmt: skip
    facts_of(application).entity_merges.merge(scope, one.subject_id, [other.subject_id], judge="crawler", key="j")
    since = FactEventFilter((*VERDICTS, "merge"), since=moment)
    done = facts_of(application).retractions.revoke_all(scope, since, judge="mod", key=None)
    assert done.kinds == {"merge": 1}
    assert rows(application, scope, other.id)[0].subject_id == other.subject_id
    assert done.event is not None
    facts_of(application).retractions.revoke(scope, done.event.id)
    assert rows(application, scope, other.id)[0].subject_id == one.subject_id
    undo.assert_verified(application, scope.collection.name)
    nothing = FactEventFilter(VERDICTS, since=datetime.now(UTC) + timedelta(days=1))
    assert facts_of(application).retractions.revoke_all(scope, nothing, judge="mod", key=None).event is None
    with pytest.raises(InvalidRequestError):
        facts_of(application).retractions.preview(scope, FactEventFilter(VERDICTS, since=moment, before=moment))


def test_a_copy_of_a_moment_when_they_were_revoked_does_without_them(
    application: Application, scope: Scope, judged: list[int]
) -> None:
    done = facts_of(application).retractions.revoke_all(
        scope, FactEventFilter(VERDICTS, judge="crawler"), judge="mod", key=None
    )
    then, until = rows(application, scope, *judged), past.now(application)
    assert done.event is not None
    facts_of(application).retractions.revoke(scope, done.event.id)
    copy = f"{scope.collection.name}-then"
    with application.database.read() as reader:
        source = collections.load_by_id(reader, scope.collection.id)
    history_of(application).past.make(source, until, copy)
    assert rows(application, application.auth.access.scope(copy), *judged) == then
    undo.assert_verified(application, copy)
