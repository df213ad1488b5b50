"""Predicates: whether a subject has one object at a time, as somebody declared or as counts say."""

from collections.abc import Iterable
from dataclasses import dataclass

from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import id_rows
from engram.wings.facts.core.beliefs import UNSAID
from engram.wings.facts.storage.fact_rows import choose_columns


@dataclass(frozen=True, slots=True)
class Predicate:
    """A predicate of a graph.

    Attributes:
        declared: what somebody said; None: nobody did.
        functional: by which facts compete.
        subjects, single: how many subjects it had when it was counted last, and how many of them one object.
    """

    predicate: str
    declared: bool | None
    functional: bool
    subjects: int
    single: int


def find(reader: Reader, collection_id: int, graph_id: int) -> dict[str, Predicate]:
    """The predicates of a graph that anything is known of."""
    rows = reader.rows(
        """
        SELECT predicate, declared, functional, subjects, single FROM fact_predicate
        WHERE collection_id = %(collection)s AND graph_id = %(graph)s ORDER BY predicate
        """,
        {"collection": collection_id, "graph": graph_id},
    )
    return {row.predicate: Predicate(**row._asdict()) for row in rows}


def count(reader: Reader, collection_id: int, graph_id: int) -> dict[str, tuple[int, int]]:
    """Predicate -> how many subjects it has, and how many of them have one object at a time.

    A subject has several if two of its facts are of different objects and can hold on one day; one without an end
    ends where the next begins. Whoever sees some passages only counts by what their sentences name.
    """
    ends = choose_columns(reader)
    is_said = "closed_reason IS DISTINCT FROM %(unsaid)s" if reader.reader_sets is None else "true"
    rows = reader.rows(
        f"""
        SELECT predicate, count(*) AS subjects, count(*) FILTER (WHERE NOT several) AS single FROM (
            SELECT subject_id, predicate, coalesce(bool_or(several), false) AS several FROM (
                SELECT subject_id, predicate,
                       (object_id, object_key) IS DISTINCT FROM (lag(object_id) OVER w, lag(object_key) OVER w)
                       AND valid_from < max(
                           CASE WHEN valid_to = 3652060 AND valid_from > 0 THEN valid_from + 1 ELSE valid_to END
                       ) OVER (
                           PARTITION BY subject_id, predicate ORDER BY valid_from, id
                           ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
                       ) AS several
                FROM (
                    SELECT id, {ends.subject} AS subject_id, predicate, {ends.object} AS object_id, object_key,
                           valid_from, valid_to
                    FROM fact WHERE collection_id = %(collection)s AND graph_id = %(graph)s AND {is_said}
                ) AS told
                WINDOW w AS (PARTITION BY subject_id, predicate ORDER BY valid_from, id)
            ) AS neighbours GROUP BY subject_id, predicate
        ) AS counted GROUP BY predicate
        """,
        {"collection": collection_id, "graph": graph_id, "unsaid": UNSAID},
    )
    return {row.predicate: (row.subjects, row.single) for row in rows}


def put(writer: Writer, collection_id: int, graph_id: int, predicates: Iterable[Predicate]) -> None:
    """Store what is known of these predicates."""
    ordered = sorted(predicates, key=lambda one: one.predicate)
    writer.execute(
        """
        INSERT INTO fact_predicate (collection_id, graph_id, predicate, declared, functional, subjects, single,
                                    counted_at)
        SELECT %(collection)s, %(graph)s, row.*, now() FROM unnest(
            %(predicates)s::text[], %(declared)s::boolean[], %(functional)s::boolean[], %(subjects)s::bigint[],
            %(single)s::bigint[]
        ) AS row
        ON CONFLICT (collection_id, graph_id, predicate) DO UPDATE SET declared = excluded.declared,
            functional = excluded.functional, subjects = excluded.subjects, single = excluded.single,
            counted_at = excluded.counted_at
        """,
        {
            "collection": collection_id,
            "graph": graph_id,
            "predicates": [one.predicate for one in ordered],
            "declared": [one.declared for one in ordered],
            "functional": [one.functional for one in ordered],
            "subjects": [one.subjects for one in ordered],
            "single": [one.single for one in ordered],
        },
    )


def remove_unused(writer: Writer, collection_id: int, graph_id: int, predicates: Iterable[str]) -> None:
    """Forget those of these predicates that no fact has and nobody declared: they are words of passages."""
    writer.execute(
        f"""
        DELETE FROM fact_predicate p USING {id_rows("predicates", "text")}
        WHERE p.collection_id = wanted.collection_id AND p.graph_id = %(graph)s AND p.predicate = wanted.id
          AND p.declared IS NULL
          AND (SELECT f.id FROM fact f WHERE f.collection_id = p.collection_id AND f.graph_id = p.graph_id
               AND f.predicate = p.predicate LIMIT 1) IS NULL
        """,
        {"collection": collection_id, "graph": graph_id, "predicates": sorted(set(predicates))},
    )
