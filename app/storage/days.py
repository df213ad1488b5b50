"""A judge's day in SQL: that on which an ``event`` was received, in UTC."""

DAY = "to_char(event.received_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
"""The day, as 2026-05-01."""


def on_day(day: str) -> str:
    """Whether it is the day that an expression gives; a range, so that the index of a judge's verdicts serves."""
    return f"""
        event.received_at >= ({day})::timestamp AT TIME ZONE 'UTC'
        AND event.received_at < (({day})::timestamp + interval '1 day') AT TIME ZONE 'UTC'
    """
