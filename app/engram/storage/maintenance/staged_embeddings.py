"""Vectors by encoders that a collection does not serve by, beside those that it serves by, until they change
places.

Of a sentence, an entity or a time expression there is one for each encoder, of its present text. That of a
passage says of which content it is, and those of texts that callers sent (questions, times, and ``SENT_TEXT`` of
other tables) stand by the text alone. Each goes with what it is of: see the foreign keys, and ``forget_passages``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from engram.core.passage_keys.key_text import KeyBuilding
from engram.storage.column_parameters import vectors as sent
from engram.storage.corpus import current_vectors
from engram.storage.corpus.collections import EncoderId
from engram.storage.database import Reader, Writer
from engram.storage.maintenance.staged_keys import SOURCE, KeyText
from engram.storage.row_lookups import WANTED_IDS, alias_rows, id_rows, join_by_index
from engram.storage.tables.table_base import SENT_TEXT, metadata

Vector = NDArray[np.float32]
Row = Literal["sentence", "entity", "time_expression"]
TEXT_COLUMNS: Mapping[Row, str] = {"sentence": "text", "entity": "surface", "time_expression": "text"}
"""What of a row its vector is made of."""


def _digest_content(building: str) -> str:
    """Return SQL made of what a key is made of: a re-key changes it as a new content does."""
    return f"sha256(p.content_hash || convert_to({building}, 'UTF8'))"


_CONTENT = _digest_content("(SELECT key_building FROM collection WHERE id = p.collection_id)")


def _digest(text: str) -> str:
    return f"sha256(convert_to({text}, 'UTF8'))"


def _find_sent_texts() -> dict[str, str]:
    """Return the tables of texts that callers sent, of wings too -> the column of the text."""
    return {table.name: table.info[SENT_TEXT] for table in metadata.tables.values() if SENT_TEXT in table.info}


@cache
def _select_caller_texts() -> str:
    """Return the relation ``said`` of all that callers sent and that there is a vector of."""
    sent_texts = " UNION ".join(
        f"SELECT {column} AS text, true AS is_question FROM {table} WHERE collection_id = %(collection)s"
        for table, column in (_find_sent_texts() | {"judged_query": "question"}).items()
    )
    return f"""(
        SELECT text, bool_or(is_question) AS is_question FROM (
            {sent_texts}
            UNION SELECT time_constraint, false FROM judged_query
                  WHERE collection_id = %(collection)s AND time_constraint IS NOT NULL
        ) AS each GROUP BY text
    ) AS said"""


@dataclass(frozen=True, slots=True)
class UnembeddedText:
    """A row without a spare vector, and the text that one is made of."""

    id: int
    text: str


def count_vectors(reader: Reader, collection_id: int) -> int:
    """Count the vectors of the collection: of its corpus and of texts from callers."""
    vector_count: int = reader.scalar(
        f"""
        SELECT passage_count + sentence_count + entity_count
             + (SELECT count(*) FROM time_expression WHERE collection_id = %(collection)s)
             + (SELECT count(*) FROM {_select_caller_texts()})
        FROM collection WHERE id = %(collection)s
        """,
        {"collection": collection_id},
    )
    return vector_count


def count(reader: Reader, collection_id: int, encoder: str | None) -> int:
    """Count staged vectors of this encoder, or of all encoders."""
    row_count: int = reader.scalar(
        """
        SELECT count(*) FROM staged_embedding
        WHERE collection_id = %(collection)s AND (%(encoder)s::text IS NULL OR encoder = %(encoder)s)
        """,
        {"collection": collection_id, "encoder": encoder},
    )
    return row_count


def list_unembedded_rows(
    reader: Reader, collection_id: int, table: Row, encoder: str, after: int, limit: int
) -> list[UnembeddedText]:
    """List rows of the table that follow ``after`` and have no vector of this encoder, in id order."""
    rows = reader.rows(
        f"""
        SELECT r.id, r.{TEXT_COLUMNS[table]} AS text FROM {table} r
        WHERE r.collection_id = %(collection)s AND r.id > %(after)s AND (
            SELECT v.id FROM staged_embedding v
            WHERE v.collection_id = r.collection_id AND v.{table}_id = r.id AND v.encoder = %(encoder)s
        ) IS NULL
        ORDER BY r.id LIMIT %(limit)s
        """,
        {"collection": collection_id, "encoder": encoder, "after": after, "limit": limit},
    )
    return [UnembeddedText(row.id, row.text) for row in rows]


def list_unembedded_passages(
    reader: Reader, collection_id: int, encoder: str, after: int, limit: int
) -> list[KeyText]:
    """List passages that follow ``after`` and whose present content has no vector of this encoder, in id order."""
    rows = reader.rows(
        f"""
        {SOURCE} WHERE p.collection_id = %(collection)s AND p.id > %(after)s AND (
            SELECT v.id FROM staged_embedding v
            WHERE v.collection_id = p.collection_id AND v.passage_id = p.id AND v.encoder = %(encoder)s
              AND v.digest = {_CONTENT}
        ) IS NULL
        ORDER BY p.id LIMIT %(limit)s
        """,
        {"collection": collection_id, "encoder": encoder, "after": after, "limit": limit},
    )
    return [KeyText(**row._asdict()) for row in rows]


@dataclass(frozen=True, slots=True)
class UnembeddedSentText:
    """A text that callers sent, and whether it is a question or an expansion of one; else it names a time."""

    text: str
    is_question: bool


def list_unembedded_texts(reader: Reader, collection_id: int, encoder: str, limit: int) -> list[UnembeddedSentText]:
    """Texts that callers sent that have no vector of this encoder, some of them."""
    rows = reader.rows(
        f"""
        SELECT said.text, said.is_question FROM {_select_caller_texts()} WHERE (
            SELECT v.id FROM staged_embedding v
            WHERE v.collection_id = %(collection)s AND v.digest = {_digest("said.text")}
              AND v.encoder = %(encoder)s AND v.passage_id IS NULL
        ) IS NULL
        LIMIT %(limit)s
        """,
        {"collection": collection_id, "encoder": encoder, "limit": limit},
    )
    return [UnembeddedSentText(row.text, row.is_question) for row in rows]


def stage_rows(
    writer: Writer,
    collection_id: int,
    table: Row,
    encoder: EncoderId,
    embedded: Sequence[UnembeddedText],
    vectors: Sequence[Vector],
) -> None:
    """Keep vectors of these rows, and beside them those that they have now.

    Rows that are gone, or have another text by now, are left out.
    """
    parameters = {
        "collection": collection_id,
        "encoder": encoder.fingerprint,
        "ids": [row.id for row in embedded],
        "texts": [row.text for row in embedded],
    }
    join = f"""
        JOIN {table} r ON r.collection_id = new.collection_id AND r.id = new.id
                      AND r.{TEXT_COLUMNS[table]} = new.text
    """
    rows = "unnest(%(ids)s::bigint[], %(texts)s::text[]) AS new(id, text)"
    given_with_vectors = (
        "unnest(%(ids)s::bigint[], %(texts)s::text[], %(vectors)s::vector[]) AS new(id, text, embedding)"
    )
    # By itself: where nodes number what is inserted, no insertion can lock.
    writer.rows(f"SELECT r.id FROM {alias_rows(rows)} {join} ORDER BY r.id FOR KEY SHARE OF r", parameters)
    writer.execute(
        f"""
        INSERT INTO staged_embedding (collection_id, encoder, {table}_id, embedding)
        SELECT r.collection_id, %(encoder)s, r.id, new.embedding
        FROM {alias_rows(given_with_vectors)} {join} ORDER BY r.id ON CONFLICT DO NOTHING
        """,
        parameters | {"vectors": sent(vectors)},
    )
    writer.execute(
        f"""
        INSERT INTO staged_embedding (collection_id, encoder, {table}_id, embedding)
        SELECT r.collection_id, c.encoder_fingerprint, r.id, r.embedding::vector
        FROM {alias_rows(rows)} JOIN collection c ON c.id = new.collection_id {join}
        WHERE r.embedding IS NOT NULL ORDER BY r.id ON CONFLICT DO NOTHING
        """,
        parameters,
    )


def stage_passages(
    writer: Writer,
    collection_id: int,
    encoder: EncoderId,
    building: KeyBuilding,
    sources: Sequence[KeyText],
    vectors: Sequence[Vector],
) -> None:
    """Keep vectors of these passages, not of those that changed meanwhile, and beside them those that they have.

    Args:
        building: what the vectors' texts were made by.
    """
    parameters = {
        "collection": collection_id,
        "building": building,
        "ids": [source.passage_id for source in sources],
        "hashes": [source.content_hash for source in sources],
    }
    insert = "INSERT INTO staged_embedding (collection_id, encoder, passage_id, digest, embedding)"
    joins = """
        JOIN collection c ON c.id = new.collection_id AND c.key_building = %(building)s
        JOIN passage p ON p.collection_id = new.collection_id AND p.id = new.id AND p.content_hash = new.hash
        ORDER BY p.id
    """
    replaced = """
        ON CONFLICT (collection_id, passage_id, encoder) WHERE passage_id IS NOT NULL
            DO UPDATE SET digest = excluded.digest, embedding = excluded.embedding
    """
    digest = _digest_content("%(building)s")
    rows = "unnest(%(ids)s::bigint[], %(hashes)s::bytea[]) AS new(id, hash)"
    columns = "unnest(%(ids)s::bigint[], %(hashes)s::bytea[], %(vectors)s::vector[]) AS new(id, hash, embedding)"
    writer.rows(f"SELECT p.id FROM {alias_rows(rows)} {joins} FOR KEY SHARE OF p", parameters)
    writer.execute(
        f"""
        {insert} SELECT p.collection_id, %(encoder)s, p.id, {digest}, new.embedding
        FROM {alias_rows(columns)} {joins} {replaced}
        """,
        parameters | {"vectors": sent(vectors), "encoder": encoder.fingerprint},
    )
    writer.execute(
        f"""
        {insert} SELECT p.collection_id, c.encoder_fingerprint, p.id, {digest}, p.embedding::vector
        FROM {alias_rows(rows)} {joins} {replaced}
        """,
        parameters,
    )


def stage_texts(
    writer: Writer, collection_id: int, encoder: EncoderId, texts: Sequence[str], vectors: Sequence[Vector]
) -> None:
    """Keep vectors of texts that callers sent."""
    writer.execute(
        f"""
        INSERT INTO staged_embedding (collection_id, encoder, digest, embedding)
        SELECT new.collection_id, %(encoder)s, {_digest("new.text")}, new.embedding
        FROM {alias_rows("unnest(%(texts)s::text[], %(vectors)s::vector[]) AS new(text, embedding)")}
        ON CONFLICT DO NOTHING
        """,
        {
            "collection": collection_id,
            "encoder": encoder.fingerprint,
            "texts": list(texts),
            "vectors": sent(vectors),
        },
    )


def forget_passages(writer: Writer, collection_id: int, passages: Sequence[int]) -> None:
    """Remove what is of former contents of these passages."""
    writer.execute(
        "DELETE FROM staged_embedding WHERE collection_id = %(collection)s AND passage_id = ANY(%(passages)s)",
        {"collection": collection_id, "passages": list(passages)},
    )


def forget_sentences(writer: Writer, collection_id: int, sentences: Sequence[int]) -> None:
    """Remove what is of former texts of these sentences."""
    writer.execute(
        "DELETE FROM staged_embedding WHERE collection_id = %(collection)s AND sentence_id = ANY(%(sentences)s)",
        {"collection": collection_id, "sentences": list(sentences)},
    )


def forget_texts(writer: Writer, collection_id: int) -> None:
    """Remove what is of texts that callers sent."""
    writer.execute(
        """
        DELETE FROM staged_embedding
        WHERE collection_id = %(collection)s AND digest IS NOT NULL AND passage_id IS NULL
        """,
        {"collection": collection_id},
    )


def drop(writer: Writer, collection_id: int, limit: int) -> int:
    """Remove up to ``limit`` vectors; return how many were removed."""
    return writer.execute(
        """
        DELETE FROM staged_embedding WHERE collection_id = %(collection)s AND id IN (
            SELECT id FROM staged_embedding WHERE collection_id = %(collection)s LIMIT %(limit)s
        )
        """,
        {"collection": collection_id, "limit": limit},
    )


def list_tables() -> list[str]:
    """List the tables whose rows have vectors made of texts, in the order in which they are locked."""
    return ["passage", *TEXT_COLUMNS, *_find_sent_texts(), "judged_query"]


def list_next_ids(reader: Reader, collection_id: int, table: str, after: Any, limit: int) -> list[Any]:
    """List the table's ids that follow ``after``; from the first on if it is None."""
    id_condition = "" if after is None else "AND r.id > %(after)s"
    rows = reader.rows(
        f"""
        SELECT r.id FROM {table} r WHERE r.collection_id = %(collection)s {id_condition}
        ORDER BY r.id LIMIT %(limit)s
        """,
        {"collection": collection_id, "after": after, "limit": limit},
    )
    return [row.id for row in rows]


