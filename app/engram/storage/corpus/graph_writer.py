"""Writing the graph: sentences, and the entities and time expressions that they name."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache

import numpy as np
from numpy.typing import NDArray

from engram.core.text.spelling import normalise_spelling
from engram.storage.column_parameters import vectors
from engram.storage.corpus.current_vectors import renew_if_supporting
from engram.storage.database import Reader, Writer
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index
from engram.storage.tables.table_base import metadata

Vector = NDArray[np.float32]

ROWS = 1_000
"""Sentences or names that one statement writes, which has seconds for it: the planner may take what it is given for
a handful and go through all for each."""


@dataclass(frozen=True, slots=True)
class SentenceRow:
    """A sentence to insert; ``id``: the one that it had before its passage was removed."""

    passage_id: int
    position: int
    text: str
    time_expression: str | None
    embedding: Vector
    id: int | None = None


@dataclass(frozen=True, slots=True)
class TimeRow:
    """A time expression to write; an end of None is open."""

    text: str
    starts_on: date | None
    ends_on: date | None
    embedding: Vector


def find_known_names(reader: Reader, collection_id: int, names: Iterable[str]) -> set[str]:
    """Return those normalised entity names that exist."""
    rows = reader.rows(
        f"SELECT e.name FROM {id_rows('names', 'text')} {join_by_index('entity e', 'e.name = wanted.id')}",
        {"collection": collection_id, "names": list(names)},
    )
    return {row.name for row in rows}


def find_known_times(reader: Reader, collection_id: int, texts: Iterable[str]) -> set[str]:
    """Return those time expressions that exist."""
    rows = reader.rows(
        f"SELECT t.text FROM {id_rows('texts', 'text')} {join_by_index('time_expression t', 't.text = wanted.id')}",
        {"collection": collection_id, "texts": list(texts)},
    )
    return {row.text for row in rows}


def insert_sentences(writer: Writer, collection_id: int, sentences: Sequence[SentenceRow]) -> list[int]:
    """Insert sentences; their ids in the given order."""
    ids: list[int] = []
    for start in range(0, len(sentences), ROWS):
        ids += _insert_sentences(writer, collection_id, sentences[start : start + ROWS])
    return ids


def _insert_sentences(writer: Writer, collection_id: int, sentences: Sequence[SentenceRow]) -> list[int]:
    rows = writer.rows(
        f"""
        WITH drawn AS (
            SELECT nextval(pg_get_serial_sequence('sentence', 'id')) AS new_id, row.* FROM unnest(
                %(ids)s::bigint[], %(passages)s::bigint[], %(positions)s::int[], %(texts)s::text[],
                %(times)s::text[], %(embeddings)s::vector[]::halfvec[]
            ) WITH ORDINALITY AS row(known_id, passage_id, position, text, time, embedding, n)
        ), numbered AS (
            SELECT coalesce(known_id, new_id) AS id, drawn.* FROM drawn
        ), inserted AS (
            INSERT INTO sentence (collection_id, id, passage_id, position, text, time_expression_id, embedding,
                                  reader_set_id)
            SELECT %(collection)s, n.id, n.passage_id, n.position, n.text, t.id, n.embedding, p.reader_set_id
            FROM numbered n {join_by_index("time_expression t", "t.text = n.time", outer=True)}
            {join_by_index("passage p", "p.id = n.passage_id")}
        )
        SELECT id FROM numbered ORDER BY n
        """,
        {
            "collection": collection_id,
            "ids": [row.id for row in sentences],
            "passages": [row.passage_id for row in sentences],
            "positions": [row.position for row in sentences],
            "texts": [row.text for row in sentences],
            "times": [row.time_expression for row in sentences],
            "embeddings": vectors([row.embedding for row in sentences]),
        },
    )
    return [row.id for row in rows]


def move_sentences(writer: Writer, collection_id: int, placed: Mapping[int, tuple[int, str | None]]) -> list[int]:
    """Give kept sentences their positions and time expressions; the time expressions that were replaced."""
    ids = list(placed)
    replaced: list[int] = []
    for start in range(0, len(ids), ROWS):
        replaced += _move_sentences(writer, collection_id, {id: placed[id] for id in ids[start : start + ROWS]})
    return replaced


def _move_sentences(writer: Writer, collection_id: int, placed: Mapping[int, tuple[int, str | None]]) -> list[int]:
    rows = writer.rows(
        f"""
        WITH placed AS MATERIALIZED (
            SELECT %(collection)s::bigint AS collection_id, p.id, p.position, t.id AS time_expression_id
            FROM unnest(%(ids)s::bigint[], %(positions)s::int[], %(times)s::text[]) AS p(id, position, time)
            {join_by_index("time_expression t", "t.text = p.time", outer=True)}
        )
        UPDATE sentence SET position = placed.position, time_expression_id = placed.time_expression_id
        FROM placed {join_by_index("sentence old", "old.id = placed.id")}
        WHERE sentence.collection_id = placed.collection_id AND sentence.id = placed.id
          AND (old.position, old.time_expression_id)
              IS DISTINCT FROM (placed.position, placed.time_expression_id)
        RETURNING old.time_expression_id
        """,
        {
            "collection": collection_id,
            "ids": list(placed),
            "positions": [position for position, _ in placed.values()],
            "times": [time for _, time in placed.values()],
        },
    )
    return [row.time_expression_id for row in rows if row.time_expression_id is not None]


def revise_sentences(writer: Writer, collection_id: int, revised: Mapping[int, tuple[SentenceRow, float]]) -> None:
    """Give kept sentences another text with its vector; ``move_sentences`` gives them positions and times.

    Args:
        revised: sentence -> its row, and how alike the texts are, in (0, 1].
    """
    rows = """
        unnest(%(ids)s::bigint[], %(texts)s::text[], %(embeddings)s::vector[], %(likeness)s::float8[])
            AS given(id, text, embedding, likeness)
    """
    writer.execute(
        f"""
        UPDATE sentence SET text = new.text, embedding = new.embedding,
            revised_at = array_append(revised_at, statement_timestamp()),
            revision_likeness = array_append(revision_likeness, new.likeness)
        FROM {alias_rows(rows)}
        WHERE sentence.collection_id = new.collection_id AND sentence.id = new.id
        """,
        {
            "collection": collection_id,
            "ids": list(revised),
            "texts": [row.text for row, _ in revised.values()],
            "embeddings": vectors([row.embedding for row, _ in revised.values()]),
            "likeness": [likeness for _, likeness in revised.values()],
        },
    )


def insert_entities(writer: Writer, collection_id: int, surfaces: Mapping[str, str]) -> int:
    """Insert those of normalised name -> surface that are new, in name order, not embedded yet; how many were."""
    ordered = sorted(surfaces.items())
    return sum(
        _insert_entities(writer, collection_id, ordered[start : start + ROWS])
        for start in range(0, len(ordered), ROWS)
    )


def _insert_entities(writer: Writer, collection_id: int, entities: Sequence[tuple[str, str]]) -> int:
    inserted = writer.rows(  # and not told by their number, in which Citus counts those that were there
        """
        INSERT INTO entity (collection_id, name, surface, spelling)
        SELECT %(collection)s, row.*
        FROM unnest(%(names)s::text[], %(surfaces)s::text[], %(spellings)s::text[]) AS row
        ON CONFLICT DO NOTHING RETURNING id
        """,
        {
            "collection": collection_id,
            "names": [name for name, _ in entities],
            "surfaces": [surface for _, surface in entities],
            "spellings": [normalise_spelling(name) for name, _ in entities],
        },
    )
    return len(inserted)


def insert_times(writer: Writer, collection_id: int, times: Sequence[TimeRow]) -> None:
    """Insert time expressions that are new."""
    for start in range(0, len(times), ROWS):
        _insert_times(writer, collection_id, times[start : start + ROWS])


def _insert_times(writer: Writer, collection_id: int, times: Sequence[TimeRow]) -> None:
    writer.execute(
        """
        INSERT INTO time_expression (collection_id, text, starts_on, ends_on, embedding)
        SELECT %(collection)s, row.* FROM unnest(
            %(texts)s::text[], %(starts)s::date[], %(ends)s::date[], %(embeddings)s::vector[]::halfvec[]
        ) AS row
        ON CONFLICT DO NOTHING
        """,
        {
            "collection": collection_id,
            "texts": [row.text for row in times],
            "starts": [row.starts_on for row in times],
            "ends": [row.ends_on for row in times],
            "embeddings": vectors([row.embedding for row in times]),
        },
    )


def set_links(writer: Writer, collection_id: int, links: Mapping[int, Iterable[str]]) -> list[int]:
    """Make M_ES of these sentences exactly the named entities; the entities that lost a link here."""
    sentences = list(links)
    lost: list[int] = []
    for start in range(0, len(sentences), ROWS):
        lost += _set_links(writer, collection_id, {id: links[id] for id in sentences[start : start + ROWS]})
    return lost


def _set_links(writer: Writer, collection_id: int, links: Mapping[int, Iterable[str]]) -> list[int]:
    parameters = {
        "collection": collection_id,
        "sentences": [sentence for sentence, names in links.items() for _ in names],
        "names": [name for names in links.values() for name in names],
        "all": list(links),
    }
    named = f"""
        SELECT DISTINCT given.sentence_id, e.id AS entity_id
        FROM unnest(%(sentences)s::bigint[], %(names)s::text[]) AS given(sentence_id, name)
        {join_by_index("entity e", "e.name = given.name")}
    """
    lost = writer.rows(
        f"""
        DELETE FROM entity_sentence link USING {id_rows("all")}
        WHERE link.collection_id = wanted.collection_id AND link.sentence_id = wanted.id
          AND (link.sentence_id, link.entity_id) NOT IN ({named})
        RETURNING link.entity_id
        """,
        parameters,
    )
    writer.execute(
        f"""
        INSERT INTO entity_sentence (collection_id, entity_id, sentence_id, passage_id, reader_set_id)
        SELECT %(collection)s::bigint, named.entity_id, named.sentence_id, s.passage_id, s.reader_set_id
        FROM ({named}) AS named
        {join_by_index("sentence s", "s.id = named.sentence_id")}
        ON CONFLICT DO NOTHING
        """,
        parameters,
    )
    return [row.entity_id for row in lost]


def delete_sentences(writer: Writer, collection_id: int, sentences: Sequence[int]) -> tuple[list[int], list[int]]:
    """Remove sentences with their links and memories, locked in id order.

    Returns:
        The entities and the time expressions they were linked to, which may now be orphans.
    """
    parameters = {"collection": collection_id, "ids": list(sentences)}
    writer.rows(
        f"""
        SELECT s.id FROM {WANTED_IDS} JOIN sentence s ON s.collection_id = wanted.collection_id AND s.id = wanted.id
        ORDER BY s.id FOR UPDATE OF s
        """,
        parameters,
    )
    renew_if_supporting(writer, collection_id, sentences)
    entities = writer.rows(
        f"""
        SELECT DISTINCT link.entity_id FROM {WANTED_IDS}
        {join_by_index("entity_sentence link", "link.sentence_id = wanted.id")}
        """,
        parameters,
    )
    times = writer.rows(
        f"""
        DELETE FROM sentence s USING {WANTED_IDS} WHERE s.collection_id = wanted.collection_id AND s.id = wanted.id
        RETURNING s.time_expression_id
        """,
        parameters,
    )
    time_expressions = [row.time_expression_id for row in times if row.time_expression_id is not None]
    return [row.entity_id for row in entities], time_expressions


def delete_orphans(writer: Writer, collection_id: int, entities: Iterable[int], times: Iterable[int]) -> int:
    """Remove those of the given entities and time expressions that no sentence holds any more, nor another row.

    Returns:
        How many entities went.
    """
    deleted = writer.execute(
        f"""
        DELETE FROM entity e USING {WANTED_IDS} WHERE e.collection_id = wanted.collection_id AND e.id = wanted.id
          AND (SELECT link.sentence_id FROM entity_sentence link
               WHERE link.collection_id = e.collection_id AND link.entity_id = e.id LIMIT 1) IS NULL
        """,
        {"collection": collection_id, "ids": sorted(set(entities))},
    )
    writer.execute(
        f"""
        DELETE FROM time_expression t USING {WANTED_IDS}
        WHERE t.collection_id = wanted.collection_id AND t.id = wanted.id
          AND {_build_unused_condition("time_expression", "t")}
        """,
        {"collection": collection_id, "ids": sorted(set(times))},
    )
    return deleted


@cache
def _build_unused_condition(table: str, row: str) -> str:
    """Return SQL that is true of a row which no row of any table, also of wings, keeps from being removed."""
    return " AND ".join(
        f"""
        (SELECT other.collection_id FROM {other.name} other WHERE other.collection_id = {row}.collection_id
           AND other.{key.column_keys[1]} = {row}.id LIMIT 1) IS NULL
        """
        for other in metadata.sorted_tables
        for key in other.foreign_key_constraints
        if key.referred_table.name == table and key.ondelete is None
    )
