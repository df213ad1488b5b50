"""A judge's day in SQL: that on which an ``event`` was received, in UTC."""

DAY = "to_char(event.received_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')"
"""The day, as 2026-05-01."""
ON_DAY = """
    event.received_at >= %(day)s::date AT TIME ZONE 'UTC'
    AND event.received_at < (%(day)s::date + 1) AT TIME ZONE 'UTC'
"""
"""Whether it is the day ``day``; a range, so that the index of a judge's verdicts by time serves."""