def put_in_place(writer: Writer, collection_id: int, table: str, encoder: EncoderId, ids: Sequence[Any]) -> int:
    """Make the vectors of these rows those of this encoder; of how many there were any."""
    return writer.execute(
        _build_put(table), {"collection": collection_id, "encoder": encoder.fingerprint, "ids": list(ids)}
    )


def count_taught_questions(writer: Writer, collection_id: int, space: int) -> int:
    """Count the questions that taught something and have no vectors in this space."""
    question_count: int = writer.scalar(
        """
        SELECT count(*) FROM judged_query judged
        WHERE judged.collection_id = %(collection)s AND judged.space <> %(space)s AND EXISTS (
            SELECT FROM feedback_event event
            WHERE event.collection_id = judged.collection_id AND event.query_id = judged.id
              AND event.status IN ('applied', 'revoked')
        )
        """,
        {"collection": collection_id, "space": space},
    )
    return question_count


def enter(writer: Writer, collection_id: int, encoder: EncoderId) -> None:
    """Have the collection be of this encoder; what was made or learned for another one is forgotten or rests."""
    parameters = {"collection": collection_id, **asdict(encoder)}
    writer.execute(
        """
        UPDATE collection SET encoder_model = %(model)s, encoder_fingerprint = %(fingerprint)s,
            encoder_dimension = %(dimension)s, space = space + 1
        WHERE id = %(collection)s
        """,
        parameters,
    )
    current_vectors.renew_base_version(writer, collection_id)
    current_vectors.serve_question_generation(writer, collection_id, 0)
    writer.execute("DELETE FROM staged_key WHERE collection_id = %(collection)s", parameters)


