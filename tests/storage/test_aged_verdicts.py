"""The retention of verdicts looks up those that are too old, however long the log is."""

from datetime import UTC, datetime, timedelta

from engram.composition.container import Application
from engram.storage.database import observe_sql
from engram.storage.erasure import erased_log

OLD = datetime(2020, 1, 1, tzinfo=UTC)


def test_old_verdicts_are_found_by_an_index(application: Application) -> None:
    sent: list[tuple[str, dict[str, object]]] = []
    with (
        observe_sql(lambda _, statement, values: sent.append((statement, dict(values)))),
        application.database.read() as reader,
    ):
        assert erased_log.find_aged_events(reader, OLD - timedelta(days=1), 500) is None
    [(statement, values)] = sent
    with application.database.read() as reader:
        plan = "\n".join(row[0] for row in reader.rows(f"EXPLAIN {statement}", values))
    assert "feedback_event_named_idx" in plan
    assert "Sort Key: feedback_event.received_at" not in plan
