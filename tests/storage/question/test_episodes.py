"""Episodes as they are written: whether their transaction waits for the disk."""

import pytest

from engram.composition.container import Application, Servers
from engram.config.settings import Settings
from engram.services.question.query import Query
from engram.storage.database import observe_sql
from engram.storage.question import episodes
from tests.support import state
from tests.support.databases import application_on

COMMIT = "SELECT current_setting('synchronous_commit')"
# Not what the tests' server has, which waits for no disk at all.
OWN_STATEMENT = "SELECT set_config('synchronous_commit', 'local', true)"


@pytest.mark.parametrize(("durable", "commit"), [(True, "local"), (False, "off")])
def test_an_episode_says_whether_its_own_transaction_waits_for_the_disk(
    application: Application, curie: str, durable: bool, commit: str
) -> None:
    state.add_episode(application, curie, "Who?", [])  # makes the week's partition
    row = state.episode(application, "Where?", [])
    with application.database.write() as writer:
        writer.scalar(OWN_STATEMENT)
        episodes.insert(writer, state.collection_id(application, curie), row, durable=durable)
        assert writer.scalar(COMMIT) == commit


def test_episode_does_not_change_commit_durability_of_its_connection(application: Application, curie: str) -> None:
    state.add_episode(application, curie, "Who?", [])
    row = state.episode(application, "Where?", [])
    with application.database.write_once() as writer:
        before = writer.scalar(COMMIT)
        writer.scalar("SELECT set_config('synchronous_commit', 'local', false)")
        episodes.insert(writer, state.collection_id(application, curie), row, durable=False)
        after = writer.scalar(COMMIT)
        writer.scalar("SELECT set_config('synchronous_commit', %(before)s, false)", {"before": before})
    assert after == "local"


@pytest.mark.parametrize(("durable", "soon"), [(True, False), (False, True)])
def test_a_query_waits_unless_the_settings_say_otherwise(
    application: Application, settings: Settings, addresses: Servers, curie: str, durable: bool, soon: bool
) -> None:
    sent: list[str] = []
    own = settings.model_copy(update={"episodes_durable": durable})
    with application_on(addresses, own, application) as apart:
        scope = apart.auth.access.scope(curie)
        with observe_sql(lambda _connection, statement, _given: sent.append(statement)):
            apart.answers.question.answer(Query(text="Where was Marie Curie born?", scope=scope))
    (written,) = [statement for statement in sent if "INSERT INTO episode" in statement]
    assert ("synchronous_commit" in written) is soon