def _put(table: str, condition: str) -> str:
    """Each row's vector is looked up by itself: see ``row_lookups``."""
    staged_row = join_by_index("staged_embedding v", f"{condition} AND v.encoder = %(encoder)s")
    return f"""
        UPDATE {table} r SET embedding = new.embedding
        FROM (
            SELECT wanted.collection_id, wanted.id, v.embedding
            FROM {WANTED_IDS} {join_by_index(f"{table} held", "held.id = wanted.id")} {staged_row} OFFSET 0
        ) AS new
        WHERE r.collection_id = new.collection_id AND r.id = new.id
    """


def _match_sent_text(text: str, staged: str = "v") -> str:
    """Condition that the row ``staged`` has the vector of a text that was sent by itself."""
    return f"{staged}.digest = {_digest(text)} AND {staged}.passage_id IS NULL"


_QUESTION_VECTOR = f"{_match_sent_text('held.question')} AND v.encoder = %(encoder)s"
_TIME_VECTOR = f"{_match_sent_text('held.time_constraint', 't')} AND t.encoder = %(encoder)s"
_PUT: Mapping[str, str] = {
    "passage": _put("passage", f"v.passage_id = held.id AND v.digest = {_CONTENT.replace('p.', 'held.')}"),
    **{table: _put(table, f"v.{table}_id = held.id") for table in TEXT_COLUMNS},
    "judged_query": f"""
        UPDATE judged_query r SET embedding = new.embedding, time_embedding = new.timed,
            space = (SELECT space + 1 FROM collection WHERE id = %(collection)s)
        FROM (
            SELECT wanted.collection_id, wanted.id, v.embedding, t.embedding AS timed
            FROM {id_rows("ids", "uuid")} {join_by_index("judged_query held", "held.id = wanted.id")}
            {join_by_index("staged_embedding v", _QUESTION_VECTOR)}
            {join_by_index("staged_embedding t", _TIME_VECTOR, outer=True)}
            WHERE held.time_constraint IS NULL OR t.embedding IS NOT NULL OFFSET 0
        ) AS new
        WHERE r.collection_id = new.collection_id AND r.id = new.id
    """,
}


def _build_put(table: str) -> str:
    """Return the statement that puts vectors of the table in place."""
    sent_text = _find_sent_texts().get(table)
    return _PUT[table] if sent_text is None else _put(table, _match_sent_text(f"held.{sent_text}"))
