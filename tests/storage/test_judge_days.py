"""A judge's day is of UTC, whatever the time zone of the session."""

import pytest

from engram.composition.container import Application
from engram.storage.judge_days import DAY, on_day


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo", "America/Los_Angeles"])
def test_a_day_begins_at_midnight_utc(application: Application, zone: str) -> None:
    moments = ["2026-05-01 00:00:00+00", "2026-05-01 23:59:59.999999+00", "2026-05-02 00:00:00+00"]
    with application.database.write() as writer:
        writer.row("SELECT set_config('TimeZone', %(zone)s, true)", {"zone": zone})
        rows = writer.rows(
            f"""
            SELECT {DAY}, {on_day("'2026-05-01'")}
            FROM unnest(%(moments)s::timestamptz[]) WITH ORDINALITY AS event(received_at, n) ORDER BY n
            """,
            {"moments": moments},
        )
    assert [tuple(row) for row in rows] == [("2026-05-01", True), ("2026-05-01", True), ("2026-05-02", False)]
