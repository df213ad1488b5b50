"""A judge's day in SQL: that on which an ``event`` was received, in UTC; and the judge, as caps know it."""

from datetime import UTC, datetime

from engram.core.learning.judge_standing import NEWCOMERS

DAY = "to_char(event.received_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
"""The day, as 2026-05-01."""
CAPPED_AS = f"CASE WHEN event.standing < 1 THEN '{NEWCOMERS}' ELSE event.judge END"
"""The judge of an ``event`` as caps know it: all new ones are one."""


def on_day(day: str) -> str:
    """Whether it is the day that an expression gives; a range, so that the index of a judge's verdicts serves."""
    return f"""
        event.received_at >= ({day})::timestamp AT TIME ZONE 'UTC'
        AND event.received_at < (({day})::timestamp + interval '1 day') AT TIME ZONE 'UTC'
    """


def format_day(received_at: datetime) -> str:
    """``DAY`` of a moment: where rows are distributed, no statement that changes some may return it."""
    return received_at.astimezone(UTC).date().isoformat()
