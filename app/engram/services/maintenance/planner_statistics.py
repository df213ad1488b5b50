"""Keeping the planner informed while tables grow."""

from collections.abc import Callable

import structlog

from engram.storage.database import Database
from engram.storage.maintenance import table_statistics

log = structlog.get_logger(__name__)


class StatisticsService:
    """Analyses tables that outgrew the planner's statistics."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def run(self, should_stop: Callable[[], bool] = lambda: False) -> list[str]:
        """ANALYZE the tables that have grown; return their names.

        Raises:
            UnavailableError: Postgres cannot be reached, or it was told to stop.
        """
        with self._database.read() as reader:
            tables = table_statistics.list_outgrown(reader)
        if tables:
            with self._database.administer(should_stop) as administrator:
                for table in tables:
                    table_statistics.analyse(administrator, table)
            log.info("tables analysed", tables=tables)
        return tables
