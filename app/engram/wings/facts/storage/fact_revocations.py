"""Events of judges that a revocation in bulk matches, and their restoration."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS
from engram.wings.facts.storage import fact_events
from engram.wings.facts.storage.fact_events import StoredFactEvent


@dataclass(frozen=True, slots=True)
class FactEventFilter:
    """Filter of events by kinds, judge and time of receipt, in [``since``, ``before``); None: any."""

    kinds: tuple[str, ...]
    judge: str | None = None
    since: datetime | None = None
    before: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the criteria that are set."""
        times = {"from": self.since, "to": self.before}
        document = {name: time.isoformat() for name, time in times.items() if time is not None}
        return document | {"kinds": list(self.kinds)} | ({} if self.judge is None else {"judge": self.judge})

    def __str__(self) -> str:
        """Describe the filter, as 'confirm by ada from ...'."""
        parts = {
            "by": self.judge,
            "from": None if self.since is None else self.since.isoformat(),
            "to": None if self.before is None else self.before.isoformat(),
        }
        words = [", ".join(self.kinds), *(f"{name} {value}" for name, value in parts.items() if value is not None)]
        return " ".join(words)


def list_matching(
    reader: Reader, collection_id: int, criteria: FactEventFilter, graph_id: int | None, limit: int
) -> list[StoredFactEvent]:
    """The first events that match and count, in their order."""
    rows = reader.rows(
        """
        SELECT id FROM fact_event
        WHERE collection_id = %(collection)s AND status = 'applied' AND kind = ANY(%(kinds)s::text[])
          AND (%(judge)s::text IS NULL OR judge = %(judge)s) AND (%(graph)s::bigint IS NULL OR graph_id = %(graph)s)
          AND (%(from)s::timestamptz IS NULL OR received_at >= %(from)s)
          AND (%(to)s::timestamptz IS NULL OR received_at < %(to)s)
        ORDER BY id LIMIT %(limit)s
        """,
        {
            "collection": collection_id,
            "kinds": list(criteria.kinds),
            "judge": criteria.judge,
            "graph": graph_id,
            "from": criteria.since,
            "to": criteria.before,
            "limit": limit,
        },
    )
    return fact_events.find_many(reader, collection_id, [row.id for row in rows])


def restore(writer: Writer, collection_id: int, covered: Iterable[int]) -> list[int]:
    """Have revoked events count again; of joins those whose entities are still there. Which ones."""
    existing = """
        (SELECT n.id FROM fact_entity n WHERE n.collection_id = e.collection_id AND n.id = e.{0}) IS NOT NULL
    """
    rows = writer.rows(
        f"""
        UPDATE fact_event e SET status = 'applied', revoked_at = NULL FROM {WANTED_IDS}
        WHERE e.collection_id = wanted.collection_id AND e.id = wanted.id AND e.status = 'revoked'
          AND (e.kind <> 'merge' OR {existing.format("other_id")} AND {existing.format("entity_id")})
        RETURNING e.id
        """,
        {"collection": collection_id, "ids": sorted(set(covered))},
    )
    return [row.id for row in rows]
