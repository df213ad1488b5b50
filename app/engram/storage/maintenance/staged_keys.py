"""Base keys of a re-key job: staged beside the ones that serve, until all are there and take their place."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from engram.storage.column_parameters import vectors
from engram.storage.corpus import current_vectors
from engram.storage.database import Reader, Writer
from engram.storage.jobs.jobs import Job


@dataclass(frozen=True, slots=True)
class KeyText:
    """Text that a passage's key is made from, at one moment; sentences in reading order."""

    passage_id: int
    content_hash: bytes
    title: str | None
    text: str
    language: str
    sentences: Sequence[str]

    @property
    def id(self) -> int:
        """The passage's."""
        return self.passage_id


@dataclass(frozen=True, slots=True)
class StagedKey:
    """A passage's new dense key, (d,), and the content that it is of."""

    passage_id: int
    content_hash: bytes
    embedding: NDArray[np.float32]


# One statement, so that a passage's sentences are those of its text.
SOURCE = """
    SELECT p.id AS passage_id, p.content_hash, p.title, p.text, p.language, ARRAY(
               SELECT s.text FROM sentence s WHERE s.collection_id = p.collection_id AND s.passage_id = p.id
               ORDER BY s.position, s.id
           ) AS sentences
    FROM passage p
"""

_STAGED = """
    staged_key key WHERE key.collection_id = p.collection_id AND key.job_id = %(job)s AND key.passage_id = p.id
        AND key.content_hash = p.content_hash
"""


def list_unstaged(reader: Reader, job: Job, after: int, limit: int) -> list[KeyText]:
    """The next passages after passage ``after`` whose present content has no staged key, in id order."""
    rows = reader.rows(
        f"""
        {SOURCE} WHERE p.collection_id = %(collection)s AND p.id > %(after)s
          AND NOT EXISTS (SELECT FROM {_STAGED})
        ORDER BY p.id LIMIT %(limit)s
        """,
        _job_key(job) | {"after": after, "limit": limit},
    )
    return [KeyText(**row._asdict()) for row in rows]


def sources(reader: Reader, job: Job, after: int, limit: int) -> list[KeyText]:
    """The next passages of the job's collection after passage ``after``, in id order."""
    rows = reader.rows(
        f"{SOURCE} WHERE p.collection_id = %(collection)s AND p.id > %(after)s ORDER BY p.id LIMIT %(limit)s",
        _job_key(job) | {"after": after, "limit": limit},
    )
    return [KeyText(**row._asdict()) for row in rows]


def list_of_other_analysers(reader: Reader, job: Job, analyser: int, after: int, limit: int) -> list[KeyText]:
    """The next passages after passage ``after`` without terms of this version of the analysis, in id order."""
    rows = reader.rows(
        f"""
        {SOURCE} WHERE p.collection_id = %(collection)s AND p.id > %(after)s AND NOT EXISTS (
            SELECT FROM lexical_passage held
            WHERE held.collection_id = p.collection_id AND held.passage_id = p.id AND held.analyser = %(analyser)s
        )
        ORDER BY p.id LIMIT %(limit)s
        """,
        _job_key(job) | {"analyser": analyser, "after": after, "limit": limit},
    )
    return [KeyText(**row._asdict()) for row in rows]


def count(reader: Reader, job: Job) -> int:
    """Count the staged keys."""
    row_count: int = reader.scalar(
        "SELECT count(*) FROM staged_key WHERE collection_id = %(collection)s AND job_id = %(job)s", _job_key(job)
    )
    return row_count


def stage(writer: Writer, job: Job, keys: Sequence[StagedKey]) -> None:
    """Stage keys, in place of what was staged for these passages; not those whose passage changed or is gone."""
    writer.execute(
        """
        INSERT INTO staged_key (collection_id, job_id, passage_id, content_hash, embedding)
        SELECT %(collection)s, %(job)s, p.id, p.content_hash, row.embedding
        FROM unnest(%(passages)s::bigint[], %(hashes)s::bytea[], %(embeddings)s::vector[])
            AS row(passage_id, content_hash, embedding)
        JOIN passage p ON p.collection_id = %(collection)s AND p.id = row.passage_id
                      AND p.content_hash = row.content_hash
        ORDER BY p.id FOR KEY SHARE OF p
        ON CONFLICT (collection_id, job_id, passage_id) DO UPDATE
            SET content_hash = excluded.content_hash, embedding = excluded.embedding
        """,
        _job_key(job)
        | {
            "passages": [key.passage_id for key in keys],
            "hashes": [key.content_hash for key in keys],
            "embeddings": vectors([key.embedding for key in keys]),
        },
    )


def let_go(writer: Writer, job: Job) -> None:
    """Forget what is staged: it is in place, or never will be."""
    writer.execute(
        "DELETE FROM staged_key WHERE collection_id = %(collection)s AND job_id = %(job)s", _job_key(job)
    )


def put_in_place(writer: Writer, job: Job, passages: Sequence[int]) -> None:
    """Make these passages' dense keys the staged ones.

    A key that stays the same is left alone: writing it would cost a new entry in the vector index.
    """
    writer.execute(
        """
        UPDATE passage p SET embedding = key.embedding FROM staged_key key
        WHERE key.collection_id = %(collection)s AND key.job_id = %(job)s
          AND key.passage_id = ANY(%(passages)s::bigint[])
          AND p.collection_id = key.collection_id AND p.id = key.passage_id
          AND p.embedding <> key.embedding::halfvec
        """,
        _job_key(job) | {"passages": list(passages)},
    )
    current_vectors.renew_base_version(writer, job.collection_id)
    current_vectors.renew_question_version(writer, job.collection_id)


def _job_key(job: Job) -> dict[str, object]:
    return {"collection": job.collection_id, "job": job.id}
