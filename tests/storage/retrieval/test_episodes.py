"""Episodes as they are written: whether their transaction waits for the disk."""

import pytest

from app.composition import Application
from app.storage.retrieval import episodes
from tests.support import state

COMMIT = "SELECT current_setting('synchronous_commit')"
# Not what the tests' server has, which waits for no disk at all.
OURS = "SELECT set_config('synchronous_commit', 'local', true)"


@pytest.mark.parametrize(("durable", "commit"), [(True, "local"), (False, "off")])
def test_an_episode_says_whether_its_own_transaction_waits_for_the_disk(
    application: Application, curie: str, durable: bool, commit: str
) -> None:
    state.given_episode(application, curie, "Who?", [])  # makes the week's partition
    row = state.episode(application, "Where?", [])
    with application.database.write() as writer:
        writer.scalar(OURS)
        episodes.insert(writer, state.collection_id(application, curie), row, durable=durable)
        assert writer.scalar(COMMIT) == commit


def test_what_is_written_after_an_episode_by_the_same_connection_waits_as_before(
    application: Application, curie: str
) -> None:
    assert application.settings.episodes_durable is False
    with application.database.write_once() as writer:
        writer.scalar("SELECT set_config('synchronous_commit', 'local', false)")
        asked = writer.scalar("SELECT pg_backend_pid()")
    try:
        state.given_episode(application, curie, "Who?", [])
        with application.database.write_once() as writer:
            assert (writer.scalar("SELECT pg_backend_pid()"), writer.scalar(COMMIT)) == (asked, "local")
    finally:
        with application.database.write_once() as writer:
            writer.scalar(
                "SELECT set_config('synchronous_commit', reset_val, false) FROM pg_settings "
                "WHERE name = 'synchronous_commit'"
            )
