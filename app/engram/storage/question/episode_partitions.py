"""The weeks that answered queries are kept by: each a partition, made when it is needed and dropped whole.

Dropping a partition gives its space back at once, leaves no dead rows behind and takes as long for a million
queries as for one.
"""

from datetime import UTC, date, datetime, time, timedelta

from engram.core.text.identifiers import compute_first_id
from engram.storage.database import Administrator, Reader, Writer

WEEK = timedelta(days=7)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('episode partitions', 0))"


def compute_monday(moment: datetime) -> date:
    """The first day (UTC) of the moment's week."""
    day = moment.astimezone(UTC).date()
    return day - timedelta(days=day.weekday())


def make(writer: Writer, monday: date) -> None:
    """Make a week's partition unless it is there. Neither queries nor ingest wait for it.

    A table that is attached locks out neither readers nor writers of the others, one that is created in place does.
    """
    name = _name(monday)
    writer.row(_LOCK)
    if writer.scalar("SELECT to_regclass(%(name)s)", {"name": name}) is not None:
        return
    begin, end = (datetime.combine(day, time(), UTC) for day in (monday, monday + WEEK))
    writer.execute(f"CREATE TABLE {name} (LIKE episode INCLUDING ALL)")
    # As of every table that has collections, see the first migration: it is not copied.
    writer.execute(f"ALTER TABLE {name} ALTER COLUMN collection_id SET (n_distinct = 1)")
    first, last = compute_first_id(begin), compute_first_id(end)
    writer.execute(f"ALTER TABLE episode ATTACH PARTITION {name} FOR VALUES FROM ('{first}') TO ('{last}')")


def list_standing(reader: Reader) -> list[date]:
    """Mondays of the weeks that there are partitions of, in order; also of those half detached."""
    rows = reader.rows(
        """
        SELECT to_date(substring(relname FROM '^episode_([0-9]{8})$'), 'YYYYMMDD') AS monday FROM pg_class
        WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace AND relname ~ '^episode_[0-9]{8}$'
        ORDER BY 1
        """
    )
    return [row.monday for row in rows]


def drop(administrator: Administrator, monday: date) -> None:
    """Drop a week with all that was kept of its queries; what was interrupted is finished.

    Detached first, which waits for whoever reads the week and lets everybody else pass.
    """
    name = _name(monday)
    pending = administrator.scalar(
        "SELECT inhdetachpending FROM pg_inherits WHERE inhrelid = %(name)s::text::regclass", {"name": name}
    )
    if pending is not None:
        how = "FINALIZE" if pending else "CONCURRENTLY"
        administrator.execute(f"ALTER TABLE episode DETACH PARTITION {name} {how}")
    administrator.execute(f"DROP TABLE {name}")


def _name(monday: date) -> str:
    return f"episode_{monday:%Y%m%d}"
