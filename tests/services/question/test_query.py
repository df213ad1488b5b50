"""Parts that wings add to a query."""

import pytest

from engram.services.auth.scope import Scope
from engram.services.question.query import ExplorationPart, Query, SessionPart
from tests.conftest import Scoped

EXPLORATION = ExplorationPart(slots=1, entropy=7, depth=50)


@pytest.fixture
def scope(scoped: Scoped, curie: str) -> Scope:
    return scoped(curie)


def test_a_part_is_found_by_its_type(scope: Scope) -> None:
    session = SessionPart(pool=(3, 4))
    query = Query(text="Who?", scope=scope).with_part(session).with_part(EXPLORATION)

    assert query.part(SessionPart) is session
    assert query.part(ExplorationPart) is EXPLORATION


def test_a_query_that_no_wing_asks_has_no_parts(scope: Scope) -> None:
    query = Query(text="Who?", scope=scope)

    assert query.part(SessionPart) is None
    assert query.part(ExplorationPart) is None


def test_a_part_replaces_one_of_its_type(scope: Scope) -> None:
    query = Query(text="Who?", scope=scope).with_part(SessionPart(pool=(3,))).with_part(EXPLORATION)
    later = query.with_part(SessionPart(pool=(5,)))

    assert later.parts == (EXPLORATION, SessionPart(pool=(5,)))
    assert later.without_part(ExplorationPart).parts == (SessionPart(pool=(5,)),)
    assert query.part(SessionPart) == SessionPart(pool=(3,))
