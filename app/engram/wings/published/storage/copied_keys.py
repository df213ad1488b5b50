"""Copies of what the log says of passage keys: evolutions, evidence, expansion units and credits."""

from collections.abc import Sequence

from engram.storage.database import Reader, Writer
from engram.storage.revocation.copied_rows import Copy, build_copy_statement, build_source_join
from engram.storage.row_lookups import id_rows, join_by_index

_IDS = id_rows("ids", collection="%(source)s")
_PASSAGE = build_source_join("passage", "passage.id = held.passage_id AND passage.created_at <= %(until)s")


def copy_evidence(writer: Writer, copy: Copy, events: Sequence[int]) -> None:
    """Copy what these verdicts' expansions came to, with the units that they credit to copied passages."""
    parameters = copy.parameters(ids=list(events))
    # Evidence that a later evolution took in was still waiting at ``until``.
    generation_by_then = """
        SELECT number FROM key_generation made WHERE made.collection_id = %(source)s
            AND made.number = held.generation AND made.created_at <= %(until)s
    """
    writer.execute(
        build_copy_statement(
            "key_evidence", _build_event_source("key_evidence"), generation=f"({generation_by_then})"
        ),
        parameters,
    )
    credit = f"{_build_event_source('key_credit')} {_PASSAGE}"
    writer.execute(
        build_copy_statement(
            "expansion_unit",
            f"""
            FROM (SELECT DISTINCT held.unit_id AS id {credit}) AS credited
            {build_source_join("expansion_unit held", "held.id = credited.id")} ON CONFLICT DO NOTHING
            """,
        ),
        parameters,
    )
    writer.execute(build_copy_statement("key_credit", credit), parameters)


def _build_event_source(table: str) -> str:
    """Return the FROM clause of a table's rows about the events ``ids``."""
    return f"FROM {_IDS} {build_source_join(f'{table} held', 'held.event_id = wanted.id')}"


def copy_generations(writer: Writer, copy: Copy) -> None:
    """Copy the evolutions of keys that had happened by ``copy.until``."""
    writer.execute(
        build_copy_statement(
            "key_generation",
            """
            FROM key_generation held
            WHERE held.collection_id = %(source)s AND held.created_at <= %(until)s
            """,
        ),
        copy.parameters(),
    )


def settle_restored(writer: Writer, copy: Copy, events: Sequence[int]) -> None:
    """Have the evidence of restored verdicts be of the first evolution that came after them."""
    writer.execute(
        f"""
        UPDATE key_evidence evidence SET generation = (
            SELECT min(made.number) FROM key_generation made
            WHERE made.collection_id = %(collection)s AND made.created_at >= event.applied_at
        )
        FROM {id_rows("ids")}
        {join_by_index("feedback_event event", "event.id = wanted.id")}
        WHERE evidence.collection_id = wanted.collection_id AND evidence.event_id = wanted.id
          AND evidence.gate <> 'none'
        """,
        {"collection": copy.target, "ids": list(events)},
    )


def count_generations(writer: Writer, copy: Copy) -> None:
    """Set for each evolution the number of counting verdicts that it took in."""
    writer.execute(
        """
        WITH counted AS MATERIALIZED (
            SELECT generation, count(*) AS events FROM key_evidence
            WHERE collection_id = %(target)s GROUP BY generation
        )
        UPDATE key_generation made
        SET events = coalesce((SELECT counted.events FROM counted WHERE counted.generation = made.number), 0)
        WHERE made.collection_id = %(target)s
        """,
        copy.parameters(),
    )


def list_credited_units(reader: Reader, copy: Copy, event_ids: Sequence[int]) -> list[int]:
    """Return the copy's expansion units that these verdicts credit to passages, in id order."""
    rows = reader.rows(
        f"""
        SELECT DISTINCT credit.unit_id FROM {id_rows("event_ids", collection="%(target)s")}
        {join_by_index("key_credit credit", "credit.event_id = wanted.id", collection="%(target)s")}
        ORDER BY credit.unit_id
        """,  # ``id_rows`` names its rows ``wanted``
        copy.parameters(event_ids=list(event_ids)),
    )
    return [row.unit_id for row in rows]


def has_keys(reader: Reader, copy: Copy) -> bool:
    """Whether the copy has anything of which keys could evolve, or did."""
    exists: bool = reader.scalar(
        """
        SELECT EXISTS (SELECT FROM key_evidence WHERE collection_id = %(target)s)
            OR EXISTS (SELECT FROM key_generation WHERE collection_id = %(target)s)
        """,
        copy.parameters(),
    )
    return exists


def count_keyed(reader: Reader, copy: Copy) -> int:
    """Passages that the copy's verdicts credit expansions to."""
    count: int = reader.scalar(
        "SELECT count(DISTINCT passage_id) FROM key_credit WHERE collection_id = %(target)s", copy.parameters()
    )
    return count
